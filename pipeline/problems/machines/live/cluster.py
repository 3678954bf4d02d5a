"""A state of many machines as one episode of the simulator: what is free, what waits, and when running jobs end."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.config import MachinePark, Params
from pipeline.core import ANY_KIND, MOST_KINDS, THOUSANDTHS, FloatArray, IntArray, Observation
from pipeline.errors import UserError
from pipeline.live.deciding import Now
from pipeline.live.states import amounts, in_order, last_arrival, others
from pipeline.problems.machines.live.state import LiveMachine, MachinesState, RunningJob
from pipeline.problems.machines.nouns import EASY, EASY_ANEW, EASY_SHORTEST, Jobs, Machines, could_hold, end_to_end
from pipeline.problems.machines.simulator.compiled.batch import Simulator
from pipeline.problems.machines.user_jobs import park_of
from pipeline.problems.machines.workload.park import machines_of


@dataclass(frozen=True)
class MachinesNow(Now):
    """Live machines as an episode."""

    simulator: Simulator
    resources: tuple[str, ...]  # [R]
    machines: Sequence[LiveMachine]  # [K]
    asked: frozenset[str]  # resources that waiting jobs want
    duration: FloatArray  # [W]

    def fits_at(self, view: Observation, slot: int) -> float:
        """Return when the job of a slot fits, by what is known of running jobs."""
        return float(view.now[0] + self.simulator.fits_in(0)[slot])

    def in_turn(self, jobs: IntArray) -> IntArray:
        """Return waiting jobs that one decision starts in the order in which they start."""
        shortest_first = self.simulator.machines.dispatch == EASY_SHORTEST
        return jobs[np.argsort(self.duration[jobs], kind="stable")] if shortest_first else jobs


def from_state(params: Params, scenario: str, state: MachinesState) -> MachinesNow:
    """Return a state of a scenario's machines as an episode; raise what `episode_of` does."""
    park = park_of(params, scenario)
    return episode_of(state, park, machines_of(params.machines_scenario(scenario), park))


def episode_of(state: MachinesState, park: MachinePark, like: Machines, ahead: bool = True) -> MachinesNow:
    """Return a state as an episode without limit, without the jobs that its machines could never run.

    Args:
        state: that is asked about.
        park: the scenario's machines, which the state may do without.
        like: slots and dispatch.
        ahead: are policies shown when jobs fit that do not fit now? It takes long where much runs and waits.

    Raises:
        UserError: running jobs hold what is not there.
    """
    there = state.machines or _own(park)
    resources = in_order(park.resources, list(dict.fromkeys(name for machine in there for name in machine.has)))
    capacity = amounts((machine.has for machine in there), resources, THOUSANDTHS)
    kind, bits = _kinds(state, there)
    # What starts now is the same, and no event is played through until the job fits that the others are held for.
    dispatch = EASY_ANEW if like.dispatch == EASY else like.dispatch
    machines = like._replace(capacity=capacity, kind=kind, time_limit=np.inf, dispatch=dispatch)
    running, waiting = state.running, sorted(state.waiting, key=lambda job: job.arrived)
    held = _held(running, resources, there, capacity)
    lasting = np.array([*(_seems_to_last(job, state.now) for job in running), *(job.duration for job in waiting)])
    jobs = Jobs(
        np.array([*(job.started for job in running), *(job.arrived for job in waiting)], dtype=np.float64),
        lasting,
        lasting,
        amounts([*(job.demand for job in running), *(job.demand for job in waiting)], resources, THOUSANDTHS),
        np.array([*(len(job.machines) for job in running), *(job.nodes for job in waiting)], dtype=np.int64),
        np.array([*(ANY_KIND for _ in running), *(bits[job.id] for job in waiting)], dtype=np.uint64),
    )
    can, runs = np.ones(len(lasting), dtype=np.bool_), len(running)
    holds = could_hold(jobs.demand[runs:], jobs.kinds[runs:], kind, capacity)
    can[runs:] = holds.sum(axis=1) >= jobs.nodes[runs:]
    can[runs:] &= np.array([not others(job.demand, resources) for job in waiting], dtype=np.bool_)
    jobs, last = Jobs._make(column[can] for column in jobs), last_arrival(state)
    simulator = Simulator.under_way(end_to_end([jobs]), machines, ahead, jobs.arrival[:runs], held, state.now, last)
    ids, never = ([waiting[k].id for k in np.flatnonzero(some)] for some in (can[runs:], ~can[runs:]))
    asked = frozenset(name for job in waiting for name in others(job.demand, ()))
    return MachinesNow(simulator, ids, tuple(never), resources, there, asked, jobs.estimate[runs:])


def _own(park: MachinePark) -> tuple[LiveMachine, ...]:
    """Return the machines of a scenario, named by their number."""
    return tuple(
        LiveMachine(
            name=str(k),
            has={name: amount / THOUSANDTHS for name, amount in zip(park.resources, row, strict=True)},
            kind=park.kind_names[park.kind[k]],
        )
        for k, row in enumerate(park.capacity)
    )


def _kinds(state: MachinesState, machines: Sequence[LiveMachine]) -> tuple[IntArray, dict[str, int]]:
    """Return the kind of each machine [K], 0 where no job names it, and the bits of those that each job runs on."""
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
    running: Sequence[RunningJob], resources: Sequence[str], machines: Sequence[LiveMachine], capacity: IntArray
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
    demand = amounts((job.demand for job in running), resources, THOUSANDTHS)
    np.add.at(taken, held, np.repeat(demand, [len(job.machines) for job in running], axis=0))
    if (taken > capacity).any():
        k, r = np.argwhere(taken > capacity)[0]
        said = f"running jobs hold {taken[k, r] / THOUSANDTHS:g} of {resources[r]}"
        raise UserError(f"machine '{machines[k].name}': {said}; it has {capacity[k, r] / THOUSANDTHS:g}")
    return held


def _seems_to_last(job: RunningJob, now: float) -> float:
    """Return how long a job seems to run: of one that overruns, its estimate is doubled until its end lies ahead."""
    lasting = job.duration
    while job.started + lasting <= now:
        lasting *= 2.0
    return lasting
