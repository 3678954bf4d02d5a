"""How an interval passes, event by event; many episodes at once."""

import numpy as np
from numba import njit, prange

from pipeline.core import FloatArray, IntArray
from pipeline.problems.groups.nouns import RECENT
from pipeline.problems.groups.simulator.compiled.starting import (
    charge,
    mark,
    mark_all,
    may_run_out,
    start_each,
    start_in_turn,
)
from pipeline.problems.groups.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined, pop, push

# How an interval is played: for good or on a desk; as if groups could not meet; by estimates alone.
LASTING, ALONE, BY_ESTIMATE = 1, 2, 4


@inlined
def _next_arrival(s: State, b: int, x: int) -> float:
    return float(s.arrival[s.to_come[x]]) if s.to_come[x] < s.first[b + 1] else np.inf


@inlined
def _next_end(s: State, x: int) -> float:
    return float(s.ends[s.running[s.base[x]]]) if s.runs[x] > 0 else np.inf


@inlined
def _end(s: State, b: int, x: int) -> int:
    """Let the job that ends first give its units back; return it."""
    job = pop(s.running, s.base[x], s.runs[x], s.ends, s.rank) - s.base[x] + s.first[b]
    s.runs[x] -= 1
    for r in range(s.capacity.shape[0]):
        s.used[x, s.group[job], r] -= s.demand[job, r]
        s.free[x, r] += s.demand[job, r]
    return int(job)


@inlined
def _events(s: State, b: int, x: int, now: float, last_arrival: float, scarce: bool, tried: int) -> int:
    """Handle all that happens by a time; return how many groups are to be tried, with those that already are."""
    ended = False
    while _next_end(s, x) <= now:
        job = _end(s, b, x)
        tried, ended = mark(s, x, s.group[job], tried), True
    while _next_arrival(s, b, x) <= min(now, last_arrival):
        job = s.to_come[x]
        s.to_come[x] = job + 1
        if s.head[x, s.group[job], s.queue[job]] == job:  # else it waits for others of its queue
            tried = mark(s, x, s.group[job], tried)
    return mark_all(s, x, tried) if ended and scarce else tried


@inlined
def _play(s: State, rules: Rules, b: int, x: int, how: int) -> None:
    """Let an interval pass in a row whose shares and orders have been set."""
    begin, until = s.number[b] * rules.interval, (s.number[b] + 1) * rules.interval
    by_estimate, scarce = how & BY_ESTIMATE != 0, how & ALONE == 0 and (rules.borrowing or may_run_out(s, x))
    last_arrival = -np.inf if by_estimate else until
    for g in range(s.used.shape[1]):
        s.cost[x, g] = 0.0
    now, tried = begin, mark_all(s, x, 0)
    while True:
        tried = _events(s, b, x, now, last_arrival, scarce, tried)
        if now >= until:
            break
        if scarce:
            start_in_turn(s, b, x, tried, rules.borrowing, begin, now, by_estimate)
        else:
            start_each(s, b, x, tried, begin, now, by_estimate)
        arrival = _next_arrival(s, b, x)
        now = min(_next_end(s, x), arrival if arrival <= last_arrival else until, until)
        tried = 0
    for k in range(tried):
        s.marked[x, s.tried[x, k]] = False
    _charge_waiting(s, x, begin, until)


@inlined
def _charge_waiting(s: State, x: int, begin: float, until: float) -> None:
    """Charge those who wait at an interval's end."""
    for g in range(s.head.shape[1]):
        for q in range(s.head.shape[2]):
            job = s.head[x, g, q]
            while job < s.to_come[x]:
                charge(s, x, job, begin, until)
                job = s.behind[job]


@inlined
def _set(s: State, x: int, share: IntArray, order: IntArray, i: int) -> None:
    for g in range(order.shape[1]):
        s.order[x, g] = order[i, g]
        for r in range(share.shape[2]):
            s.share[x, g, r] = share[i, g, r]


@inlined
def _copy(s: State, b: int, x: int, by_estimate: bool) -> None:
    """Copy an episode to a desk; or by estimates: its running jobs end when these say."""
    s.to_come[x] = s.to_come[b]
    s.runs[x] = 0
    for k in range(s.runs[b]):
        job = s.running[s.base[b] + k]
        place = job + s.base[x] - s.base[b]
        s.ends[place] = s.start[job] + s.estimate[job] if by_estimate else s.ends[job]
        push(s.running, s.base[x], k, s.ends, s.rank, place)
    s.runs[x] = s.runs[b]
    for r in range(s.capacity.shape[0]):
        s.free[x, r] = s.free[b, r]
    for g in range(s.used.shape[1]):
        for r in range(s.capacity.shape[0]):
            s.used[x, g, r] = s.used[b, g, r]
        for q in range(s.head.shape[2]):
            s.head[x, g, q] = s.head[b, g, q]


@inlined
def _settle(s: State, rules: Rules, b: int, arrived: int) -> None:
    """Smooth the counts of arrivals since job `arrived`, and see whether the episode is over."""
    for g in range(s.head.shape[1]):
        for q in range(s.head.shape[2]):
            s.recent_jobs[b, g, q] *= 1.0 - RECENT
            s.recent_work[b, g, q] *= 1.0 - RECENT
    for job in range(arrived, s.to_come[b]):
        g, q = s.group[job], s.queue[job]
        s.recent_jobs[b, g, q] += RECENT
        s.recent_work[b, g, q] += RECENT * (s.estimate[job] * s.held[job])
    s.over[b] = not _work_left(s, b) or s.number[b] * rules.interval >= rules.time_limit


@inlined
def _work_left(s: State, b: int) -> bool:
    """Return whether a job waits or is still to arrive."""
    for g in range(s.head.shape[1]):
        for q in range(s.head.shape[2]):
            if s.head[b, g, q] < s.first[b + 1]:
                return True
    return False


@inlined
def _begin(s: State, rules: Rules, b: int) -> None:
    while _next_arrival(s, b, b) <= 0.0:
        s.to_come[b] += 1
    _settle(s, rules, b, s.first[b])


@inlined
def _go_on(
    s: State, rules: Rules, b: int, desk: int, share: IntArray, order: IntArray, how: int, costs: FloatArray, i: int
) -> None:
    """Play an interval, for good or on a desk, and write what it costs every group."""
    lasting = how & LASTING != 0
    x, arrived = b if lasting else desk, s.to_come[b]
    if not lasting:
        _copy(s, b, x, how & BY_ESTIMATE != 0)
    _set(s, x, share, order, i)
    _play(s, rules, b, x, how)
    for g in range(s.cost.shape[1]):
        costs[i, g] = s.cost[x, g]
    if lasting:
        s.number[b] += 1
        _settle(s, rules, b, arrived)


@njit(cache=True, parallel=True)
def begin_all(s: State, rules: Rules) -> None:
    """Let the first jobs of every episode arrive."""
    for i in prange(s.number.shape[0]):
        _begin(s, rules, int(np.int64(i)))  # a call: numba takes writes to a tuple's arrays within prange for dead code


@njit(cache=True, parallel=True)
def play_rows(
    s: State, rules: Rules, rows: IntArray, share: IntArray, order: IntArray, how: int, costs: FloatArray
) -> None:
    """Play an interval in each of some episodes, and write what it costs every group.

    Unless it is for good, an episode may be named often. Each desk has the same part of the rows whoever works at it.
    """
    count, episodes = rows.shape[0], s.number.shape[0]
    desks = s.base.shape[0] - episodes
    for desk in prange(desks):
        for i in range(desk * count // desks, (desk + 1) * count // desks):
            _go_on(s, rules, rows[i], episodes + desk, share, order, how, costs, i)
