"""Many episodes in lock step, compiled."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pipeline.core import BoolArray, FloatArray, IntArray, Observation
from pipeline.problems.machines.nouns import JobsBatch, Machines, Placed
from pipeline.problems.machines.simulator.compiled.kernels import begin_all, step_rows
from pipeline.problems.machines.simulator.compiled.observing import observe
from pipeline.problems.machines.simulator.compiled.rules import Players, decide_rows, play_rows
from pipeline.problems.machines.simulator.compiled.state import Rules, State, empty_state, state_under_way
from pipeline.simulation.simulator import Layout, Played, copy_episodes, spans

TIMES = ("arrival", "duration", "estimate", "unit_cost", "start", "finish", "ends", "estimated")
LAYOUT = Layout(
    of_jobs=(*TIMES, "demand", "nodes", "kinds", "machine", "running", "rank"),
    numbers=("running", "slot_job", "queue", "to_come"),
    fixed=("capacity", "total", "kind", "held_first", "held", "order", "spare"),
)


class Simulator:
    """The episodes of a batch; moves that leave no choice are played without asking."""

    def __init__(self, jobs: JobsBatch, machines: Machines, unit_cost: FloatArray) -> None:
        self._hold(jobs, machines, empty_state(jobs, machines, unit_cost))
        begin_all(self._state, self._rules)
        self._rows = np.flatnonzero(~self._state.done)

    @classmethod
    def under_way(cls, jobs: JobsBatch, machines: Machines, ahead: bool, *others: Any) -> "Simulator":
        """Return an episode that is under way; without `ahead`, `fits_in` is 0. Other arguments: `state_under_way`."""
        found = object.__new__(cls)
        found._hold(jobs, machines, state_under_way(jobs, machines, *others), ahead)
        return found

    def _hold(self, jobs: JobsBatch, machines: Machines, state: State, ahead: bool = True) -> None:
        self.jobs, self.machines, self._state = jobs, machines, state
        self._rules = Rules(machines.dispatch, machines.pause, machines.time_limit, machines.stall, ahead)
        self._rows = np.flatnonzero(~state.done)

    @property
    def rows(self) -> IntArray:
        """Return the episodes that await a decision."""
        return self._rows

    @property
    def now(self) -> FloatArray:
        """Return the time [B] of every episode."""
        return self._state.now

    @property
    def gained(self) -> FloatArray:
        """Return the rewards [B] so far: minus what the jobs' presence has cost."""
        return -self._state.cost

    def ended(self, rows: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return which of some episodes are over, and which of these were cut."""
        s, over = self._state, self._state.done[rows]
        return over, over & (s.finished[rows] < s.first[rows + 1] - s.first[rows])

    @property
    def placed_jobs(self) -> int:
        """Return how many jobs have been started."""
        s = self._state
        return int((s.finished + s.runs).sum())

    @property
    def held(self) -> tuple[IntArray, IntArray]:
        """Return where the machines of each job stand [J + 1], and those machines: -1 = not started."""
        return self._state.held_first, self._state.held.copy()

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
        return observe(self._state, self._rules, rows)

    def fits_in(self, row: int) -> FloatArray:
        """Return how long it takes until the job of each slot [M] fits, also where observations leave it out."""
        return np.asarray(observe(self._state, self._rules._replace(ahead=True), np.array([row])).fits_in[0])

    def placed(self) -> Placed:
        """Return what has become of every job so far."""
        s = self._state
        return Placed(s.start.copy(), s.finish.copy(), s.machine.copy(), s.now.copy(), s.busy.copy())

    def played(self, rows: IntArray) -> Played:
        """Return what became of the jobs of some episodes so far."""
        s, (jobs, bounds) = self._state, spans(self._state.first, rows)
        return Played(bounds, s.arrival[jobs], s.duration[jobs], s.start[jobs], s.finish[jobs], s.now[rows])

    def fork(self, rows: IntArray) -> "Simulator":
        """Return copies of some episodes, each to be continued on its own; one may be named often."""
        s, (jobs, bounds) = self._state, spans(self._state.first, rows)
        mine = JobsBatch(bounds, *(getattr(s, name)[jobs] for name in JobsBatch._fields[1:]))
        copy = Simulator(mine, self.machines, s.unit_cost[jobs])
        copy._copy(np.arange(len(rows)), self, rows)
        return copy

    def overwrite(self, rows: IntArray, source: "Simulator", which: IntArray) -> None:
        """Replace episodes by copies of another simulator's; each must have room for its jobs and for their nodes.

        All of a simulator with room are overwritten before they are played: then an episode's part of `held` begins
        where its jobs do.
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
