"""Try each candidate of a decision in the simulator, and ask any policy what it does then, all copies in lock step.

For networks, which no compiled roll-out holds. What is tried, limited and added up is what `trying` does; a test holds
it to the same numbers. Where how numbers are added up within a network depends on how many it is asked of at once, the
copies of a decision are played apart from those of others: a decision must not depend on who else decides.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from pipeline.core import FloatArray, IntArray, Observation, Policy
from pipeline.problems.machines.lookahead.copying import Coming, begin_again, write_coming, write_known
from pipeline.problems.machines.lookahead.trying import Limits, Tries, _count, _slowdown
from pipeline.problems.machines.simulator.compiled.kernels import step_rows
from pipeline.problems.machines.simulator.compiled.observing import observe
from pipeline.problems.machines.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined

Liking = Callable[[Observation], FloatArray]  # (view) -> how much each action [D, A] is liked; -inf: it may not be


class Asked(NamedTuple):
    """A policy that is asked, as what looks ahead improves it."""

    policy: Policy
    plays_on: Policy  # in copies; it draws nothing
    likes: Liking
    alike: bool = False  # does it say the same of a state, to the last bit, whoever else it is asked of?


def liked(view: Observation, own: IntArray, likes: FloatArray, most: int) -> IntArray:
    """Return the candidates [D, C] of decisions, the policy's own first; -1 = no more.

    Behind it stand void and the other jobs, each on the machine where it is liked most, the best liked first. Of jobs
    that look the same one is enough.
    """
    count, slots, machines = view.legal.shape
    each = likes[:, :-1].reshape(count, slots, machines)
    action = np.concatenate(
        [each.argmax(axis=2) + np.arange(slots) * machines, np.full((count, 1), slots * machines)], 1
    )
    value = np.concatenate([each.max(axis=2), likes[:, -1:]], axis=1)
    rows, mine = np.arange(count), np.minimum(own // machines, slots)
    action[rows, mine], value[rows, mine] = own, np.inf
    looks = np.concatenate([view.duration[:, :, None], view.nodes[:, :, None], view.demand, view.legal], axis=2)
    same = (looks[:, :, None] == looks[:, None]).all(axis=3)
    before = (value[:, None, :slots] > value[:, :slots, None]) | (
        (value[:, None, :slots] == value[:, :slots, None]) & np.tri(slots, k=-1, dtype=bool)
    )
    value[:, :slots] = np.where((same & before).any(axis=2), -np.inf, value[:, :slots])
    order = np.argsort(-value, axis=1, kind="stable")[:, :most]
    return np.where(np.isneginf(np.take_along_axis(value, order, 1)), -1, np.take_along_axis(action, order, 1))


def try_asking(t: State, rules: Rules, policy: Policy, s: State, coming: Coming, tries: Tries, limits: Limits) -> None:
    """Do as `trying.try_moves`, with any policy; there must be a copy for each decision, future and candidate."""
    last = np.zeros(tries.cost.size, dtype=np.int64)
    _begin_all(t, s, coming, tries, limits, last)
    rows = np.flatnonzero(last)
    action = np.repeat(tries.action, tries.cost.shape[2], axis=0).reshape(-1)[rows]
    while len(rows):
        step_rows(t, rules, rows, action)
        rows = rows[~t.done[rows]]
        if len(rows):
            action = policy(observe(t, rules, rows), np.zeros(len(rows)))
    _add_up(t, s, tries, last)


@inlined
def _begin(t: State, s: State, coming: Coming, tries: Tries, limits: Limits, last: IntArray, e: int) -> None:
    """Write a copy; those that are not played have no last job."""
    most, futures = tries.action.shape[1], tries.begin.shape[1]
    i, f, c = e // (most * futures), e // most % futures, e % most
    b, count = tries.rows[i], _count(s, tries, limits, i, f)
    if c >= count or count < 2:
        return
    known = write_known(t, e, s, b, coming, tries.key[i, f])
    last[e] = write_coming(t, e, s, b, coming, tries.begin[i, f], limits.jobs, known)
    begin_again(t, e, s, b, last[e])


@njit(cache=True, parallel=True)
def _begin_all(t: State, s: State, coming: Coming, tries: Tries, limits: Limits, last: IntArray) -> None:
    for e in prange(last.shape[0]):
        _begin(t, s, coming, tries, limits, last, int(np.int64(e)))


@njit(cache=True)
def _add_up(t: State, s: State, tries: Tries, last: IntArray) -> None:
    most, futures = tries.action.shape[1], tries.begin.shape[1]
    for e in range(last.shape[0]):
        i = e // (most * futures)
        if last[e] > 0:
            first = t.first[e] + s.runs[tries.rows[i]]
            tries.cost[i, e % most, e // most % futures] = _slowdown(t, first, last[e])
