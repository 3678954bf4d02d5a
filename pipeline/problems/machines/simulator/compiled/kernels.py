"""How an episode goes on: one decision, then time passes until the next one is awaited; many episodes at once.

EASY backfilling can be decided again after every event. Others start behind the head in order of arrival (Lifka 1995),
or the shortest first by what is known of them (EASY-SJBF: Tsafrir, Etsion and Feitelson 2007).
"""

import numpy as np
from numba import njit, prange

from pipeline.core import IntArray
from pipeline.problems.machines.nouns import EASY_SHORTEST, GREEDY, TOGETHER
from pipeline.problems.machines.simulator.compiled.holding import (
    all_events,
    arrive,
    hold,
    may_start,
    next_arrival,
    one_event,
    reserve,
    start_behind,
)
from pipeline.problems.machines.simulator.compiled.placing import first_machine, fits, kind_suits, start, take_out
from pipeline.problems.machines.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined


@inlined
def start_or_backfill(s: State, rules: Rules, b: int, m: int, k: int) -> None:
    """Start the job of a slot if it fits; else start others that do not delay it, and go on to the next event."""
    head = s.slot_job[b, m]
    place = first_machine(s, b, head, k)
    if place >= 0:
        start(s, b, take_out(s, b, m), place)
        return
    reserved = reserve(s, rules, b, head, k)
    job = _next(s, rules, b, head, -1)
    while job >= 0:
        if may_start(s, rules, b, job, reserved):
            _leave(s, b, job)
            start_behind(s, rules, b, job, reserved)
        job = _next(s, rules, b, head, job)
    all_events(s, rules, b, np.inf)


@inlined
def _leave(s: State, b: int, job: int) -> None:
    """Take a job out of its slot, or out of the backlog."""
    for m in range(s.waiting[b]):
        if s.slot_job[b, m] == job:
            take_out(s, b, m)
            return
    s.behind[b] -= 1


@inlined
def _next(s: State, rules: Rules, b: int, head: int, last: int) -> int:
    """Return which waiting job is looked at behind the last one; -1 = none is left."""
    found = -1
    for m in range(s.waiting[b]):
        found = _nearer(s, rules, s.slot_job[b, m], head, last, found)
    if s.behind[b] > 0:
        for job in range(s.queue[b], s.to_come[b]):
            if np.isnan(s.start[job]):
                found = _nearer(s, rules, job, head, last, found)
    return found


@inlined
def _nearer(s: State, rules: Rules, job: int, head: int, last: int, found: int) -> int:
    if job == head or (last >= 0 and not _before(s, rules, last, job)):
        return found
    return job if found < 0 or _before(s, rules, job, found) else found


@inlined
def _before(s: State, rules: Rules, job: int, other: int) -> bool:
    if rules.dispatch == EASY_SHORTEST and s.estimate[job] != s.estimate[other]:
        return bool(s.estimate[job] < s.estimate[other])
    return job < other


@inlined
def awaits(s: State, rules: Rules, b: int) -> bool:
    """Return whether an episode awaits a decision."""
    return bool(s.fitting[b] > 0 if rules.dispatch == GREEDY else s.waiting[b] > 0)


@inlined
def could_ever(s: State, b: int, m: int, k: int) -> bool:
    """Return whether an idle machine could hold the job of a slot."""
    job = s.slot_job[b, m]
    for r in range(s.capacity.shape[1]):
        if s.demand[job, r] > s.capacity[k, r]:
            return False
    return kind_suits(s, job, k)


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
def _first_legal(s: State, b: int) -> int:
    for k in range(s.kind.shape[0]):
        if could_ever(s, b, 0, k):
            return k
    return 0


@inlined
def advance_episode(s: State, rules: Rules, b: int, action: int) -> None:
    """Carry out one decision, and go on to the next."""
    machines = s.kind.shape[0]
    m, k = action // machines, action % machines
    there = m < s.waiting[b]
    if rules.dispatch == GREEDY:
        if there and s.can[b, m, k] and fits(s, b, m):
            start(s, b, take_out(s, b, m), k)
        else:
            all_events(s, rules, b, rules.pause)
    else:
        if not (there and could_ever(s, b, m, k)):
            m, k = 0, _first_legal(s, b)
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
    """Let the first jobs arrive, and go on to the first decision of every episode."""
    for i in prange(s.now.shape[0]):
        _begin(s, rules, int(np.int64(i)))  # a call: numba takes writes to a tuple's arrays within prange for dead code


@njit(cache=True, parallel=True)
def step_rows(s: State, rules: Rules, rows: IntArray, actions: IntArray) -> int:
    """Carry out one decision in each of some episodes; return how many of them are over."""
    over = 0
    for i in prange(rows.shape[0]):
        advance_episode(s, rules, rows[i], actions[i])
        over += s.done[rows[i]]
    return over
