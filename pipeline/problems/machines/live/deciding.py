"""A policy decides for machines as they are: the order of what waits, and who starts where.

It is asked as the simulator asks it: job by job, until it lets time pass or nothing fits. Where the scenario's dispatch
holds others for a job that does not fit, that one has a reservation, and others start if they do not delay it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline import storage
from pipeline.config import MachinePark, MachinesCard, MachinesScenario, Params
from pipeline.core import FloatArray, IntArray, Observation, Policy
from pipeline.errors import UserError
from pipeline.problems.asking import RefusedError
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.heuristics.tuning import MIX, TETRIS, heuristics_with
from pipeline.problems.machines.live.cluster import Now, cluster_now, observed
from pipeline.problems.machines.live.scores import of_jobs, score_of
from pipeline.problems.machines.live.state import MachinesDecision, MachinesState, Ranked, Reserved, Start
from pipeline.problems.machines.nouns import BLOCKING, EASY_SHORTEST, EASY_WITHIN, GREEDY, Machines
from pipeline.problems.machines.policies import policy_by_name
from pipeline.problems.machines.user_jobs import park_of
from pipeline.problems.machines.workload.park import machines_of

MOST_STARTS = 16  # of one answer

Scored = Callable[[Observation], FloatArray]  # view -> scores of jobs [M]


@dataclass(frozen=True)
class Decider:
    """A policy of a scenario's machines."""

    machines: Machines
    park: MachinePark
    policy: Policy
    scored: Scored
    learned: bool  # does it know the scenario's machines alone?
    rng: np.random.Generator

    def __call__(self, state: MachinesState) -> MachinesDecision:
        """Return what the policy wants.

        Raises:
            UserError: the state contradicts itself.
            RefusedError: the policy does not know such a state, or has no answer.
        """
        now, never = cluster_now(state, self.park)
        if self.learned:
            must_know(now, state, self.park)
        if not len(now.waits):
            return MachinesDecision(order=(), starts=(), never=never)
        order = self._order(now)
        starts, reserved = self._starts(now)
        held = reserved is None and len(starts) == MOST_STARTS and len(now.waits) > 0
        return MachinesDecision(order=order, starts=tuple(starts), reserved=reserved, never=never, more=held)

    def _see(self, now: Now) -> Observation:
        return observed(now, self.machines.slots, self.machines.dispatch, self.machines.stall, self.learned)

    def _order(self, now: Now) -> tuple[Ranked, ...]:
        jobs = now.waits
        seen = min(len(jobs), self.machines.slots)
        scores = np.full(len(jobs), -np.inf)
        scores[:seen] = self.scored(self._see(now))[:seen]
        if np.isnan(scores).any() or np.isposinf(scores).any():
            raise RefusedError("its scores are not numbers")
        rank = np.argsort(-scores, kind="stable")
        return tuple(
            Ranked(job=now.ids[jobs[m]], score=float(scores[m]) if np.isfinite(scores[m]) else None) for m in rank
        )

    def _starts(self, now: Now) -> tuple[list[Start], Reserved | None]:
        starts: list[Start] = []
        while len(now.waits) and len(starts) < MOST_STARTS:
            view = self._see(now)
            if self.machines.dispatch == GREEDY and not view.fits_now.any():
                break
            found = self._chosen(view)
            if found is None:
                break
            slot, machine = found
            job = int(now.waits[slot])
            places = now.places(job, now.fits(job), machine)
            if not len(places):
                return starts, self._hold(now, job, machine, starts)
            _start(now, job, places, starts)
        return starts, None

    def _chosen(self, view: Observation) -> tuple[int, int] | None:
        """Return a slot and a machine; none where the policy lets time pass.

        Raises:
            RefusedError: what it chose may not be chosen.
        """
        action = int(self.policy(view, self.rng.random(1))[0])
        slots, machines = view.legal.shape[1:]
        if action == slots * machines:
            return None
        if not 0 <= action < slots * machines or not view.legal[0].reshape(-1)[action]:
            raise RefusedError(f"it chose {action}, which may not be chosen")
        slot, machine = divmod(action, machines)
        return slot, int(machine)

    def _hold(self, now: Now, job: int, machine: int, starts: list[Start]) -> Reserved | None:
        """Reserve for a job that does not fit, and start others that do not delay it, as far as one is told."""
        at = float(now.fits_at(np.array([job]))[0])
        if not np.isfinite(at):
            raise RefusedError(f"job '{now.ids[job]}' never fits")
        reserved = Reserved(job=now.ids[job], at=at)
        if self.machines.dispatch == BLOCKING:
            return reserved
        extra = now.free.copy()
        come = now.back <= at
        np.add.at(extra, now.back_machine[come], now.back_units[come])
        holds = np.asarray(now.could[job] & (now.demand[job] <= extra).all(axis=1))
        extra[now.places(job, holds, machine)] -= now.demand[job]
        for other in self._behind(now, job):
            if len(starts) == MOST_STARTS:
                break
            holds = now.fits(other)
            over = now.time + now.duration[other] < at
            if not over:
                holds &= (now.demand[other] <= extra).all(axis=1)
            places = now.places(other, holds, 0)
            if len(places) and (over or self.machines.dispatch != EASY_WITHIN):
                extra[places] -= 0 if over else now.demand[other]
                _start(now, other, places, starts)
        return reserved

    def _behind(self, now: Now, job: int) -> IntArray:
        others = now.waits[now.waits != job]
        if self.machines.dispatch == EASY_SHORTEST:
            others = others[np.argsort(now.duration[others], kind="stable")]
        return np.asarray(others)


def _start(now: Now, job: int, places: IntArray, starts: list[Start]) -> None:
    starts.append(Start(job=now.ids[job], machines=tuple(now.names[k] for k in places)))
    now.start(job, places)


def must_know(now: Now, state: MachinesState, park: MachinePark) -> None:
    """Refuse what a trained policy never met.

    Raises:
        RefusedError: other resources, as many machines as it does not know, or a kind of machine that it does not know.
    """
    if now.resources != park.resources:
        raise RefusedError(f"trained for resources {', '.join(park.resources)}; here: {', '.join(now.resources)}")
    asked = {name for job in state.waiting for name, amount in job.demand.items() if amount}
    if unknown := sorted(asked - set(park.resources)):
        raise RefusedError(f"a job asks for '{unknown[0]}', which it never met")
    if len(now.names) != len(park.capacity):
        raise RefusedError(f"trained for {len(park.capacity)} machines; here: {len(now.names)}")
    known = {(park.kind_names[kind], row) for kind, row in zip(park.kind, park.capacity, strict=True)}
    for k, name in enumerate(now.names):
        if (now.kinds[k], tuple(now.capacity[k].tolist())) not in known:
            raise RefusedError(f"machine '{name}' is of a make that it never met")


def decider(params: Params, scenario: str, name: str, tuned: Mapping[str, float]) -> Decider:
    """Return what decides as a policy does: a heuristic by name, or a model's folder.

    Raises:
        UserError: there is none, or it is a model that was trained for others.
    """
    row, park = params.machines_scenario(scenario), park_of(params, scenario)
    machines, rng = machines_of(row, park), np.random.default_rng(params.seed)
    if name in HEURISTICS:
        policy = heuristics_with(tuned)[name] if name == TETRIS and set(MIX) <= set(tuned) else HEURISTICS[name]
        score = score_of(name, tuned)
        return Decider(machines, park, policy, lambda view: of_jobs(score(view), view), False, rng)
    return _learned(name, row, park, scenario, machines, rng)


def _learned(
    name: str, row: MachinesScenario, park: MachinePark, scenario: str, machines: Machines, rng: np.random.Generator
) -> Decider:
    policy = policy_by_name(name, row, park, scenario)  # says what is wrong with the name
    from pipeline.problems.machines.networks.acting import forward
    from pipeline.problems.machines.networks.features import features
    from pipeline.problems.machines.networks.loading import restore

    try:
        card = storage.read_model(Path(name), MachinesCard)
        network = restore(card.card, card.weights).network
    except OSError as error:
        raise UserError(f"{name}: cannot be read ({error.strerror})") from error

    def scored(view: Observation) -> FloatArray:
        logits = forward(network, features(view, network.shape))[:, :-1]
        return of_jobs(logits.reshape(view.legal.shape), view)

    return Decider(machines, park, policy, scored, True, rng)
