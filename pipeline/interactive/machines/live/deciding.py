"""Decisions of policies for live machines.

Where the scenario's dispatch holds a job that does not fit, this job has a reservation, and others start only if they
do not delay it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from pipeline.core import storage
from pipeline.core.config import MachinePark, MachinesCard, Params
from pipeline.core.types import ANY_KIND, MOST_KINDS, THOUSANDTHS, FloatArray, IntArray, Json, Observation
from pipeline.errors import UserError
from pipeline.external.loading import is_external
from pipeline.interactive.live import deciding
from pipeline.interactive.live.states import amounts, in_order, last_arrival, others
from pipeline.interactive.machines.live.state import (
    LiveMachine,
    MachinesDecision,
    MachinesState,
    Reserved,
    RunningJob,
    Start,
)
from pipeline.interactive.machines.scheduling import park_of
from pipeline.problems.machines.env import nouns
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.env.storage import machines_of
from pipeline.problems.machines.heuristics.rules import HEURISTICS, MIX, TETRIS, heuristics_with
from pipeline.problems.machines.policies import policy_by_name


@dataclass(frozen=True)
class MachinesNow(deciding.Now):
    """Live machines as an episode."""

    simulator: Simulator
    resources: tuple[str, ...]  # [R]
    machines: Sequence[LiveMachine]  # [K]
    asked: frozenset[str]  # resources that waiting jobs want
    duration: FloatArray  # [W]

    def fits_at(self, view: Observation, slot: int) -> float:
        """Return when the job of a slot fits, by the estimates of running jobs."""
        return float(view.now[0] + self.simulator.fits_in(0)[slot])

    def in_turn(self, jobs: IntArray) -> IntArray:
        """Return the waiting jobs that one decision starts, in the order in which they start."""
        shortest_first = self.simulator.machines.dispatch == nouns.EASY_SHORTEST
        return jobs[np.argsort(self.duration[jobs], kind="stable")] if shortest_first else jobs


def from_state(params: Params, scenario: str, state: MachinesState) -> MachinesNow:
    """Return a state of a scenario's machines as an episode; raise the errors of `episode_of`."""
    park = park_of(params, scenario)
    return episode_of(state, park, machines_of(params.machines_scenario(scenario), park))


def episode_of(state: MachinesState, park: MachinePark, like: nouns.Machines, ahead: bool = True) -> MachinesNow:
    """Return a state as an episode without time limit and without the jobs that its machines could never run.

    Args:
        state: of a cluster.
        park: the scenario's machines, for states that name none.
        like: gives slots and dispatch.
        ahead: do observations show when jobs fit? Slow where many jobs run and wait.

    Raises:
        UserError: running jobs hold what the machines do not have.
    """
    there = state.machines or tuple(
        LiveMachine(
            name=str(k),
            has={name: amount / THOUSANDTHS for name, amount in zip(park.resources, row, strict=True)},
            kind=park.kind_names[park.kind[k]],
        )
        for k, row in enumerate(park.capacity)
    )
    resources = in_order(park.resources, list(dict.fromkeys(name for machine in there for name in machine.has)))
    capacity = amounts((machine.has for machine in there), resources, THOUSANDTHS)
    kind, bits = _kinds(state, there)
    # EASY_DYNAMIC starts the same jobs now, and simulates no event until the job fits for which others are held.
    dispatch = nouns.EASY_DYNAMIC if like.dispatch == nouns.EASY else like.dispatch
    machines = like._replace(capacity=capacity, kind=kind, time_limit=np.inf, dispatch=dispatch, measured=None)
    running, waiting = state.running, sorted(state.waiting, key=lambda job: job.arrived)
    demands = [*(job.demand for job in running), *(job.demand for job in waiting)]
    demand = amounts(demands, resources, THOUSANDTHS)
    held, runs = _held(running, demand[: len(running)], resources, there, capacity), len(running)
    lasting = np.array([*(_estimate(job, state.now) for job in running), *(job.duration for job in waiting)])
    jobs = nouns.Jobs(
        np.array([*(job.started for job in running), *(job.arrived for job in waiting)], dtype=np.float64),
        lasting,
        lasting,
        demand,
        np.array([*(len(job.machines) for job in running), *(job.nodes for job in waiting)], dtype=np.int64),
        np.array([*(ANY_KIND for _ in running), *(bits[job.id] for job in waiting)], dtype=np.uint64),
    )
    can = np.ones(len(lasting), dtype=np.bool_)
    holds = nouns.could_hold(jobs.demand[runs:], jobs.kinds[runs:], kind, capacity)
    can[runs:] = holds.sum(axis=1) >= jobs.nodes[runs:]
    can[runs:] &= np.array([not others(job.demand, resources) for job in waiting], dtype=np.bool_)
    jobs = nouns.Jobs._make(column[can] for column in jobs)
    batch, last = nouns.end_to_end([jobs]), last_arrival(state)
    simulator = Simulator.under_way(batch, machines, ahead, jobs.arrival[:runs], held, state.now, last)
    ids, never = ([waiting[k].id for k in np.flatnonzero(some)] for some in (can[runs:], ~can[runs:]))
    asked = frozenset(name for job in waiting for name in others(job.demand, ()))
    return MachinesNow(simulator, ids, tuple(never), resources, there, asked, jobs.estimate[runs:])


def _kinds(state: MachinesState, machines: Sequence[LiveMachine]) -> tuple[IntArray, dict[str, int]]:
    """Return the kind of each machine [K], 0 where no job names it, and the bits of the kinds that each job runs on."""
    named = {kind for job in state.waiting for kind in job.kinds or ()} & {machine.kind for machine in machines}
    if len(named) >= MOST_KINDS:
        raise UserError(f"waiting jobs name {len(named)} kinds of machines; expected at most {MOST_KINDS - 1}")
    place = {kind: k + 1 for k, kind in enumerate(sorted(named))}
    bits = {
        job.id: int(ANY_KIND) if job.kinds is None else sum(1 << place[kind] for kind in {*job.kinds} & named)
        for job in state.waiting
    }
    return np.array([place.get(machine.kind, 0) for machine in machines], dtype=np.int64), bits


def _held(
    running: Sequence[RunningJob],
    demand: IntArray,
    resources: Sequence[str],
    machines: Sequence[LiveMachine],
    capacity: IntArray,
) -> IntArray:
    """Return the machines of running jobs, job by job."""
    place = {machine.name: k for k, machine in enumerate(machines)}
    for job in running:
        for name in others(job.demand, resources):
            raise UserError(f"running job '{job.id}': no machine has any '{name}'")
        for name in job.machines:
            if name not in place:
                raise UserError(f"running job '{job.id}': unknown machine '{name}'")
    held = np.array([place[name] for job in running for name in job.machines], dtype=np.int64)
    taken = np.zeros_like(capacity)
    np.add.at(taken, held, np.repeat(demand, [len(job.machines) for job in running], axis=0))
    if (taken > capacity).any():
        k, r = np.argwhere(taken > capacity)[0]
        said = f"running jobs hold {taken[k, r] / THOUSANDTHS:g} of {resources[r]}"
        raise UserError(f"machine '{machines[k].name}': {said}; it has {capacity[k, r] / THOUSANDTHS:g}")
    return held


def _estimate(job: RunningJob, now: float) -> float:
    """Return the estimated run time of a job, doubled until its end exceeds the present."""
    lasting = job.duration
    while job.started + lasting <= now:
        lasting *= 2.0
    return lasting


def decider(
    params: Params, scenario: str, name: str, tuned: Mapping[str, float]
) -> deciding.Decider[MachinesState, MachinesNow, MachinesDecision]:
    """Return the decider of a policy: a heuristic by name, a model's folder, or an external policy.

    Raises:
        UserError: the policy is unknown, or a model that was trained for other machines.
    """
    row, park = params.machines_scenario(scenario), park_of(params, scenario)
    policy: deciding.LivePolicy[MachinesNow]
    if name in HEURISTICS:
        mixed = name == TETRIS and set(MIX) <= set(tuned)
        policy = deciding.heuristic(heuristics_with(tuned)[name] if mixed else HEURISTICS[name])
    else:
        acts = policy_by_name(name, row, park, scenario)  # says what is wrong with the name
        policy = deciding.acting(acts) if is_external(name) else _network(name, park)
    read = partial(episode_of, park=park, like=machines_of(row, park), ahead=name not in HEURISTICS)
    return deciding.Decider(read, policy, worded, np.random.default_rng(params.seed))


def worded(now: MachinesNow, answer: deciding.Answer) -> MachinesDecision:
    """Return an answer with jobs and machines by their names."""
    first, held = now.simulator.held
    runs = len(first) - 1 - len(now.ids)
    starts = tuple(
        Start(
            job=now.ids[job],
            machines=tuple(now.machines[k].name for k in held[first[runs + job] : first[runs + job + 1]]),
        )
        for job in answer.starts
    )
    reserved = Reserved(job=now.ids[answer.held[0]], at=answer.held[1]) if answer.held else None
    return MachinesDecision(order=answer.order, starts=starts, never=now.never, more=answer.more, reserved=reserved)


def _network(name: str, park: MachinePark) -> deciding.LivePolicy[MachinesNow]:
    from pipeline.problems.machines.agents.networks.features import features
    from pipeline.problems.machines.agents.networks.loading import forward, restore

    model = storage.read_model(Path(name), MachinesCard)
    asked = restore(model.card, model.weights).network
    knows = partial(check_known, park=park)
    return deciding.network(lambda view: features(view, asked.shape), partial(forward, asked), model.card, knows)


def check_known(now: MachinesNow, park: MachinePark) -> None:
    """Refuse what a trained policy has never met.

    Raises:
        RefusedError: resources, the number of machines, or a kind of machine are unknown to it.
    """
    if now.resources != park.resources:
        own, here = ", ".join(park.resources), ", ".join(now.resources)
        raise deciding.RefusedError(f"trained for resources {own}; here: {here}")
    if unknown := sorted(now.asked - set(park.resources)):
        raise deciding.RefusedError(f"a job asks for '{unknown[0]}', which it never met")
    if len(now.machines) != len(park.capacity):
        raise deciding.RefusedError(f"trained for {len(park.capacity)} machines; here: {len(now.machines)}")
    known = {(park.kind_names[kind], row) for kind, row in zip(park.kind, park.capacity, strict=True)}
    for machine, row in zip(now.machines, now.simulator.machines.capacity.tolist(), strict=True):
        if (machine.kind, tuple(row)) not in known:
            raise deciding.RefusedError(f"machine '{machine.name}' is of a make that it never met")


def example(params: Params, scenario: str) -> Mapping[str, Json]:
    """Return a state of a scenario's machines: one job runs, and two wait."""
    park = park_of(params, scenario)
    whole = {name: amount / THOUSANDTHS for name, amount in zip(park.resources, park.capacity[0], strict=True)}
    half, tenth = ({name: part * amount for name, amount in whole.items()} for part in (0.5, 0.1))
    unit = park.unit
    times: dict[str, Json] = {"started": 60.0 * unit, "duration": 100.0 * unit}
    return {
        "version": 1,
        "now": 120.0 * unit,
        "waiting": [
            {"id": "17", "arrived": 90.0 * unit, "duration": 40.0 * unit, "demand": {**half}},
            {"id": "18", "arrived": 110.0 * unit, "duration": 5.0 * unit, "demand": {**tenth}},
        ],
        "running": [{"id": "11", **times, "demand": {**half}, "machines": ["0"]}],
    }


LIVE: deciding.Live[MachinesState, MachinesDecision] = deciding.Live(
    "decide", MachinesState, MachinesDecision, example, "fcfs", decider, places=True
)
