"""Many event-driven episodes in lock step, compiled."""

from collections.abc import Callable

import numpy as np
from numba import njit, prange

from pipeline.core import BoolArray, FloatArray, IntArray, Observation
from pipeline.machines import EASY, GREEDY, JobsBatch, Machines, Placed
from pipeline.simulator.events.kernels import begin_all, could_ever, step_rows
from pipeline.simulator.events.rules import Players, decide_rows, play_rows
from pipeline.simulator.events.state import Rules, State, empty_state


class Events:
    """The episodes of a batch; moves that leave no choice are played without asking."""

    def __init__(self, jobs: JobsBatch, machines: Machines, weight: FloatArray) -> None:
        self.jobs = jobs
        self.machines = machines
        self._rules = Rules(machines.dispatch, machines.pause, machines.time_limit)
        self._state = empty_state(jobs, machines, weight, machines.dispatch >= EASY)
        begin_all(self._state, self._rules)
        self._rows = np.flatnonzero(~self._state.done)

    @property
    def rows(self) -> IntArray:
        """Return the episodes that await a decision."""
        return self._rows

    @property
    def now(self) -> FloatArray:
        """Return the time [B] of every episode."""
        return self._state.now

    @property
    def cost(self) -> FloatArray:
        """Return what the jobs' presence has cost so far [B]."""
        return self._state.cost

    @property
    def placed_jobs(self) -> int:
        """Return how many jobs have been started."""
        s = self._state
        return int((s.finished + s.runs).sum())

    def step(self, rows: IntArray, actions: IntArray) -> None:
        """Carry out one decision in each of some episodes."""
        if step_rows(self._state, self._rules, rows, actions):
            self._rows = np.flatnonzero(~self._state.done)

    def decide(self, rows: IntArray, who: Players) -> IntArray:
        """Return what compiled heuristics do next in some episodes; the decisions are counted, but not carried out."""
        actions = np.empty(len(rows), dtype=np.int64)
        decide_rows(self._state, self._rules, rows, who, actions)
        return actions

    def play(self, rows: IntArray, who: Players, most: int) -> None:
        """Let compiled heuristics play some episodes to their end, or for at most so many decisions each."""
        self.hand_over(play_rows, rows, who, most)

    def hand_over(self, kernel: Callable[..., int], rows: IntArray, *others: object) -> None:
        """Let a kernel go on with some episodes: (state, rules, rows, others) -> how many of them are over."""
        if kernel(self._state, self._rules, rows, *others):
            self._rows = np.flatnonzero(~self._state.done)

    def observe(self, rows: IntArray) -> Observation:
        """Return what the policy sees in some episodes, as copies."""
        s = self._state
        job = s.slot_job[rows]
        there = job >= 0
        fits = s.can[rows] & (there & (s.able[rows] >= s.nodes[job]))[:, :, None]
        legal = fits if self.machines.dispatch == GREEDY else legal_rows(s, rows)
        now = s.now[rows]
        head = backlog_heads(s, rows)
        behind = head >= 0
        return Observation(
            free=s.free[rows][:, :, None],
            demand=np.where(there[:, :, None], s.demand[job], 0),
            duration=np.where(there, s.seen[job], 0.0),
            waited=np.where(there, now[:, None] - s.arrival[job], 0.0),
            backlog=s.behind[rows],
            backlog_head=np.where(behind[:, None], np.column_stack([s.seen[head], s.demand[head]]), 0.0),
            capacity=np.broadcast_to(s.capacity, (len(rows), *s.capacity.shape)),
            since_arrival=now - s.last_arrival[rows],
            legal=legal,
            fits_now=fits,
            now=now,
            nodes=np.where(there, s.nodes[job], 0),
        )

    def placed(self) -> Placed:
        """Return what has become of every job so far."""
        s = self._state
        return Placed(s.start.copy(), s.finish.copy(), s.machine.copy(), s.now.copy(), s.busy.copy())


@njit(cache=True, parallel=True)
def legal_rows(s: State, rows: IntArray) -> BoolArray:
    """Return which (job, machine) [B', M, K] may be chosen where a job need not fit."""
    legal = np.zeros((rows.shape[0], s.slot_job.shape[1], s.kind.shape[0]), dtype=np.bool_)
    for i in prange(rows.shape[0]):
        b = rows[i]
        for m in range(s.waiting[b]):
            for k in range(s.kind.shape[0]):
                legal[i, m, k] = could_ever(s, b, m, k)
    return legal


@njit(cache=True)
def backlog_heads(s: State, rows: IntArray) -> IntArray:
    """Return the first job behind the slots [B']; -1 where there is none."""
    head = np.full(rows.shape[0], -1, dtype=np.int64)
    for i in range(rows.shape[0]):
        b = rows[i]
        if s.behind[b] > 0:
            job = s.queue[b]
            while not np.isnan(s.start[job]):
                job += 1
            head[i] = job
    return head
