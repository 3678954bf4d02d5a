"""Many episodes in lock step, compiled."""

from collections.abc import Callable

import numpy as np

from pipeline.core import FloatArray, IntArray, Observation
from pipeline.problems.machines.nouns import JobsBatch, Machines, Placed
from pipeline.problems.machines.simulator.compiled.kernels import begin_all, step_rows
from pipeline.problems.machines.simulator.compiled.observing import observe
from pipeline.problems.machines.simulator.compiled.rules import Players, decide_rows, play_rows
from pipeline.problems.machines.simulator.compiled.state import Rules, empty_state


class Simulator:
    """The episodes of a batch; moves that leave no choice are played without asking."""

    def __init__(self, jobs: JobsBatch, machines: Machines, unit_cost: FloatArray) -> None:
        self.jobs = jobs
        self.machines = machines
        self._rules = Rules(machines.dispatch, machines.pause, machines.time_limit, machines.stall)
        self._state = empty_state(jobs, machines, unit_cost)
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

    def placed(self) -> Placed:
        """Return what has become of every job so far."""
        s = self._state
        return Placed(s.start.copy(), s.finish.copy(), s.machine.copy(), s.now.copy(), s.busy.copy())
