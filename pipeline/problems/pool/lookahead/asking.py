"""Try each action of a decision in the simulator, and ask any policy what it does then, all copies in lock step.

For policies that no compiled roll-out can hold: networks that draw images, trees, rules of somebody's own. What is
tried, counted and added up is what `set_trying` does, and a test holds it to the same numbers.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from pipeline.core import BoolArray, FloatArray, IntArray, Policy, keys, uniform
from pipeline.problems.pool.nouns import Cluster
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.kernels import _forced, carry_out
from pipeline.problems.pool.simulator.compiled.state import Rules, State
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


class _Copies(Batched):
    """Copies of decisions as episodes, for what they show alone."""

    def __init__(self, state: State, rules: Rules, cluster: Cluster) -> None:
        self._state, self._rules, self.cluster = state, rules, cluster


class Asked(NamedTuple):
    """Who is asked."""

    policy: Policy
    lasting: FloatArray | None = None  # [F'] its draw in each future, all the time; None: a new one a decision


@dataclass(frozen=True)
class Copied:
    """D decisions, each copied for every action and future: N copies, in that order."""

    view: Seen  # of the copies, with one action each
    future: IntArray  # [N]
    known: FloatArray  # [N, 2 + R]
    draw: IntArray  # [N]  the same for every action of a decision


def copied(view: Seen, known: FloatArray, chosen: IntArray) -> Copied:
    """Return the copies of decisions; those of no action are there, too, and never played."""
    decisions, tries, most = len(view.now), view.action.shape[1], chosen.shape[1]
    whole = Seen._make(np.repeat(part, tries * most, axis=0) for part in view)
    action = np.repeat(view.action.reshape(-1), most)[:, None]
    future = np.tile(chosen[:, None, :], (1, tries, 1)).reshape(-1)
    draw = np.tile(np.arange(decisions * most).reshape(decisions, 1, most), (1, tries, 1)).reshape(-1)
    return Copied(whole._replace(action=action), future, np.repeat(known, tries * most, axis=0), draw)


def try_asking(
    s: State, rules: Rules, cluster: Cluster, view: Seen, known: FloatArray, asked: Asked, futures: Futures,
    chosen: IntArray, limits: Limits, tried: Tried,
) -> None:  # fmt: skip
    """Do as `set_trying.try_with_network`, with whoever is asked; the buffer must have room for every copy."""
    copies = copied(view, known, chosen)
    count, last = _played(s, rules, cluster, copies, asked, futures, limits)
    waiting, jobs, work = np.zeros((3, len(copies.future), 1, 1))
    each = Tried(waiting, jobs, work, np.zeros(len(copies.future), dtype=np.int64))
    _add_up(s, copies.view, last, limits, each)
    shape = (len(view.now), view.action.shape[1], chosen.shape[1])
    there = view.action >= 0
    spent = np.where(there[:, :, None], count.reshape(shape), 0).sum(axis=1).cumsum(axis=1)
    before = np.concatenate([np.zeros((len(spent), 1), dtype=np.int64), spent[:, :-1]], axis=1)
    kept = before < limits.decisions
    tried.futures[:] = kept.sum(axis=1)
    for whole, part in zip(tried[:3], each[:3], strict=True):
        whole[:] = np.where(there[:, :, None] & kept[:, None, :], part.reshape(shape), 0.0)


def _played(
    s: State, rules: Rules, cluster: Cluster, copies: Copied, asked: Asked, futures: Futures, limits: Limits
) -> tuple[IntArray, IntArray]:
    """Play all copies; return how many choices each had, and the place behind its last job."""
    number = len(copies.future)
    last, begun, over = np.zeros(number, dtype=np.int64), np.zeros(number, dtype=np.int64), np.zeros(number, bool)
    _begin_all(s, rules, copies.view, futures, copies.future, limits, last, begun)
    shown, turn = _Copies(s, rules, cluster), np.zeros(number, dtype=np.int64)
    key, sums = keys(0, copies.draw, np.zeros_like(copies.draw)), _sums(s)
    most = 1 if asked.lasting is None else len(asked.lasting)
    action = copies.view.action[:, 0]
    rows = np.flatnonzero(action >= 0)
    while len(rows):
        _go_on(s, rules, rows, action[rows], last, copies.view.now + limits.ahead, over)
        turn[rows] += 1
        rows = rows[~over[rows]]
        if len(rows):
            view = shown.observe(rows)
            known = copies.known[rows]
            so_far = np.where(known[:, :1] > 0, known + sums[s.to_come[rows]] - sums[begun[rows]], known)
            draws = uniform(key[rows], turn[rows]) if asked.lasting is None else asked.lasting[rows % most]
            action[rows] = asked.policy(view._replace(arrived=so_far), draws)
    return turn, last


def _sums(s: State) -> FloatArray:
    """Return the sums [J + 1, 2 + R] over the jobs before each of what observations tell of all that arrived."""
    steps = s.requested.astype(float)[:, None]
    each = np.concatenate([np.ones_like(steps), steps, steps * s.demand], axis=1)
    return np.concatenate([np.zeros((1, each.shape[1])), each.cumsum(axis=0)])


@njit(cache=True, parallel=True)
def _begin_all(
    s: State, rules: Rules, view: Seen, futures: Futures, future: IntArray, limits: Limits, last: IntArray,
    begun: IntArray,
) -> None:  # fmt: skip
    for i in prange(future.shape[0]):
        b = int(np.int64(i))
        last[b] = _write_jobs(s, b, view, futures, future[b], limits)
        _begin(s, rules, b, view, last[b])
        begun[b] = s.to_come[b]


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
        over[b] = _go_on_one(s, rules, b, action[i], last[b], end[b])


@njit(cache=True, parallel=True)
def _add_up(s: State, view: Seen, last: IntArray, limits: Limits, each: Tried) -> None:
    for i in prange(last.shape[0]):
        b = int(np.int64(i))
        _cost(s, b, view, last[b], view.now[b] + limits.ahead, each, 0, 0)
