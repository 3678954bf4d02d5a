"""Compiled simulation of many episodes in lock step; moves without a choice are made without a decision.

The reward of an interval is minus its length times the summed unit costs of the jobs in the system; a job's unit cost
is that of a time unit of its presence. With gamma = 1, the return of `slowdown` is minus the sum of the jobs' slowdowns
(weighted turnaround), and that of `completion_time` is minus the sum of their completion times.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pipeline.core.types import SHORTEST_BOUNDED, FloatArray, IntArray, Observation
from pipeline.problems.machines.env.nouns import GREEDY, Jobs, JobsBatch, Machines, Placed, end_to_end
from pipeline.problems.machines.env.simulator.dispatch import begin_all, fits_in, step_rows
from pipeline.problems.machines.env.simulator.placement import fits, holds
from pipeline.problems.machines.env.simulator.rules import Players, decide_rows, play_rows
from pipeline.problems.machines.env.simulator.state import Rules, State, empty_state, state_under_way
from pipeline.simulation.compiled import Span, inlined, threaded
from pipeline.simulation.simulator import CompiledSimulator, Kernels, Layout, Played, copy_episodes, spans


def _empty(s: State, count: int) -> Observation:
    _, slots, machines = s.can.shape
    resources = s.capacity.shape[1]
    return Observation(
        free=np.empty((count, machines, 1, resources), dtype=np.int64),
        demand=np.empty((count, slots, resources), dtype=np.int64),
        duration=np.empty((count, slots)),
        waited=np.empty((count, slots)),
        backlog=np.empty(count, dtype=np.int64),
        backlog_head=np.empty((count, resources + 1)),
        capacity=np.empty((count, machines, resources), dtype=np.int64),
        since_arrival=np.empty(count),
        legal=np.empty((count, slots, machines), dtype=np.uint8),
        fits_now=np.empty((count, slots, machines), dtype=np.uint8),
        now=np.empty(count),
        nodes=np.empty((count, slots), dtype=np.int64),
        fits_in=np.zeros((count, slots)),
        arrived=np.zeros((count, 2 + resources)),
        may_idle=np.empty(count, dtype=np.uint8),
        to_end=np.full(count, np.inf),
        load=np.full(count, np.nan),
    )


@threaded(lambda s, rules, rows, *_: len(rows))
def _write_views(span: Span, s: State, rules: Rules, rows: IntArray, view: Observation) -> None:
    for i in range(*span):
        write_view(s, rules, rows[i], view, i)


@inlined
def write_view(s: State, rules: Rules, b: int, view: Observation, i: int) -> None:
    """Write the observation of an episode to row i."""
    for k in range(s.kind.shape[0]):
        for r in range(s.capacity.shape[1]):
            view.free[i, k, 0, r] = s.free[b, k, r]
            view.capacity[i, k, r] = s.capacity[k, r]
    view.now[i] = s.now[b]
    view.since_arrival[i] = s.now[b] - s.last_arrival[b]
    view.may_idle[i] = view.since_arrival[i] < rules.stall
    view.backlog[i] = s.backlog[b]
    for r in range(s.capacity.shape[1] + 1):
        view.backlog_head[i, r] = 0.0
    if s.backlog[b] > 0:
        job = s.queue[b]
        while not np.isnan(s.start[job]):  # started by backfilling
            job += 1
        view.backlog_head[i, 0] = s.estimate[job]
        for r in range(s.capacity.shape[1]):
            view.backlog_head[i, r + 1] = s.demand[job, r]
    for m in range(s.slot_job.shape[1]):
        _write_slot(s, rules, b, view, i, m)
    if rules.ahead:
        fits_in(s, rules, b, view.fits_in, i)


@inlined
def _write_slot(s: State, rules: Rules, b: int, view: Observation, i: int, m: int) -> None:
    there = m < s.waiting[b]
    job = s.slot_job[b, m] if there else 0
    fit = there and fits(s, b, m)
    view.duration[i, m] = s.estimate[job] if there else 0.0
    view.waited[i, m] = s.now[b] - s.arrival[job] if there else 0.0
    view.nodes[i, m] = s.nodes[job] if there else 0
    for r in range(s.capacity.shape[1]):
        view.demand[i, m, r] = s.demand[job, r] if there else 0
    for k in range(s.kind.shape[0]):
        view.fits_now[i, m, k] = fit and s.can[b, m, k]
        if rules.dispatch == GREEDY:
            view.legal[i, m, k] = fit and s.can[b, m, k]
        else:
            view.legal[i, m, k] = there and holds(s, s.slot_job[b, m], k, s.capacity[k])


TIMES = ("arrival", "duration", "estimate", "unit_cost", "start", "finish", "ends", "estimated")
LAYOUT = Layout(
    of_jobs=(*TIMES, "demand", "nodes", "kinds", "machine", "running", "rank"),
    numbers=("running", "slot_job", "queue", "to_come", "to_start"),
    fixed=("capacity", "total", "kind", "held_first", "held", "order", "spare"),
)


class Simulator(CompiledSimulator[Players, FloatArray]):
    """The episodes of a batch."""

    kernels = Kernels(step_rows, decide_rows, play_rows)
    _state: State

    def __init__(self, jobs: JobsBatch, machines: Machines, unit_cost: FloatArray) -> None:
        self._hold(jobs, machines, empty_state(jobs, machines, unit_cost))
        begin_all(self._state, self._rules)
        self._rows = np.flatnonzero(~self._state.done)

    @classmethod
    def under_way(cls, jobs: JobsBatch, machines: Machines, ahead: bool, *others: Any) -> "Simulator":
        """Return one episode under way; without `ahead`, `fits_in` is 0. For other arguments see `state_under_way`."""
        found = object.__new__(cls)
        found._hold(jobs, machines, state_under_way(jobs, machines, *others), ahead)
        return found

    def _hold(self, jobs: JobsBatch, machines: Machines, state: State, ahead: bool = True) -> None:
        self.jobs, self.machines, self._state = jobs, machines, state
        last = 0 if machines.measured is None else machines.measured[1]
        self._rules = Rules(machines.dispatch, machines.pause, machines.time_limit, machines.stall, ahead, last)
        self._rows = np.flatnonzero(~state.done)

    @property
    def gained(self) -> FloatArray:
        """Return the rewards [B] so far: minus what the jobs' presence has cost."""
        return -self._state.cost

    @property
    def started(self) -> int:
        """Return the number of started jobs."""
        s = self._state
        return int((s.finished + s.runs).sum())

    @property
    def held(self) -> tuple[IntArray, IntArray]:
        """Return where each job's machines begin [J + 1], and the machines; -1 = not started."""
        return self._state.held_first, self._state.held.copy()

    def observe(self, rows: IntArray) -> Observation:
        """Return the observations of some episodes, as copies."""
        return self._observe(self._rules, rows)

    def _observe(self, rules: Rules, rows: IntArray) -> Observation:
        view = _empty(self._state, len(rows))
        _write_views(self._state, rules, rows, view)
        bits = {name: getattr(view, name).view(np.bool_) for name in ("fits_now", "legal", "may_idle")}
        return view._replace(**bits)

    def views(self, count: int) -> Observation:
        """Return observations for a kernel to fill in; booleans are bytes."""
        return _empty(self._state, count)

    def fits_in(self, row: int) -> FloatArray:
        """Return the time until the job of each slot [M] fits, even where observations leave it out."""
        return np.asarray(self._observe(self._rules._replace(ahead=True), np.array([row])).fits_in[0])

    def placed(self) -> Placed:
        """Return the placement of every job so far."""
        s = self._state
        return Placed(s.start.copy(), s.finish.copy(), s.machine.copy(), s.now.copy(), s.busy.copy())

    def played(self, rows: IntArray) -> Played:
        """Return the outcome so far of the jobs of some episodes."""
        s, (jobs, bounds) = self._state, spans(self._state.first, rows)
        return Played(bounds, s.arrival[jobs], s.duration[jobs], s.start[jobs], s.finish[jobs], s.now[rows])

    def fork(self, rows: IntArray) -> "Simulator":
        """Return independent copies of some episodes; one may be copied several times."""
        s, (jobs, bounds) = self._state, spans(self._state.first, rows)
        mine = JobsBatch(bounds, *(getattr(s, name)[jobs] for name in JobsBatch._fields[1:]))
        copy = Simulator(mine, self.machines, s.unit_cost[jobs])
        copy._copy(np.arange(len(rows)), self, rows)
        return copy

    def overwrite(self, rows: IntArray, source: "Simulator", which: IntArray) -> None:
        """Replace episodes with copies of another simulator's; each must have room for the jobs and their nodes.

        In a simulator with room, all episodes must be overwritten before they are played: then an episode's part of
        `held` begins at the same place as its jobs.
        """
        s, (jobs, bounds) = self._state, spans(source._state.first, which)
        begins, nodes = s.first[rows], np.append(0, np.cumsum(source._state.nodes[jobs]))
        each = np.repeat(begins - nodes[bounds[:-1]], np.diff(bounds))
        at = np.repeat(begins - bounds[:-1], np.diff(bounds)) + np.arange(len(jobs))
        s.held_first[begins], s.held_first[at + 1] = begins, each + nodes[1:]
        self._copy(rows, source, which)

    def _copy(self, rows: IntArray, source: "Simulator", which: IntArray) -> None:
        s, other = self._state, source._state
        copy_episodes(s, rows, other, which, LAYOUT)
        (mine, _), (theirs, _) = spans(s.first, rows), spans(other.first, which)
        s.held[spans(s.held_first, mine)[0]] = other.held[spans(other.held_first, theirs)[0]]
        self.jobs = JobsBatch._make(s[: len(JobsBatch._fields)])
        self._rows = np.flatnonzero(~s.done)


# Cost of a time unit of each job's presence [J], by objective. In bounded slowdown no job counts as shorter than 10
# time units (Feitelson).
COSTS: dict[str, Callable[[JobsBatch], FloatArray]] = {
    "slowdown": lambda jobs: np.asarray(1.0 / jobs.duration),
    "bounded_slowdown": lambda jobs: np.asarray(1.0 / np.maximum(jobs.duration, SHORTEST_BOUNDED)),
    "completion_time": lambda jobs: np.ones(len(jobs.duration)),
}


def costed(machines: Machines, objective: str, jobsets: Sequence[Jobs]) -> Simulator:
    """Return a simulator of some jobsets, with the costs of an objective, a key of COSTS; unmeasured jobs cost 0."""
    jobs = end_to_end(jobsets)
    cost = COSTS[objective](jobs)
    if machines.measured is not None:
        number = np.arange(len(cost)) - jobs.first[jobs.episode]
        cost[(number < machines.measured[0]) | (number >= machines.measured[1])] = 0.0
    return Simulator(jobs, machines, cost)
