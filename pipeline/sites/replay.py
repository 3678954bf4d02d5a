"""Replays of a queue as Slurm runs it: the whole queue in order of priority, with backfilling in that order.

Whenever a job arrives or ends, a pass starts jobs by priority. A job that cannot start gets a reservation at the
earliest time at which it fits by the requested limits. Later jobs start only if they delay no reservation. With one
reservation for each partition this is EASY (Lifka 1995; Mu'alem and Feitelson 2001); with many it is Slurm's backfill,
which plans every job that it tests. Like Slurm, it reserves whole machines, unless they are pools. With an
interval, such passes are that far apart. Between them, a partition starts jobs only until the first that must wait, as
in Slurm's main scheduler.

All compiled code of `pipeline.sites` is in this module, so that numba notices changes by itself.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from pipeline.core.types import BoolArray, FloatArray, IntArray
from pipeline.simulation.compiled import inlined

LINEAR, WFP3, UNICEP, AREA_AGED = range(4)  # rules of `Order`
TINY = 1e-15  # keeps UNICEP's logarithm and quotient finite
SLACK = 1e-6  # processors, for sums of fractions
# `_Live.counts`: waiting, running, arrived jobs; planned changes; wanted jobs, those not begun; past edges; machines on
# which a job fits at a time ahead, those of them on which it fits from its start.
QUEUED, RUNNING, ARRIVED, PLANNED, WANTED, LEFT, EDGE, OPEN, ABLE = range(9)


class Outages(NamedTuple):
    """Times in which no job starts on a machine. Jobs that already run there are not interrupted."""

    machine: IntArray  # [O]
    begin: FloatArray  # [O]  s
    end: FloatArray  # [O]  s
    announced: BoolArray  # [O]  known in advance: no job starts that could still be running when it begins


NO_OUTAGES = Outages(np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0, np.bool_))


class Queue(NamedTuple):
    """Jobs of a site, and its machines; P partitions, which also separate jobs that need other kinds of machines."""

    submit: FloatArray  # [J]  s
    run: FloatArray  # [J]  s, above 0
    limit: FloatArray  # [J]  s, as requested
    nodes: IntArray  # [J]  machines that a job holds at once
    demand: IntArray  # [J, R]  thousandths, on each of its machines
    cpus: FloatArray  # [J]  units of the first resource, on all of its machines; at least 1
    user: IntArray  # [J]  from 0
    qos: FloatArray  # [J]  priority of the job's QOS, as a share of the highest one
    partition: IntArray  # [J]
    capacity: IntArray  # [K, R]
    members: BoolArray  # [P, K]  the machines of each partition
    tier: IntArray  # [P]  PriorityTier: a higher one comes first, regardless of priorities
    factor: FloatArray  # [P]  PriorityJobFactor, as a share of the highest one
    counted: IntArray  # [J, G]  quotas in which a job counts; -1 = none
    bound: BoolArray  # [J, G]  whether these quotas can make the job wait
    most: FloatArray  # [Q]  most that running jobs of a quota may hold; a larger job runs on its own
    of_jobs: BoolArray  # [Q]  whether a quota counts jobs; else processors
    outages: Outages = NO_OUTAGES
    whole: bool = False  # reservations have whole machines, as in Slurm; False: the machines are pools


class Backfill(NamedTuple):
    """Rules for jobs that cannot start."""

    reservations: int = 1  # for each partition
    tested: int = 1_000_000  # jobs that a pass looks at (Slurm: bf_max_job_test)
    window: float = 1e12  # s; no reservation is further ahead (Slurm: bf_window)
    interval: float = 0.0  # s, between passes that backfill (Slurm: bf_interval); 0 = whenever something changes


class Order(NamedTuple):
    """Priority of a waiting job: static + slope * wait + fair_share * the user's factor, or a rule of its own."""

    rule: int
    static: FloatArray  # [J]
    slope: float = 0.0  # per second of wait
    age: float = 1.0  # s, of AREA_AGED
    longest: float = 1e12  # s; jobs that have waited for longer come before all others, in order of their numbers
    fair_share: float = 0.0
    half_life: float = 604_800.0  # s, of past usage (Slurm: PriorityDecayHalfLife)
    fair_tree: bool = False  # the factor is the part of users who have not used less; else 2^(-usage / share)
    users: int = 0  # who have equal shares; at least those of the queue
    period: float = 0.0  # s, between computations of factors (Slurm: PriorityCalcPeriod); 0 = at every event


class _Live(NamedTuple):
    """A replay under way."""

    submit: FloatArray  # [J]
    arrivals: IntArray  # [J]  jobs in order of submission
    free: IntArray  # [R, K]
    waiting: IntArray  # [J]  in order of the last pass
    score: FloatArray  # [J]  of `waiting`
    running: IntArray  # [J]  in order of `end`
    end: FloatArray  # [J]  of `running`
    limited: IntArray  # [J]  the running jobs, in order of `due`
    due: FloatArray  # [J]  when `limited` reach their limits; the limit of a job that exceeds it is doubled
    held_first: IntArray  # [J + 1]  places of a job's machines in `held`
    held: IntArray
    start: FloatArray  # [J]
    usage: FloatArray  # [U + 1]  processor seconds, decayed; the last entry is that of all users
    rate: FloatArray  # [U + 1]  processors in use, likewise
    fair: FloatArray  # [U]  factors of fair-share
    by_usage: IntArray  # [U]  users in order of usage
    used: FloatArray  # [Q]  of each quota
    made: IntArray  # [P]  reservations of this pass
    room: IntArray  # [R, K]  what is free at a time ahead, or on machines whose partition no job waits for
    since: FloatArray  # [K]  the time since which each machine has had room for a job; inf = it has none
    edges: FloatArray  # [2 O]  beginnings of outages, then their ends
    by_time: IntArray  # [2 O]  indices of `edges` in order of time
    counts: IntArray  # [9]  by the indices QUEUED to ABLE


class _Plan(NamedTuple):
    """Changes of what is in use ahead, in order of time: reservations and announced outages, but not running jobs."""

    time: FloatArray  # [S]
    sign: IntArray  # [S]  1: units are released, which comes first among equal times; -1: they are taken
    what: IntArray  # [S]  a job; below 0: all units of machine -1 - `what`


@inlined
def _fits(q: Queue, s: _Live, free: IntArray, total: int, job: int) -> bool:
    """Return whether a job fits on machines with `free` [R, K] units, at most `total` of the first resource.

    If `total` is enough, write in `since` which machines have room for the job.
    """
    if q.nodes[job] * q.demand[job, 0] > total:
        return False
    members, able = q.members[q.partition[job]], 0
    for k in range(len(s.since)):
        s.since[k] = -np.inf if members[k] else np.inf
    for r in range(free.shape[0]):  # one resource after the other, so that the loops over machines use vectors
        room, units = free[r], q.demand[job, r]
        for k in range(len(s.since)):
            s.since[k] = np.inf if room[k] < units else s.since[k]
    for k in range(len(s.since)):
        able += s.since[k] < 0
    s.counts[OPEN] = s.counts[ABLE] = able
    return bool(able >= q.nodes[job])


@inlined
def _look(s: _Live) -> None:
    """Begin `room` with what is free now."""
    for r in range(s.room.shape[0]):
        room, free = s.room[r], s.free[r]
        for k in range(len(room)):
            room[k] = free[k]


@inlined
def _total(free: IntArray) -> int:
    """Return the units of the first resource that are free."""
    found = 0
    for k in range(free.shape[1]):
        found += max(free[0, k], 0)
    return found


@inlined
def _priority(q: Queue, order: Order, s: _Live, job: int, wait: float) -> float:
    if wait > order.longest:
        return np.inf
    if order.rule == WFP3:
        ratio = wait / q.limit[job]
        return float(ratio * ratio * ratio * q.cpus[job])
    if order.rule == UNICEP:
        return float((wait + TINY) / (np.log2(q.cpus[job] + TINY) * q.limit[job]))
    if order.rule == AREA_AGED:
        return float(-q.limit[job] * q.cpus[job] / (1.0 + wait / order.age))
    found = order.static[job] + order.slope * wait
    if order.fair_share != 0.0:
        found += order.fair_share * s.fair[q.user[job]]
    return float(found)


@inlined
def _sort(q: Queue, order: Order, s: _Live, now: float) -> None:
    """Sort the waiting jobs by tier, priority and number; by insertion, since their order has hardly changed."""
    for i in range(s.counts[QUEUED]):
        job = s.waiting[i]
        value, tier, j = _priority(q, order, s, job, now - s.submit[job]), q.tier[q.partition[job]], i - 1
        while j >= 0:
            other = s.waiting[j]
            above = q.tier[q.partition[other]]
            if tier < above or (tier == above and (value < s.score[j] or (value == s.score[j] and job > other))):
                break
            s.waiting[j + 1] = other
            s.score[j + 1] = s.score[j]
            j -= 1
        s.waiting[j + 1] = job
        s.score[j + 1] = value


@inlined
def _insert(jobs: IntArray, times: FloatArray, count: int, job: int, time: float) -> None:
    """Insert a job into a list in order of time; among equals it comes last."""
    j = count - 1
    while j >= 0 and times[j] > time:
        jobs[j + 1] = jobs[j]
        times[j + 1] = times[j]
        j -= 1
    jobs[j + 1] = job
    times[j + 1] = time


@inlined
def _remove(jobs: IntArray, times: FloatArray, count: int, job: int) -> None:
    found = 0
    for j in range(count):
        if found:
            jobs[j - 1] = jobs[j]
            times[j - 1] = times[j]
        elif jobs[j] == job:
            found = 1


@inlined
def _events(q: Queue, s: _Live, now: float) -> None:
    """Release the machines of jobs that end by now, let jobs arrive, extend limits that are overrun, begin outages."""
    while s.counts[RUNNING] > 0 and s.end[0] <= now:
        job = s.running[0]
        for place in range(s.held_first[job], s.held_first[job + 1]):
            for r in range(s.free.shape[0]):
                s.free[r, s.held[place]] += q.demand[job, r]
        s.rate[q.user[job]] -= q.cpus[job]
        s.rate[-1] -= q.cpus[job]
        _count(q, s, job, -1.0)
        _remove(s.running, s.end, s.counts[RUNNING], job)
        _remove(s.limited, s.due, s.counts[RUNNING], job)
        s.counts[RUNNING] -= 1
    while s.counts[RUNNING] > 0 and s.due[0] <= now:
        job = s.limited[0]
        limit = s.due[0] - s.start[job]
        while s.start[job] + limit <= now:
            limit *= 2.0
        _remove(s.limited, s.due, s.counts[RUNNING], job)
        _insert(s.limited, s.due, s.counts[RUNNING] - 1, job, s.start[job] + limit)
    while s.counts[ARRIVED] < s.arrivals.shape[0] and s.submit[s.arrivals[s.counts[ARRIVED]]] <= now:
        s.waiting[s.counts[QUEUED]] = s.arrivals[s.counts[ARRIVED]]
        s.counts[QUEUED] += 1
        s.counts[ARRIVED] += 1
    while s.counts[EDGE] < len(s.edges) and s.edges[s.by_time[s.counts[EDGE]]] <= now:
        o = s.by_time[s.counts[EDGE]]
        begins = o < len(q.outages.machine)
        k = q.outages.machine[o if begins else o - len(q.outages.machine)]
        for r in range(s.free.shape[0]):  # all of the machine, even if jobs hold some of it
            s.free[r, k] += -q.capacity[k, r] if begins else q.capacity[k, r]
        s.counts[EDGE] += 1


@inlined
def _choose(q: Queue, s: _Live, job: int, at: float) -> None:
    """Write the first machines that have had room for a job since a time as those it holds."""
    left, place = q.nodes[job], s.held_first[job]
    for k in range(len(s.since)):
        if left > 0 and s.since[k] <= at:
            left -= 1
            s.held[place] = k
            place += 1


@inlined
def _start(q: Queue, s: _Live, job: int, now: float) -> None:
    """Start a job on the first machines that have room for it now."""
    _choose(q, s, job, now)
    for place in range(s.held_first[job], s.held_first[job + 1]):
        for r in range(s.free.shape[0]):
            s.free[r, s.held[place]] -= q.demand[job, r]
    s.rate[q.user[job]] += q.cpus[job]
    s.rate[-1] += q.cpus[job]
    _count(q, s, job, 1.0)
    s.start[job] = now
    _insert(s.running, s.end, s.counts[RUNNING], job, now + q.run[job])
    _insert(s.limited, s.due, s.counts[RUNNING], job, now + q.limit[job])
    s.counts[RUNNING] += 1
    s.counts[LEFT] -= job < s.counts[WANTED]


@inlined
def _plan(s: _Live, p: _Plan, time: float, sign: int, what: int) -> None:
    j = s.counts[PLANNED]
    while j > 0 and (p.time[j - 1] > time or (p.time[j - 1] == time and p.sign[j - 1] < sign)):
        p.time[j], p.sign[j], p.what[j] = p.time[j - 1], p.sign[j - 1], p.what[j - 1]
        j -= 1
    p.time[j], p.sign[j], p.what[j] = time, sign, what
    s.counts[PLANNED] += 1


@inlined
def _announce(q: Queue, s: _Live, p: _Plan, now: float) -> None:
    """Plan the announced outages."""
    for o in range(len(q.outages.machine)):
        if q.outages.announced[o] and q.outages.end[o] > now:
            if q.outages.begin[o] > now:
                _plan(s, p, q.outages.begin[o], -1, -1 - q.outages.machine[o])
            _plan(s, p, q.outages.end[o], 1, -1 - q.outages.machine[o])


@inlined
def _change(q: Queue, s: _Live, sign: int, what: int, whole: bool) -> int:
    """Release or take planned units or whole machines; return how many more units of the first resource are free.

    A machine can be taken while jobs hold some of its units; its room is then negative.
    """
    first, after = (0, 1) if what < 0 else (s.held_first[what], s.held_first[what + 1])
    more = 0
    for place in range(first, after):
        k = -1 - what if what < 0 else s.held[place]
        more -= max(s.room[0, k], 0)
        for r in range(s.room.shape[0]):
            s.room[r, k] += sign * (q.capacity[k, r] if whole or what < 0 else q.demand[what, r])
        more += max(s.room[0, k], 0)
    return more


@inlined
def _note(q: Queue, s: _Live, job: int, what: int, time: float, at: float) -> None:
    """Note which of the machines that changed at a time have room for a job that begins at `at`."""
    first, after = (0, 1) if what < 0 else (s.held_first[what], s.held_first[what + 1])
    for place in range(first, after):
        k = -1 - what if what < 0 else s.held[place]
        able = bool(q.members[q.partition[job], k])
        for r in range(s.room.shape[0]):
            able = able and q.demand[job, r] <= s.room[r, k]
        if able and s.since[k] == np.inf:
            s.since[k] = time
            s.counts[OPEN] += 1
        elif not able and s.since[k] < np.inf:
            s.counts[OPEN] -= 1
            s.counts[ABLE] -= s.since[k] <= at
            s.since[k] = np.inf


@inlined
def _later(q: Queue, s: _Live, job: int, time: float, at: float) -> float:
    """Return the next time after `at` since which a job has fitted until a time; inf if it does not fit then."""
    if s.counts[OPEN] < q.nodes[job]:
        return np.inf
    if at == np.inf:
        s.counts[ABLE] = s.counts[OPEN]
        return time
    while s.counts[ABLE] < q.nodes[job]:
        found, able = np.inf, 0
        for k in range(len(s.since)):
            found = min(found, s.since[k] if s.since[k] > at else np.inf)
        for k in range(len(s.since)):
            able += s.since[k] <= found
        at, s.counts[ABLE] = found, able
    return at


@inlined
def _bound(q: Queue, s: _Live, p: _Plan, job: int, now: float) -> float:
    """Return a lower bound of a job's start: the latest start planned in this pass for a job that needs no more."""
    for j in range(s.counts[PLANNED] - 1, -1, -1):
        other = p.what[j]
        if p.sign[j] < 0 and other >= 0 and q.limit[other] <= q.limit[job] and q.nodes[other] <= q.nodes[job]:
            less = q.partition[other] == q.partition[job]
            for r in range(q.demand.shape[1]):
                less = less and q.demand[other, r] <= q.demand[job, r]
            if less:
                return float(p.time[j])
    return now


@inlined
def _earliest(q: Queue, s: _Live, p: _Plan, job: int, total: int, now: float, latest: float) -> float:
    """Return the earliest time at which a job fits for its whole limit, inf if it is after `latest`; write `since`.

    A time in which the job fits can end only when planned units are taken. While fewer units are free than it needs,
    or before its bound, machines are not looked at.
    """
    bound = _bound(q, s, p, job, now)
    if bound > latest:
        return np.inf
    noted = bound == now and q.nodes[job] * q.demand[job, 0] <= total
    at = now if noted and _fits(q, s, s.free, total, job) else np.inf
    i, j, taken = 0, 0, _taken(s, p, 0)
    ends, planned = _time(s.due, i, s.counts[RUNNING]), _time(p.time, j, s.counts[PLANNED])
    if at == np.inf or taken < at + q.limit[job]:
        _look(s)
    while (at == np.inf or taken < at + q.limit[job]) and min(ends, planned, at) <= latest:
        time = min(ends, planned)
        while min(ends, planned) == time:
            if ends == time:  # first, since units that are taken at the same time may be those released
                sign, what, whole, i = 1, s.limited[i], False, i + 1
                ends = _time(s.due, i, s.counts[RUNNING])
            else:
                sign, what, whole, j = p.sign[j], p.what[j], q.whole, j + 1
                planned = _time(p.time, j, s.counts[PLANNED])
            total += _change(q, s, sign, what, whole)
            if noted:
                _note(q, s, job, what, time, at)
        if time < bound or total < q.nodes[job] * q.demand[job, 0]:
            at, noted = np.inf, False
        elif not noted:
            at, noted = time if _fits(q, s, s.room, total, job) else np.inf, True
        elif at == np.inf or s.counts[ABLE] < q.nodes[job]:
            at = _later(q, s, job, time, at)
        taken = _taken(s, p, j)
    return at if at <= latest else np.inf


@inlined
def _taken(s: _Live, p: _Plan, j: int) -> float:
    """Return when units are next taken, from a planned change on."""
    while j < s.counts[PLANNED] and p.sign[j] > 0:
        j += 1
    return _time(p.time, j, s.counts[PLANNED])


@inlined
def _time(times: FloatArray, j: int, count: int) -> float:
    return times[j] if j < count else np.inf


@inlined
def _part(q: Queue, job: int, quota: int) -> float:
    return 1.0 if q.of_jobs[quota] else float(q.cpus[job])


@inlined
def _count(q: Queue, s: _Live, job: int, sign: float) -> None:
    """Count a job in its quotas when it starts, or remove it when it ends."""
    for g in range(q.counted.shape[1]):
        if q.counted[job, g] >= 0:
            s.used[q.counted[job, g]] += sign * _part(q, job, q.counted[job, g])


@inlined
def _limited(q: Queue, s: _Live, job: int) -> bool:
    """Return whether a job would exceed one of its quotas now."""
    found = False
    for g in range(q.counted.shape[1]):
        quota = q.counted[job, g]
        if quota >= 0 and q.bound[job, g] and s.used[quota] > SLACK:
            found = found or s.used[quota] + _part(q, job, quota) > q.most[quota] + SLACK
    return bool(found)


@inlined
def _reserve(q: Queue, s: _Live, p: _Plan, job: int, total: int, now: float, latest: float) -> None:
    """Reserve the earliest time at which a job fits, if that is not too far ahead."""
    at = _earliest(q, s, p, job, total, now, latest)
    if at < np.inf:
        s.made[q.partition[job]] += 1
        _choose(q, s, job, at)
        _plan(s, p, at, -1, job)
        _plan(s, p, at + q.limit[job], 1, job)


@inlined
def _pass(q: Queue, backfill: Backfill, s: _Live, p: _Plan, now: float) -> None:
    """Start every waiting job that may start, in order.

    No job after `last`, the last one that fits now, can start, so reservations from there on would make no difference.
    """
    left, last, ahead, total = 0, min(s.counts[QUEUED], backfill.tested) - 1, _ahead(q, now), _total(s.free)
    s.counts[PLANNED] = 0
    for part in range(s.made.shape[0]):
        s.made[part] = 0
    for i in range(s.counts[QUEUED]):
        job = s.waiting[i]
        while last > i and not _fits(q, s, s.free, total, s.waiting[last]):
            last -= 1
        limited = _limited(q, s, job)
        if i <= last and s.counts[PLANNED] == 0 and now + q.limit[job] > ahead:
            _announce(q, s, p, now)
        may = i <= last and not limited and _fits(q, s, s.free, total, job)
        if may and (s.counts[PLANNED] == 0 or _earliest(q, s, p, job, total, now, now) == now):
            _start(q, s, job, now)
            total -= q.nodes[job] * q.demand[job, 0]
            continue
        s.waiting[left] = job
        s.score[left] = s.score[i]
        left += 1
        if i < last and not limited and s.made[q.partition[job]] < backfill.reservations:
            if s.counts[PLANNED] == 0:
                _announce(q, s, p, now)
            _reserve(q, s, p, job, total, now, now + backfill.window)
    s.counts[QUEUED] = left


@inlined
def _ahead(q: Queue, now: float) -> float:
    """Return when the next announced outage begins."""
    found = np.inf
    for o in range(len(q.outages.machine)):
        if q.outages.announced[o] and q.outages.begin[o] > now:
            found = min(found, q.outages.begin[o])
    return float(found)


@inlined
def _start_heads(q: Queue, s: _Live, now: float) -> None:
    """Start jobs in order, but none on machines of a partition in which an earlier job must wait."""
    left, ahead, total, room = 0, _ahead(q, now), _total(s.free), s.room
    _look(s)
    for part in range(s.made.shape[0]):  # 1: a job of the partition waits, so its machines are closed
        s.made[part] = 0
    for i in range(s.counts[QUEUED]):
        job, part = s.waiting[i], q.partition[s.waiting[i]]
        limited = s.made[part] > 0 or _limited(q, s, job)
        if not limited and now + q.limit[job] <= ahead and _fits(q, s, room, total, job):
            total -= q.nodes[job] * q.demand[job, 0]
            _start(q, s, job, now)
            for place in range(s.held_first[job], s.held_first[job + 1]):
                for r in range(room.shape[0]):
                    room[r, s.held[place]] -= q.demand[job, r]
            continue
        s.waiting[left] = job
        s.score[left] = s.score[i]
        left += 1
        if not limited:
            s.made[part] = 1
            for k in range(room.shape[1]):
                room[0, k] = -1 if q.members[part, k] else room[0, k]
    s.counts[QUEUED] = left


@inlined
def _next_event(s: _Live) -> float:
    """Return when the next job arrives or ends, or the next outage begins or ends."""
    found = np.inf
    if s.counts[ARRIVED] < len(s.arrivals):
        found = s.submit[s.arrivals[s.counts[ARRIVED]]]
    if s.counts[RUNNING] > 0:
        found = min(found, s.end[0])
    if s.counts[EDGE] < len(s.edges):
        found = min(found, s.edges[s.by_time[s.counts[EDGE]]])
    return float(found)


@inlined
def _share(order: Order, s: _Live, before: float, now: float) -> None:
    """Compute usage, and the factors of fair-share if it is time."""
    last = now if order.period == 0.0 else np.floor(now / order.period) * order.period
    if last > before:
        _use(s, order.half_life, last - before)
        _factors(order, s)
    _use(s, order.half_life, now - max(before, last))


@inlined
def _use(s: _Live, half_life: float, gap: float) -> None:
    """Let past usage decay, and add what was used since."""
    decay = 0.5 ** (gap / half_life)
    for u in range(len(s.usage)):
        s.usage[u] = s.usage[u] * decay + s.rate[u] * gap


@inlined
def _factors(order: Order, s: _Live) -> None:
    """Compute users' factors; users without any job in this replay have used nothing.

    The classic formula compares a user's part of all usage with an equal share. Fair Tree ranks users of equal shares
    by usage; those of equal usage have the best of their ranks.
    """
    users, whole, first = len(s.by_usage), s.usage[len(s.by_usage)], 0
    shares = max(users, order.users)
    for i in range(users):  # by insertion, since decay keeps the order
        user, j = s.by_usage[i], i - 1
        s.fair[user] = 2.0 ** (-s.usage[user] / whole * shares) if whole > 0.0 else 1.0
        while j >= 0 and s.usage[s.by_usage[j]] > s.usage[user]:
            s.by_usage[j + 1] = s.by_usage[j]
            j -= 1
        s.by_usage[j + 1] = user
    for i in range(users if order.fair_tree else 0):
        if s.usage[s.by_usage[i]] > s.usage[s.by_usage[first]]:
            first = i
        nothing = s.usage[s.by_usage[first]] == 0.0
        s.fair[s.by_usage[i]] = 1.0 if nothing else (users - first) / shares


def replay(
    q: Queue, order: Order, backfill: Backfill, submit: FloatArray, arrivals: IntArray, wanted: int = 1 << 60
) -> FloatArray:
    """Return the start of each job [J].

    Args:
        q: jobs, each of which fits on the machines of its partition, and machines.
        order: order of the waiting jobs; among equals, the one earlier in the queue comes first.
        backfill: rules for jobs that cannot start.
        submit: [J] times that replace those of the queue.
        arrivals: [J] the jobs in order of `submit`.
        wanted: number of jobs, from the first on, whose starts are needed; the replay ends with the last of these.
    """
    return np.asarray(_replay(q, order, backfill, submit, arrivals, wanted))  # else numba compiles its default again


@njit(cache=True, nogil=True)
def _replay(
    q: Queue, order: Order, backfill: Backfill, submit: FloatArray, arrivals: IntArray, wanted: int
) -> FloatArray:
    jobs, users, edges = len(submit), q.user.max() + 1, np.concatenate((q.outages.begin, q.outages.end))
    held_first = np.zeros(jobs + 1, np.int64)
    held_first[1:] = np.cumsum(q.nodes)
    s = _Live(
        submit, arrivals, q.capacity.T.copy(), np.empty(jobs, np.int64), np.empty(jobs), np.empty(jobs, np.int64),
        np.empty(jobs), np.empty(jobs, np.int64), np.empty(jobs), held_first, np.empty(held_first[-1], np.int64),
        np.empty(jobs), np.zeros(users + 1), np.zeros(users + 1), np.ones(users), np.arange(users),
        np.zeros(len(q.most)), np.zeros(len(q.tier), np.int64), q.capacity.T.copy(),
        np.zeros(len(q.capacity)), edges, np.argsort(edges), np.zeros(9, np.int64),
    )  # fmt: skip
    s.counts[WANTED] = s.counts[LEFT] = min(wanted, jobs)
    p = _Plan(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
    before, due = _next_event(s), np.inf  # due: the next pass that backfills, if there is an interval
    while s.counts[LEFT] > 0:
        now = min(due, _next_event(s))
        if order.fair_share != 0.0:
            _share(order, s, before, now)
            before = now
        _events(q, s, now)
        if s.counts[QUEUED]:
            steps = 2 * (s.counts[QUEUED] + len(q.outages.machine))
            if len(p.time) < steps:
                p = _Plan(np.empty(2 * steps), np.empty(2 * steps, np.int64), np.empty(2 * steps, np.int64))
            _sort(q, order, s, now)
            if backfill.interval == 0.0 or now >= due:
                _pass(q, backfill, s, p, now)
                due = np.inf
            else:
                _start_heads(q, s, now)
                due = np.ceil(now / backfill.interval) * backfill.interval
        if not s.counts[QUEUED]:
            due = np.inf
    return s.start
