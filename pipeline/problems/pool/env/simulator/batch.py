"""Compiled simulator: many episodes in lock step, observations in compact integers."""

from typing import Any

import numpy as np
from numba import njit

from pipeline.core.types import FloatArray, IntArray, Observation
from pipeline.problems.pool.env.nouns import Cluster, CompactObservation, JobBatch, Schedule, cell_type
from pipeline.problems.pool.env.simulator.kernels import begin_all, may_pass, step_rows
from pipeline.problems.pool.env.simulator.rewards import OBJECTIVES
from pipeline.problems.pool.env.simulator.rules import Players, decide_rows, play_rows
from pipeline.problems.pool.env.simulator.state import Rules, State, empty_state, state_under_way
from pipeline.simulation.compiled import Span, inlined, threaded
from pipeline.simulation.simulator import CompiledSimulator, Kernels, Layout, Played, copy_episodes, spans


@threaded(lambda s, rules, rows, *_: len(rows))
def observe(span: Span, s: State, rules: Rules, rows: IntArray, observed: CompactObservation) -> None:
    """Write the observations of some episodes in the form of `nouns.compact`."""
    free = flat(s)
    for i in range(*span):
        observe_one(s, rules, free, rows[i], observed, i)


@njit(cache=True)
def flat(s: State) -> IntArray:
    """Return the ring of free units as [B, T * R], not copied."""
    return s.free.reshape(s.free.shape[0], -1)


@inlined
def observe_one(s: State, rules: Rules, free: IntArray, b: int, observed: CompactObservation, i: int) -> None:
    """Write the observation of one episode; `free` is `flat(s)`.

    Indices are unsigned, because signed ones may count from the end, which keeps numba from vectorizing the copies.
    """
    steps, resources = s.free.shape[1], s.free.shape[2]
    slots, head, row = s.slot_job.shape[1], np.uintp(s.head[b] * resources), np.uintp(i)
    rest, b = np.uintp(steps * resources) - head, np.uintp(b)  # type: ignore[assignment]
    for k in range(rest):
        observed.cells[row, k] = free[b, head + k]
    for k in range(head):
        observed.cells[row, rest + k] = free[b, k]
    at = rest + head
    for m in range(np.uintp(slots)):
        observed.cells[row, at] = min(s.slot_duration[b, m], steps)
        for r in range(np.uintp(resources)):
            observed.cells[row, at + np.uintp(1) + r] = s.slot_demand[b, m, r]
        at += np.uintp(1 + resources)
        observed.may[row, m] = s.legal[b, m]
    observed.may[i, slots] = may_pass(s, rules, b)
    observed.rest[i, 0] = s.to_come[b] - s.queue[b]
    observed.rest[i, 1] = s.now[b] - s.last_arrival[b]


ENDLESS = 2**62  # steps
LAYOUT = Layout(
    of_jobs=("arrival", "duration", "requested", "demand", "start", "withheld", "running"),
    numbers=("slot_job", "queue", "to_come", "running"),
    fixed=("capacity", "rewards"),
    sums=("arrived",),
)
FORKED = LAYOUT._replace(fixed=("capacity", "arrived"), sums=())  # copies count new arrivals from scratch


class Batched(CompiledSimulator[Players, IntArray]):
    """The episodes of a batch.

    With `skip_forced`, forced moves are carried out without asking the policy (exact for every policy that takes only
    `core.legal_actions`: probability 1, gradient 0). Episodes that will be overwritten must be `reusable`: then only
    the sum of their rewards is kept.
    """

    kernels = Kernels(step_rows, decide_rows, play_rows)
    _state: State

    def __init__(
        self,
        jobs: JobBatch,
        cluster: Cluster,
        step_limit: int,
        objective: str | None = None,
        skip_forced: bool = False,
        reusable: bool = False,
    ) -> None:
        self.jobs = jobs
        self.cluster = cluster
        code = 0 if objective is None else OBJECTIVES.index(objective)
        rewarded_steps = 0 if objective is None else 1 if reusable else step_limit
        self._state = empty_state(jobs, cluster, rewarded_steps, reusable)
        estimated = len(self._state.running) > 0
        end = -1 if cluster.arrivals_end is None else cluster.arrivals_end
        about = (cluster.place_ahead, step_limit, code, skip_forced, estimated, cluster.stalled_after, end)
        self._rules = Rules(*about, *(cluster.measured or ()))
        begin_all(self._state, self._rules)
        self._rows: IntArray = np.flatnonzero(~self._state.done)

    @classmethod
    def under_way(cls, jobs: JobBatch, cluster: Cluster, *others: Any) -> "Batched":
        """Return one episode under way, without limit and rewards; for `others` see `state_under_way`."""
        found, cluster = object.__new__(cls), cluster._replace(measured=None)
        found.jobs, found.cluster = jobs, cluster
        end = -1 if cluster.arrivals_end is None else cluster.arrivals_end
        found._rules = Rules(cluster.place_ahead, ENDLESS, 0, False, False, cluster.stalled_after, end)
        found._state = state_under_way(jobs, cluster, *others)
        found._rows = np.flatnonzero(~found._state.done)
        return found

    def fork(self, episodes: IntArray) -> "Batched":
        """Return independent copies of some episodes; repetitions are allowed."""
        copy = object.__new__(Batched)
        copy.jobs, copy.cluster, copy._rules = self.jobs.take(episodes), self.cluster, self._rules
        copy._state = empty_state(copy.jobs, self.cluster, self.rewards.shape[1], self._rules.estimated)
        copy_episodes(copy._state, np.arange(len(episodes)), self._state, episodes, FORKED)
        copy._rows = np.flatnonzero(~copy._state.done)
        return copy

    @property
    def rewards(self) -> FloatArray:
        """Return the reward [B, step_limit] of every step [t, t + 1), 0 after the end; [B, 0] without an objective."""
        return self._state.rewards

    @property
    def gained(self) -> FloatArray:
        """Return the rewards [B] of every episode so far; 0 without an objective."""
        return self._state.gained

    def observe(self, rows: IntArray) -> Observation:
        """Return the observations of some episodes, as copies."""
        s, end = self._state, self._rules.arrivals_end
        steps = s.free.shape[1]
        ring = (s.head[rows][:, None] + np.arange(steps)) % steps
        job = s.slot_job[rows]
        queue = s.queue[rows]
        waits = queue < s.to_come[rows]
        head = np.minimum(queue, len(s.duration) - 1)
        now = s.now[rows]
        return Observation(
            free=s.free[rows[:, None], ring][:, None],
            demand=s.slot_demand[rows],
            duration=s.slot_duration[rows],
            waited=np.where(job >= 0, now[:, None] - s.arrival[job], 0),
            backlog=s.to_come[rows] - queue,
            backlog_head=np.where(waits[:, None], np.column_stack([s.requested[head], s.demand[head]]), 0),
            capacity=np.broadcast_to(s.capacity, (len(rows), 1, len(s.capacity))),
            since_arrival=now - s.last_arrival[rows],
            legal=s.legal[rows][:, :, None],
            fits_now=s.fits_now[rows][:, :, None],
            now=now,
            nodes=(job >= 0).astype(np.int64),
            fits_in=np.zeros(job.shape),
            arrived=s.arrived[s.to_come[rows]] - s.arrived[s.first[rows]],
            may_idle=now - s.last_arrival[rows] < self._rules.stall,
            to_end=np.full(len(now), np.inf) if end < 0 else np.maximum(end - now, 0).astype(float),
            load=s.load[rows],
        )

    def compact_buffer(self, count: int) -> CompactObservation:
        """Return empty arrays for `count` compact observations."""
        _, steps, resources = self._state.free.shape
        slots = self._state.slot_job.shape[1]
        kind = cell_type(max(steps, int(self._state.capacity.max())))
        return CompactObservation(
            np.empty((count, steps * resources + slots * (1 + resources)), dtype=kind),
            np.empty((count, 2), dtype=np.int32),
            np.empty((count, slots + 1), dtype=np.bool_),
        )

    def observe_compact(self, rows: IntArray, observed: CompactObservation) -> None:
        """Write the observations of some episodes into compact arrays, as long as `rows`."""
        observe(self._state, self._rules, rows, observed)

    @property
    def started(self) -> int:
        """Return the number of jobs with a start, including future starts."""
        s = self._state
        return int((s.queue - s.first[:-1]).sum()) - int((s.slot_job >= 0).sum())

    def schedule(self) -> Schedule:
        """Return the outcome of every job so far."""
        s = self._state
        end = s.start + s.duration
        finish = np.where(
            (s.start >= 0) & (end <= self._known_until(np.arange(len(s.now)))[self.jobs.episode]), end, -1
        )
        return Schedule(s.start.copy(), finish, s.withheld.copy(), s.now.copy(), s.withheld_steps.copy(), s.used.copy())

    def _known_until(self, rows: IntArray) -> IntArray:
        """Return the step [B] up to which ends of jobs are known; in a stream that is over, all of them are."""
        s, stream = self._state, self.cluster.measured is not None
        return np.where(s.done[rows] & stream, ENDLESS, s.now[rows])

    def played(self, rows: IntArray) -> Played:
        """Return the outcome so far of the jobs of some episodes."""
        s, (jobs, bounds) = self._state, spans(self._state.first, rows)
        start: FloatArray = np.where(s.start[jobs] >= 0, s.start[jobs], np.nan)
        end: FloatArray = start + s.duration[jobs]
        finish = np.where(end <= np.repeat(self._known_until(rows), np.diff(bounds)), end, np.nan)
        return Played(bounds, s.arrival[jobs], s.duration[jobs], start, finish, s.now[rows])

    def overwrite(self, rows: IntArray, source: "Batched", which: IntArray) -> None:
        """Overwrite episodes, which must have room, with copies of another simulator's."""
        copy_episodes(self._state, rows, source._state, which, LAYOUT)
        s = self._state
        estimate = s.requested if self._rules.estimated else None
        self.jobs = JobBatch(s.first, s.arrival, s.duration, s.demand, estimate, s.load)
        self._rows = np.flatnonzero(~self._state.done)
