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
from pipeline.external.loading import is_external
from pipeline.problems.asking import RefusedError
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.heuristics.tuning import MIX, TETRIS, heuristics_with
from pipeline.problems.machines.live.cluster import Now, cluster_now, observed
from pipeline.problems.machines.live.scores import of_jobs, score_of
from pipeline.problems.machines.live.state import MachinesDecision, MachinesState, Ranked, Reserved, Start
from pipeline.problems.machines.nouns import BLOCKING, EASY_SHORTEST, EASY_WITHIN, GREEDY, SAME_TIME, Machines
from pipeline.problems.machines.policies import policy_by_name
from pipeline.problems.machines.user_jobs import park_of
from pipeline.problems.machines.workload.park import machines_of

MOST_STARTS = 16  # of one answer

Asked = Callable[[Observation, FloatArray], tuple[FloatArray, int]]  # (view, draw [1]) -> scores of jobs [M], an action


@dataclass(frozen=True)
class Decider:
    """A policy of a scenario's machines."""

    machines: Machines
    park: MachinePark
    asked: Asked
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
        view = self._see(now)
        scores, action = self.asked(view, self.rng.random(1))
        order = _order(now, scores)
        starts, reserved = self._starts(now, view, action)
        held = reserved is None and len(starts) == MOST_STARTS and len(now.waits) > 0
        return MachinesDecision(order=order, starts=tuple(starts), reserved=reserved, never=never, more=held)

    def _see(self, now: Now) -> Observation:
        return observed(now, self.machines.slots, self.machines.dispatch, self.machines.stall, self.learned)

    def _starts(self, now: Now, view: Observation, action: int) -> tuple[list[Start], Reserved | None]:
        starts: list[Start] = []
        while self.machines.dispatch != GREEDY or view.fits_now.any():
            found = chosen(view, action)
            if found is None:
                break
            slot, machine = found
            job = int(now.waits[slot])
            places = now.places(job, now.fits(job), machine)
            if not len(places):
                return starts, self._hold(now, job, machine, starts)
            _start(now, job, places, starts)
            if not len(now.waits) or len(starts) == MOST_STARTS:
                break
            view = self._see(now)
            action = self.asked(view, self.rng.random(1))[1]
        return starts, None

    def _hold(self, now: Now, job: int, machine: int, starts: list[Start]) -> Reserved | None:
        """Reserve for a job that does not fit, and start others that do not delay it, as far as one is told."""
        at = float(now.fits_at(np.array([job]))[0])
        if not np.isfinite(at):
            raise RefusedError(f"job '{now.ids[job]}' never fits")
        reserved = Reserved(job=now.ids[job], at=at)
        if self.machines.dispatch == BLOCKING:
            return reserved
        extra, strict = now.free.copy(), self.machines.dispatch == EASY_WITHIN
        at += 0.0 if strict else SAME_TIME * abs(at)
        come = now.back <= at
        np.add.at(extra, now.back_machine[come], now.back_units[come])
        holds = np.asarray(now.could[job] & (now.demand[job] <= extra).all(axis=1))
        extra[now.places(job, holds, machine)] -= now.demand[job]
        for other in self._behind(now, job):
            if len(starts) == MOST_STARTS:
                break
            holds = now.fits(other)
            end = now.time + now.duration[other]
            over = end < at or (end == at and not strict)
            if not over:
                holds &= (now.demand[other] <= extra).all(axis=1)
            places = now.places(other, holds, 0)
            if len(places) and (over or not strict):
                extra[places] -= 0 if over else now.demand[other]
                _start(now, other, places, starts)
        return reserved

    def _behind(self, now: Now, job: int) -> IntArray:
        others = now.waits[now.waits != job]
        if self.machines.dispatch == EASY_SHORTEST:
            others = others[np.argsort(now.duration[others], kind="stable")]
        return np.asarray(others)


def chosen(view: Observation, action: int) -> tuple[int, int] | None:
    """Return a slot and a machine; none where the policy lets time pass.

    Raises:
        RefusedError: what it chose may not be chosen.
    """
    slots, machines = view.legal.shape[1:]
    if action == slots * machines:
        return None
    if not 0 <= action < slots * machines or not view.legal[0].reshape(-1)[action]:
        raise RefusedError(f"it chose {action}, which may not be chosen")
    slot, machine = divmod(action, machines)
    return slot, int(machine)


def _order(now: Now, scores: FloatArray) -> tuple[Ranked, ...]:
    jobs = now.waits
    seen = min(len(jobs), len(scores))
    score = np.full(len(jobs), -np.inf)
    score[:seen] = scores[:seen]
    if np.isnan(score).any() or np.isposinf(score).any():
        raise RefusedError("its scores are not numbers")
    told = [value if np.isfinite(value) else None for value in score.tolist()]
    return tuple(Ranked(job=now.ids[jobs[m]], score=told[m]) for m in np.argsort(-score, kind="stable"))


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
    if is_external(name):
        return Decider(machines, park, external_of(policy_by_name(name, row, park, scenario)), False, rng)
    learned = name not in HEURISTICS
    asked = network_of(name, row, park, scenario) if learned else heuristic_of(name, tuned)
    return Decider(machines, park, asked, learned, rng)


def heuristic_of(name: str, tuned: Mapping[str, float]) -> Asked:
    """Return a heuristic with its tuned numbers, if it has them."""
    policy = heuristics_with(tuned)[name] if name == TETRIS and set(MIX) <= set(tuned) else HEURISTICS[name]
    score = score_of(name, tuned)
    return lambda view, draws: (of_jobs(score(view), view), int(policy(view, draws)[0]))


def external_of(policy: Policy) -> Asked:
    """Return a policy that only acts: the job that it starts comes first."""

    def asked(view: Observation, draws: FloatArray) -> tuple[FloatArray, int]:
        action, (slots, machines) = int(policy(view, draws)[0]), view.legal.shape[1:]
        return np.where(np.arange(slots) == action // machines, 0.0, -np.inf), action

    return asked


def network_of(name: str, row: MachinesScenario, park: MachinePark, scenario: str) -> Asked:
    """Return a model that is asked once for both, what it thinks of jobs and what it does.

    Raises:
        UserError: there is none, or it was trained for others.
    """
    policy_by_name(name, row, park, scenario)  # says what is wrong with the name
    from pipeline.learning.sampling import best, sample
    from pipeline.problems.machines.networks.acting import forward
    from pipeline.problems.machines.networks.features import features
    from pipeline.problems.machines.networks.loading import restore

    try:
        model = storage.read_model(Path(name), MachinesCard)
    except OSError as error:
        raise UserError(f"{name}: cannot be read ({error.strerror})") from error
    network, greedy = restore(model.card, model.weights).network, model.card.play == "greedy"

    def asked(view: Observation, draws: FloatArray) -> tuple[FloatArray, int]:
        observed = features(view, network.shape)
        logits = forward(network, observed)
        of_pairs = logits[:, :-1].reshape(view.legal.shape)
        actions = best(logits, observed.may, True) if greedy else sample(logits, observed.may, True, draws)
        return of_jobs(of_pairs, view), int(actions[0])

    return asked
