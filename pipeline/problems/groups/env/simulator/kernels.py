"""The events of an interval, for many episodes at once.

b is the episode, x the row of the state in which it is played. A group is tried only when it may have a job to start:
after one of its own events or, where units may run out, when units are released. Other events do not allow new starts.
"""

import numpy as np

from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.groups.env.nouns import RECENT
from pipeline.problems.groups.env.simulator.state import Rules, State
from pipeline.simulation.compiled import Span, inlined, pop, push, threaded

# Flags of an interval: it changes the episode (else, a copy in a scratch row); groups do not compete; run times are the
# estimates.
LASTING, ISOLATED, BY_ESTIMATE = 1, 2, 4

# The limits of a start: the group's share; the free units of the cluster; both.
SHARE, FREE, BOTH = range(3)


@inlined
def _next_arrival(s: State, b: int, x: int) -> float:
    return float(s.arrival[s.to_come[x]]) if s.to_come[x] < s.first[b + 1] else np.inf


@inlined
def _next_end(s: State, x: int) -> float:
    return float(s.ends[s.running[s.base[x]]]) if s.runs[x] > 0 else np.inf


@inlined
def _may_run_out(s: State, x: int) -> bool:
    """Return whether, before the next setting, the cluster may lack units for a job that its group's share allows.

    Without borrowing, a group uses no more than its share, or than it used when the share was set.
    """
    for r in range(s.capacity.shape[0]):
        most = 0
        for g in range(s.used.shape[1]):
            most += max(s.used[x, g, r], s.share[x, g, r])
        if most > s.capacity[r]:
            return True
    return False


@inlined
def _mark(s: State, x: int, g: int, tried: int) -> int:
    """Add a group to the `tried` groups that are to be tried; return the new number."""
    if s.marked[x, g]:
        return tried
    s.marked[x, g] = True
    s.tried[x, tried] = g
    return tried + 1


@inlined
def _mark_all(s: State, x: int, tried: int) -> int:
    """Add every group with a waiting job."""
    for g in range(s.head.shape[1]):
        for q in range(s.head.shape[2]):
            if s.head[x, g, q] < s.to_come[x]:
                tried = _mark(s, x, g, tried)
                break
    return tried


@inlined
def _candidate(s: State, x: int, g: int, rule: int) -> int:
    """Return the job that a group would start next; -1 = none."""
    for place in range(s.head.shape[2]):
        job = s.head[x, g, s.orders[s.order[x, g], place]]
        if job < s.to_come[x]:
            fits = True
            for r in range(s.capacity.shape[0]):
                if rule != SHARE and s.demand[job, r] > s.free[x, r]:
                    fits = False
                if rule != FREE and s.used[x, g, r] + s.demand[job, r] > s.share[x, g, r]:
                    fits = False
            if fits:
                return int(job)
    return -1


@inlined
def _charge(s: State, x: int, job: int, begin: float, now: float) -> None:
    """Add the cost of a job's wait since the beginning of the interval to its group's cost."""
    s.cost[x, s.group[job]] += s.weight[job] * (now - max(s.arrival[job], begin))


@inlined
def _start(s: State, b: int, x: int, job: int, begin: float, now: float, by_estimate: bool) -> None:
    """Add the cost of a job's wait, and start the job."""
    _charge(s, x, job, begin, now)
    g, place = s.group[job], job + s.base[x] - s.first[b]
    s.head[x, g, s.queue[job]] = s.following[job]
    for r in range(s.capacity.shape[0]):
        s.used[x, g, r] += s.demand[job, r]
        s.free[x, r] -= s.demand[job, r]
    s.start[place] = now
    s.ends[place] = now + (s.estimate[job] if by_estimate else s.duration[job])
    push(s.running, s.base[x], s.runs[x], s.ends, s.rank, place)
    s.runs[x] += 1


@inlined
def _start_each(s: State, b: int, x: int, tried: int, begin: float, now: float, by_estimate: bool) -> None:
    """Start all jobs that the shares allow, group by group: no group can take units from another."""
    for k in range(tried):
        g = s.tried[x, k]
        s.marked[x, g] = False
        job = _candidate(s, x, g, SHARE)
        while job >= 0:
            _start(s, b, x, job, begin, now, by_estimate)
            job = _candidate(s, x, g, SHARE)


@inlined
def _see(s: State, x: int, g: int, rule: int, able: int) -> int:
    """Add a group's candidate, if it has one, to the `able` others; return the new number."""
    job = _candidate(s, x, g, rule)
    if job < 0:
        return able
    s.able[x, able] = g
    s.candidate[x, able] = job
    return able + 1


@inlined
def _start_in_turn(
    s: State, b: int, x: int, tried: int, borrowing: bool, begin: float, now: float, by_estimate: bool
) -> None:
    """Start the jobs within the shares, then those that borrow; of all candidates, the first to arrive starts next."""
    for turn in range(1 + borrowing):
        rule, able = FREE if turn == 1 else BOTH, 0
        for k in range(tried):
            s.marked[x, s.tried[x, k]] = False
            able = _see(s, x, s.tried[x, k], rule, able)
        while able > 0:
            job = s.candidate[x, 0]
            for k in range(1, able):
                job = min(job, s.candidate[x, k])
            _start(s, b, x, job, begin, now, by_estimate)
            still = able
            able = 0  # a group without a candidate gets none later: free units only decrease
            for k in range(still):
                able = _see(s, x, s.able[x, k], rule, able)


@inlined
def _events(s: State, b: int, x: int, now: float, last_arrival: float, scarce: bool, tried: int) -> int:
    """Handle all ends and arrivals up to a time; return the number of groups to try."""
    ended = False
    while _next_end(s, x) <= now:
        job = pop(s.running, s.base[x], s.runs[x], s.ends, s.rank) - s.base[x] + s.first[b]
        s.runs[x] -= 1
        for r in range(s.capacity.shape[0]):
            s.used[x, s.group[job], r] -= s.demand[job, r]
            s.free[x, r] += s.demand[job, r]
        tried, ended = _mark(s, x, s.group[job], tried), True
    while _next_arrival(s, b, x) <= min(now, last_arrival):
        job = s.to_come[x]
        s.to_come[x] = job + 1
        if s.head[x, s.group[job], s.queue[job]] == job:  # otherwise it waits for others of its queue
            tried = _mark(s, x, s.group[job], tried)
    return _mark_all(s, x, tried) if ended and scarce else tried


@inlined
def _play(s: State, rules: Rules, b: int, x: int, how: int) -> None:
    """Play an interval in a row whose shares and orders have been set."""
    begin, until = s.number[b] * rules.interval, (s.number[b] + 1) * rules.interval
    by_estimate, scarce = how & BY_ESTIMATE != 0, how & ISOLATED == 0 and (rules.borrowing or _may_run_out(s, x))
    last_arrival = -np.inf if by_estimate else until
    for g in range(s.used.shape[1]):
        s.cost[x, g] = 0.0
    now, tried = begin, _mark_all(s, x, 0)
    while True:
        tried = _events(s, b, x, now, last_arrival, scarce, tried)
        if now >= until:
            break
        if scarce:
            _start_in_turn(s, b, x, tried, rules.borrowing, begin, now, by_estimate)
        else:
            _start_each(s, b, x, tried, begin, now, by_estimate)
        arrival = _next_arrival(s, b, x)
        now = min(_next_end(s, x), arrival if arrival <= last_arrival else until, until)
        tried = 0
    for k in range(tried):
        s.marked[x, s.tried[x, k]] = False
    for g in range(s.head.shape[1]):
        for q in range(s.head.shape[2]):
            job = s.head[x, g, q]
            while job < s.to_come[x]:
                _charge(s, x, job, begin, until)
                job = s.following[job]


@inlined
def _copy(s: State, b: int, x: int, by_estimate: bool) -> None:
    """Copy an episode to a scratch row; if by estimates, running jobs end at their estimated times."""
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
    """Smooth the counts of arrivals since job `arrived`, and determine whether the episode is over."""
    work_left = False  # does a job wait, or is one still to arrive?
    for g in range(s.head.shape[1]):
        for q in range(s.head.shape[2]):
            s.recent_jobs[b, g, q] *= 1.0 - RECENT
            s.recent_work[b, g, q] *= 1.0 - RECENT
            work_left = work_left or s.head[b, g, q] < s.first[b + 1]
    for job in range(arrived, s.to_come[b]):
        g, q = s.group[job], s.queue[job]
        s.recent_jobs[b, g, q] += RECENT
        s.recent_work[b, g, q] += RECENT * (s.estimate[job] * s.held[job])
    s.over[b] = not work_left or s.number[b] * rules.interval >= rules.time_limit


@inlined
def _begin(s: State, rules: Rules, b: int) -> None:
    while _next_arrival(s, b, b) <= 0.0:
        s.to_come[b] += 1
    _settle(s, rules, b, s.first[b])


@inlined
def _play_interval(
    s: State, rules: Rules, b: int, scratch: int, share: IntArray, order: IntArray, how: int, costs: FloatArray, i: int
) -> None:
    """Play an interval in the episode or in a scratch row, and write its cost for each group."""
    lasting = how & LASTING != 0
    x, arrived = b if lasting else scratch, s.to_come[b]
    if not lasting:
        _copy(s, b, x, how & BY_ESTIMATE != 0)
    for g in range(order.shape[1]):
        s.order[x, g] = order[i, g]
        for r in range(share.shape[2]):
            s.share[x, g, r] = share[i, g, r]
    _play(s, rules, b, x, how)
    for g in range(s.cost.shape[1]):
        costs[i, g] = s.cost[x, g]
    if lasting:
        s.number[b] += 1
        _settle(s, rules, b, arrived)


@threaded(lambda s, rules: len(s.number))
def begin_all(span: Span, s: State, rules: Rules) -> None:
    """Let the first jobs of every episode arrive."""
    for i in range(*span):
        _begin(s, rules, i)


@threaded(lambda s, *_: len(s.base) - len(s.number))
def play_rows(
    span: Span, s: State, rules: Rules, rows: IntArray, share: IntArray, order: IntArray, how: int, costs: FloatArray
) -> None:
    """Play an interval in each of some episodes, and write its cost for each group.

    Repetitions are allowed unless episodes change. Which rows a scratch row plays does not depend on the threads.
    """
    count, episodes = rows.shape[0], s.number.shape[0]
    scratch = s.base.shape[0] - episodes
    for k in range(*span):
        for i in range(k * count // scratch, (k + 1) * count // scratch):
            _play_interval(s, rules, rows[i], episodes + k, share, order, how, costs, i)
