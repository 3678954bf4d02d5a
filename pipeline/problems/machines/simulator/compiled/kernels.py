"""One decision, then time passes until the next one is awaited; many episodes at once."""

import numpy as np
from numba import njit, prange

from pipeline.core import IntArray
from pipeline.problems.machines.nouns import GREEDY, TOGETHER
from pipeline.problems.machines.simulator.compiled.placement import (
    all_events,
    arrive,
    fits,
    holds,
    next_arrival,
    one_event,
    start,
    take_out,
)
from pipeline.problems.machines.simulator.compiled.reservations import hold, start_or_backfill
from pipeline.problems.machines.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined


@inlined
def awaits(s: State, rules: Rules, b: int) -> bool:
    """Return whether an episode awaits a decision."""
    return bool(s.fitting[b] > 0 if rules.dispatch == GREEDY else s.waiting[b] > 0)


@inlined
def _end_if_measured(s: State, rules: Rules, b: int) -> None:
    """End an episode whose measured jobs have all started; or whose arrivals are over, since they must continue."""
    if rules.measured > 0:
        last = s.first[b] + rules.measured
        while s.to_start[b] < last and not np.isnan(s.start[s.to_start[b]]):
            s.to_start[b] += 1
        s.done[b] = s.done[b] or s.to_start[b] == last or s.to_come[b] == s.first[b + 1]


@inlined
def _settle(s: State, rules: Rules, b: int) -> None:
    _end_if_measured(s, rules, b)
    while not (s.done[b] or awaits(s, rules, b)):
        if rules.dispatch in TOGETHER:
            all_events(s, rules, b, np.inf)
        else:
            one_event(s, rules, b)
        _end_if_measured(s, rules, b)


@inlined
def apply_action(s: State, rules: Rules, b: int, action: int) -> None:
    """Carry out one decision, and continue to the next."""
    machines = s.kind.shape[0]
    m, k = action // machines, action % machines
    there = m < s.waiting[b]
    if rules.dispatch == GREEDY:
        if there and s.can[b, m, k] and fits(s, b, m):
            start(s, b, take_out(s, b, m), k)
        else:
            all_events(s, rules, b, rules.pause)
    else:
        if not (there and holds(s, s.slot_job[b, m], k, s.capacity[k])):  # the first legal action
            m, k = 0, 0
            while k < machines and not holds(s, s.slot_job[b, 0], k, s.capacity[k]):
                k += 1
            k = k if k < machines else 0
        if rules.dispatch in TOGETHER:
            start_or_backfill(s, rules, b, m, k)
        else:
            hold(s, rules, b, m, k)
    _settle(s, rules, b)


@inlined
def _begin(s: State, rules: Rules, b: int) -> None:
    s.done[b] = s.first[b] == s.first[b + 1]
    if not s.done[b]:
        arrive(s, b)
        while rules.dispatch in TOGETHER and next_arrival(s, b) <= s.now[b]:
            arrive(s, b)
        _settle(s, rules, b)


@njit(cache=True, parallel=True)
def begin_all(s: State, rules: Rules) -> None:
    """Let the first jobs arrive, and continue to the first decision of every episode."""
    for i in prange(s.now.shape[0]):
        _begin(s, rules, int(np.int64(i)))  # a call: numba takes writes to a tuple's arrays within prange for dead code


@njit(cache=True, parallel=True)
def step_rows(s: State, rules: Rules, rows: IntArray, actions: IntArray) -> int:
    """Carry out one decision in each of some episodes; return how many of them are over."""
    over = 0
    for i in prange(rows.shape[0]):
        apply_action(s, rules, rows[i], actions[i])
        over += s.done[rows[i]]
    return over
