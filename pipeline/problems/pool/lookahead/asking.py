"""Try each action of a decision in the simulator, and ask any policy what it does then, all copies in lock step.

For policies that no compiled roll-out can hold: networks that draw images, trees, rules of somebody's own. What is
tried, counted and added up is what `set_trying` does, and a test holds it to the same numbers.
"""

import numpy as np
from numba import njit, prange

from pipeline.core import BoolArray, FloatArray, IntArray, Observation, Policy, keys
from pipeline.problems.pool.nouns import Cluster
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.kernels import _forced, carry_out
from pipeline.problems.pool.simulator.compiled.state import Rules, State, arrived_before
from pipeline.problems.pool.simulator.compiled.trying import (
    Futures,
    Limits,
    Seen,
    Tried,
    _begin,
    _cost,
    _waits,
    _write_jobs,
)
from pipeline.simulation.rollout import Turn, play_turns


class Copies(Batched):
    """D decisions as episodes, each copied for every action and future, in that order; cut where nothing is left."""

    def __init__(self, state: State, rules: Rules, cluster: Cluster) -> None:
        self._state, self._rules, self.cluster = state, rules, cluster

    def begin(self, view: Seen, known: FloatArray, futures: Futures, chosen: IntArray, limits: Limits) -> None:
        """Write all copies; those of no action are there, too, and never played."""
        s, self.shape = self._state, (*view.action.shape, chosen.shape[1])
        decision, _, _ = np.indices(self.shape).reshape(3, -1)
        self.last = np.zeros(len(decision), dtype=np.int64)
        _begin_all(s, self._rules, view, futures, chosen, limits, self.last)
        self._known, self._sums = known[decision], arrived_before(s.requested, s.demand)
        self._begun, self._end = s.to_come[: len(decision)].copy(), view.now[decision] + limits.ahead
        self.count = np.zeros(len(decision), dtype=np.int64)  # of choices
        self._rows = np.flatnonzero(np.repeat(view.action, chosen.shape[1]) >= 0)

    def step(self, rows: IntArray, actions: IntArray) -> None:
        """Carry out one decision in each of some copies, and the moves that leave no choice."""
        over = np.zeros(len(rows), dtype=bool)
        _go_on(self._state, self._rules, rows, actions, self.last, self._end, over)
        self.count[rows] += 1
        self._rows = rows[~over]

    def observe(self, rows: IntArray) -> Observation:
        """Return what the policy sees in some copies; of what arrived before the decision it knows what that tells."""
        known = self._known[rows]
        come = known + self._sums[self._state.to_come[rows]] - self._sums[self._begun[rows]]
        return super().observe(rows)._replace(arrived=np.where(known[:, :1] > 0, come, known))


def try_asking(
    copies: Copies, view: Seen, known: FloatArray, policy: Policy, lasting: FloatArray | None, futures: Futures,
    chosen: IntArray, limits: Limits, tried: Tried,
) -> None:  # fmt: skip
    """Do as `set_trying.try_with_network`, with whoever is asked; there must be room for every copy.

    `lasting` is the policy's draw [F'] in each future, all the time; None: a new one for every decision.
    """
    copies.begin(view, known, futures, chosen, limits)
    _, _, future = np.indices(copies.shape).reshape(3, -1)
    draw = np.repeat(np.arange(len(chosen)), copies.shape[1] * chosen.shape[1]) * chosen.shape[1] + future

    def decide(turn: Turn) -> IntArray:
        return policy(turn.view, turn.draws if lasting is None else lasting[future[turn.rows]])

    copies.step(copies.rows, np.repeat(view.action, chosen.shape[1])[copies.rows])
    for _ in play_turns(copies, decide, keys(0, draw, np.zeros_like(draw)), made=1):
        pass
    _add_up(copies._state, view, copies.last, limits, tried)
    spent = copies.count.reshape(copies.shape).sum(axis=1).cumsum(axis=1)
    kept = np.pad(spent, [(0, 0), (1, 0)])[:, :-1] < limits.decisions
    tried.futures[:] = kept.sum(axis=1)
    played = (view.action >= 0)[:, :, None] & kept[:, None, :]
    for part in tried[:3]:
        part[~played] = 0.0


@njit(cache=True, parallel=True)
def _begin_all(
    s: State, rules: Rules, view: Seen, futures: Futures, chosen: IntArray, limits: Limits, last: IntArray
) -> None:
    most = chosen.shape[1]
    for i in prange(last.shape[0]):
        b = int(np.int64(i))
        d = b // (view.action.shape[1] * most)
        last[b] = _write_jobs(s, b, view, d, futures, chosen[d, b % most], limits)
        _begin(s, rules, b, view, d, last[b])


@njit(cache=True)
def _go_on_one(s: State, rules: Rules, b: int, action: int, last: int, end: int) -> bool:
    """Carry out an action and the moves that leave no choice; return whether there is nothing left to choose."""
    while action >= 0:
        carry_out(s, rules, b, action)
        if s.now[b] >= end or (s.to_come[b] == last and not _waits(s, b)):
            return True
        action = _forced(s, rules, b)
    return False


@njit(cache=True, parallel=True)
def _go_on(
    s: State, rules: Rules, rows: IntArray, action: IntArray, last: IntArray, end: IntArray, over: BoolArray
) -> None:
    for i in prange(rows.shape[0]):
        b = rows[i]
        over[i] = _go_on_one(s, rules, b, action[i], last[b], end[b])


@njit(cache=True, parallel=True)
def _add_up(s: State, view: Seen, last: IntArray, limits: Limits, tried: Tried) -> None:
    tries, most = view.action.shape[1], tried.waiting.shape[2]
    for i in prange(last.shape[0]):
        b = int(np.int64(i))
        d = b // (tries * most)
        _cost(s, b, view.now[d], last[b], view.now[d] + limits.ahead, tried, d, b // most % tries, b % most)
