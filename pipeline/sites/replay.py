"""Replays of a queue as Slurm runs it: the whole queue in order of priority, with backfilling in that order.

Whenever a job arrives or ends, a pass starts jobs by priority. A job that cannot start gets a reservation at the
earliest time at which it fits by the requested limits. Later jobs start only if they delay no reservation. With one
reservation for each partition this is EASY (Lifka 1995; Mu'alem and Feitelson 2001); with many it is Slurm's backfill,
which plans every job that it tests. With an interval, such passes are that far apart. Between them, a partition starts
jobs only until the first that must wait, as in Slurm's main scheduler.

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
NEVER = 1 << 60
# `_Live.counts`: waiting, running, arrived jobs; steps of the profile; wanted jobs, those not begun; past edges.
QUEUED, RUNNING, ARRIVED, STEPS, WANTED, LEFT, EDGE = range(7)


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


class Backfill(NamedTuple):
    """Rules for jobs that cannot start."""

    reservations: int = 1  # for each partition
    tested: int = 1_000_000  # jobs that a pass looks at (Slurm: bf_max_job_test)
    window: float = 1e12  # s; no reservation is further ahead (Slurm: bf_window)
    interval: float = 0.0  # s, between passes that backfill (Slurm: bf_interval); 0 = whenever something changes


class Order(NamedTuple):
    """Priority of a waiting job: static + slope * wait + fair_share * 2^(-usage / share), or a rule of its own."""

    rule: int
    static: FloatArray  # [J]
    slope: float = 0.0  # per second of wait
    age: float = 1.0  # s, of AREA_AGED
    longest: float = 1e12  # s; jobs that have waited for longer come before all others, in order of their numbers
    fair_share: float = 0.0
    half_life: float = 604_800.0  # s, of past usage (Slurm: PriorityDecayHalfLife)


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
    used: FloatArray  # [Q]  of each quota
    made: IntArray  # [P]  reservations of this pass
    room: IntArray  # [R, K]  of `free`, on machines whose partition no job waits for
    since: IntArray  # [K]  the step since which each machine has had room for a job; NEVER: not in its partition
    edges: FloatArray  # [2 O]  beginnings of outages, then their ends
    by_time: IntArray  # [2 O]  indices of `edges` in order of time
    counts: IntArray  # [7]  by the indices QUEUED to EDGE


class _Profile(NamedTuple):
    """Free units in the future, as limits and reservations predict them."""

    times: FloatArray  # [S]
    row: IntArray  # [S]  of each step in `room` and `total`, so that a new step moves no other
    room: IntArray  # [S, R, K]  from each time to the next
    total: IntArray  # [S]  units of the first resource in each row


@inlined
def _fits(q: Queue, s: _Live, free: IntArray, total: int, job: int) -> bool:
    """Return whether a job fits on machines with `free` [R, K] units, at most `total` of the first resource.

    If so, write which machines have room for it in `since`.
    """
    if q.nodes[job] * q.demand[job, 0] > total:
        return False
    _from(q, s, job)
    for r in range(free.shape[0]):
        room, units = free[r], q.demand[job, r]
        for k in range(len(s.since)):
            s.since[k] = max(s.since[k], NEVER * (room[k] < units))
    return bool(_able(s, 0) >= q.nodes[job])


@inlined
def _from(q: Queue, s: _Live, job: int) -> None:
    """Write the machines of a job's partition in `since`."""
    members = q.members[q.partition[job]]
    for k in range(len(s.since)):
        s.since[k] = 0 if members[k] else NEVER


@inlined
def _able(s: _Live, at: int) -> int:
    """Return how many machines have had room since a step."""
    found = 0
    for k in range(len(s.since)):
        found += s.since[k] <= at
    return found


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
    if order.fair_share != 0.0:  # the user's part of all usage, against an equal share
        users = s.usage.shape[0] - 1
        part = s.usage[q.user[job]] / s.usage[users] if s.usage[users] > 0.0 else 0.0
        found += order.fair_share * 2.0 ** (-part * users)
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
def _start(q: Queue, s: _Live, job: int, now: float) -> None:
    """Start a job on the first machines that have room for it now, by `since`."""
    left, place = q.nodes[job], s.held_first[job]
    for k in range(len(s.since)):
        if left > 0 and s.since[k] == 0:
            left -= 1
            s.held[place] = k
            place += 1
            for r in range(s.free.shape[0]):
                s.free[r, k] -= q.demand[job, r]
    s.rate[q.user[job]] += q.cpus[job]
    s.rate[-1] += q.cpus[job]
    _count(q, s, job, 1.0)
    s.start[job] = now
    _insert(s.running, s.end, s.counts[RUNNING], job, now + q.run[job])
    _insert(s.limited, s.due, s.counts[RUNNING], job, now + q.limit[job])
    s.counts[RUNNING] += 1
    s.counts[LEFT] -= job < s.counts[WANTED]


@inlined
def _add(p: _Profile, row: int, r: int, k: int, units: int) -> None:
    """Release units of a machine in a row of the profile; its total counts no machine as less than empty."""
    before = p.room[row, r, k]
    p.room[row, r, k] = before + units
    if r == 0:
        p.total[row] += max(before + units, 0) - max(before, 0)


@inlined
def _copy_row(p: _Profile, to: int, at: int) -> None:
    p.total[to] = p.total[at]
    for r in range(p.room.shape[1]):
        new, old = p.room[to, r], p.room[at, r]
        for k in range(len(new)):
            new[k] = old[k]


@inlined
def _project(q: Queue, s: _Live, p: _Profile, now: float) -> None:
    """Write the profile of the running jobs."""
    p.times[0], p.row[0], p.total[0] = now, 0, 0
    for r in range(s.free.shape[0]):
        for k in range(s.free.shape[1]):
            p.room[0, r, k] = 0
            _add(p, 0, r, k, s.free[r, k])
    last = 0
    for j in range(s.counts[RUNNING]):
        if s.due[j] > p.times[last]:
            last += 1
            p.times[last], p.row[last] = s.due[j], last
            _copy_row(p, last, last - 1)
        job = s.limited[j]
        for place in range(s.held_first[job], s.held_first[job + 1]):
            for r in range(s.free.shape[0]):
                _add(p, last, r, s.held[place], q.demand[job, r])
    s.counts[STEPS] = last + 1
    _announce(q, s, p, now)


@inlined
def _announce(q: Queue, s: _Live, p: _Profile, now: float) -> None:
    """Take machines from the profile during their announced outages."""
    for o in range(len(q.outages.machine)):
        if q.outages.announced[o] and q.outages.end[o] > now:
            begun, k = q.outages.begin[o] <= now, q.outages.machine[o]
            first = _step(s, p, 0, max(q.outages.begin[o], now))
            after = _step(s, p, first, q.outages.end[o])
            for j in range(after if begun else first, s.counts[STEPS] if begun else after):
                for r in range(s.free.shape[0]):
                    _add(p, p.row[j], r, k, q.capacity[k, r] if begun else -q.capacity[k, r])


@inlined
def _step(s: _Live, p: _Profile, at: int, time: float) -> int:
    """Return the step that begins at a time, which is not before step `at`; insert it if there is none."""
    to, steps = at, s.counts[STEPS]
    while to < steps and p.times[to] < time:
        to += 1
    if to == steps or p.times[to] > time:
        for back in range(steps - to):
            j = steps - back
            p.times[j], p.row[j] = p.times[j - 1], p.row[j - 1]
        p.times[to], p.row[to] = time, steps
        _copy_row(p, steps, p.row[to - 1])
        s.counts[STEPS] += 1
    return to


@inlined
def _earliest(q: Queue, s: _Live, p: _Profile, job: int, latest: float) -> int:
    """Return the first step, begun by `latest`, from which a job fits for its whole limit, or -1; write `since`."""
    at, total = 0, q.nodes[job] * q.demand[job, 0]
    _from(q, s, job)
    for j in range(s.counts[STEPS]):
        if p.times[at] > latest:
            return -1
        if p.times[j] >= p.times[at] + q.limit[job]:
            return at
        if p.total[p.row[j]] < total:
            at = j + 1
            continue
        for r in range(p.room.shape[1]):
            room, units = p.room[p.row[j], r], q.demand[job, r]
            for k in range(len(s.since)):
                s.since[k] = max(s.since[k], (j + 1) * (room[k] < units))
        while at <= j and _able(s, at) < q.nodes[job]:
            at += 1
    return at if at < s.counts[STEPS] and p.times[at] <= latest else -1


@inlined
def _take(q: Queue, s: _Live, p: _Profile, at: int, job: int) -> None:
    """Hold a job's machines in the profile from a step on, for its whole limit."""
    to, left = _step(s, p, at, p.times[at] + q.limit[job]), q.nodes[job]
    for k in range(len(s.since)):
        if left > 0 and s.since[k] <= at:
            left -= 1
            for j in range(at, to):
                for r in range(p.room.shape[1]):
                    _add(p, p.row[j], r, k, -q.demand[job, r])


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
def _begins(q: Queue, s: _Live, p: _Profile, job: int, now: float) -> bool:
    """Start a job that fits now, if it delays no reservation; return whether it started."""
    if s.counts[STEPS] > 0:
        if _earliest(q, s, p, job, now) < 0:
            return False
        _take(q, s, p, 0, job)
    _start(q, s, job, now)
    return True


@inlined
def _reserve(q: Queue, s: _Live, p: _Profile, backfill: Backfill, job: int, now: float) -> None:
    """Reserve the earliest time at which a job fits, if that is not too far ahead."""
    at = _earliest(q, s, p, job, now + backfill.window)
    if at >= 0:
        s.made[q.partition[job]] += 1
        _take(q, s, p, at, job)


@inlined
def _pass(q: Queue, backfill: Backfill, s: _Live, p: _Profile, now: float) -> None:
    """Start every waiting job that may start, in order.

    No job after `last`, the last one that fits now, can start, so reservations from there on would make no difference.
    """
    left, last, ahead, total = 0, min(s.counts[QUEUED], backfill.tested) - 1, _ahead(q, now), _total(s.free)
    s.counts[STEPS] = 0
    for part in range(s.made.shape[0]):
        s.made[part] = 0
    for i in range(s.counts[QUEUED]):
        job = s.waiting[i]
        while last > i and not _fits(q, s, s.free, total, s.waiting[last]):
            last -= 1
        limited = _limited(q, s, job)
        if i <= last and s.counts[STEPS] == 0 and now + q.limit[job] > ahead:
            _project(q, s, p, now)
        if i <= last and not limited and _fits(q, s, s.free, total, job) and _begins(q, s, p, job, now):
            total -= q.nodes[job] * q.demand[job, 0]
            continue
        s.waiting[left] = job
        s.score[left] = s.score[i]
        left += 1
        if i < last and not limited and s.made[q.partition[job]] < backfill.reservations:
            if s.counts[STEPS] == 0:
                _project(q, s, p, now)
            _reserve(q, s, p, backfill, job, now)
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
    for r in range(room.shape[0]):
        for k in range(room.shape[1]):
            room[r, k] = s.free[r, k]
    for i in range(s.counts[QUEUED]):
        job = s.waiting[i]
        limited = _limited(q, s, job)
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
        for k in range(room.shape[1]):
            if q.members[q.partition[job], k] and not limited:
                room[0, k] = -1
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
def _use(s: _Live, half_life: float, gap: float) -> None:
    """Let past usage decay, and add what was used since."""
    decay = 0.5 ** (gap / half_life)
    for u in range(len(s.usage)):
        s.usage[u] = s.usage[u] * decay + s.rate[u] * gap


@njit(cache=True)
def _profile(q: Queue, steps: int) -> _Profile:
    room = np.empty((steps, *q.capacity.T.shape), np.int64)
    return _Profile(np.empty(steps), np.empty(steps, np.int64), room, np.empty(steps, np.int64))


@njit(cache=True, nogil=True)
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
    jobs, users, edges = len(submit), q.user.max() + 1, np.concatenate((q.outages.begin, q.outages.end))
    held_first = np.zeros(jobs + 1, np.int64)
    held_first[1:] = np.cumsum(q.nodes)
    s = _Live(
        submit, arrivals, q.capacity.T.copy(), np.empty(jobs, np.int64), np.empty(jobs), np.empty(jobs, np.int64),
        np.empty(jobs), np.empty(jobs, np.int64), np.empty(jobs), held_first, np.empty(held_first[-1], np.int64),
        np.empty(jobs), np.zeros(users + 1), np.zeros(users + 1), np.zeros(len(q.most)),
        np.zeros(len(q.tier), np.int64), q.capacity.T.copy(),
        np.zeros(len(q.capacity), np.int64), edges, np.argsort(edges), np.zeros(7, np.int64),
    )  # fmt: skip
    s.counts[WANTED] = s.counts[LEFT] = min(wanted, jobs)
    p = _profile(q, 0)
    before, due = _next_event(s), np.inf  # due: the next pass that backfills, if there is an interval
    while s.counts[LEFT] > 0:
        now = min(due, _next_event(s))
        if order.fair_share != 0.0:
            _use(s, order.half_life, now - before)
            before = now
        _events(q, s, now)
        if s.counts[QUEUED]:
            steps = s.counts[RUNNING] + 2 * (s.counts[QUEUED] + len(q.outages.machine)) + 1
            if len(p.times) < steps:
                p = _profile(q, 2 * steps)
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
