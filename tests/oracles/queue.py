"""Replays of a queue in plain Python, by the rules that `pipeline.sites.replay` documents.

Nothing is kept from one pass to the next except the running and the waiting jobs. Free amounts over time are computed
from a list of bookings whenever they are needed.
"""

from collections.abc import Collection
from math import ceil, floor, inf, log2
from typing import NamedTuple

import numpy as np

from pipeline.core.types import FloatArray, IntArray
from pipeline.sites.replay import AREA_AGED, UNICEP, WFP3, Backfill, Order, Queue

TINY = 1e-15  # for UNICEP: a job of one processor, or one that has just arrived


class Booking(NamedTuple):
    """Machines that a job holds, or for which it has a reservation."""

    job: int
    begin: float
    due: float  # by its limit
    machines: list[int]
    whole: bool = False  # it has all of its machines, like a reservation in Slurm


class Outage(NamedTuple):
    """A time in which nothing starts on a machine."""

    machine: int
    begin: float
    end: float
    announced: bool


class Replayed(NamedTuple):
    """A replay, with what only the reference keeps."""

    start: list[float]  # of each job
    machines: list[list[int]]  # of each job
    reserved: list[list[float]]  # of each job: the time of its reservation in each pass that made one


class PlainQueue:
    """A replay under way."""

    def __init__(self, queue: Queue, order: Order, backfill: Backfill, submit: FloatArray, arrivals: IntArray) -> None:
        self.queue, self.order, self.backfill = queue, order, backfill
        self.submit, self.to_come = submit.tolist(), arrivals.tolist()
        jobs, self.users = len(submit), int(queue.user.max()) + 1
        self.waiting: list[int] = []
        self.running: list[Booking] = []
        self.done = Replayed([inf] * jobs, [[] for _ in range(jobs)], [[] for _ in range(jobs)])
        self.usage, self.now = [0.0] * self.users, self.submit[self.to_come[0]]
        self.shown = self.usage  # usage at the last computation of factors
        self.outages = [Outage(*one) for one in zip(*(column.tolist() for column in queue.outages), strict=True)]
        self.due = inf  # the next pass that backfills, if there is an interval

    def run(self) -> Replayed:
        """Pass through the queue whenever a job arrives or ends, until all have ended."""
        while self.to_come or self.running or self.waiting:
            ends = [self._end(one) for one in self.running]
            edges = [time for one in self.outages for time in one[1:3] if time > self.now]
            now = min([self.due, *ends, *edges, *(self.submit[job] for job in self.to_come[:1])])
            self._use(now)
            self.running = [one for one in self.running if self._end(one) > now]
            self.running = [self._extended(one, now) for one in self.running]
            self.waiting += [job for job in self.to_come if self.submit[job] <= now]
            self.to_come = [job for job in self.to_come if self.submit[job] > now]
            if self.backfill.interval == 0 or now >= self.due:
                self._pass()
                self.due = inf
            else:
                self._start_heads()
                self.due = ceil(now / self.backfill.interval) * self.backfill.interval
            self.due = self.due if self.waiting else inf
        return self.done

    def _start_heads(self) -> None:
        """Start jobs in order; one that must wait closes the machines of its partition to all after it."""
        q, closed = self.queue, set[int]()
        for job in sorted(self.waiting, key=self._rank):
            until = self.now + float(q.limit[job])
            near = any(one.announced and self.now < one.begin < until for one in self.outages)
            if self._limited(job):
                continue
            if not near and (machines := self._fit(job, self.now, [], closed)):
                self._start(job, machines)
            else:
                closed |= set(np.flatnonzero(q.members[q.partition[job]]).tolist())

    def _start(self, job: int, machines: list[int]) -> None:
        self.running.append(Booking(job, self.now, self.now + float(self.queue.limit[job]), machines))
        self.waiting.remove(job)
        self.done.start[job], self.done.machines[job] = self.now, machines

    def _end(self, one: Booking) -> float:
        return one.begin + float(self.queue.run[one.job])

    def _extended(self, one: Booking, now: float) -> Booking:
        """Double the limit of a job that overruns it, until it is in the future."""
        limit = one.due - one.begin
        while one.begin + limit <= now:
            limit *= 2
        return one._replace(due=one.begin + limit)

    def _use(self, now: float) -> None:
        """Let past usage decay, and add what was used since the last event; then it is `now`."""
        period = self.order.period
        last = floor(now / period) * period if period else now
        if self.now < last < now:
            self._use(last)
        gap, self.now = now - self.now, now
        for user in range(self.users):
            rate = sum(float(self.queue.cpus[one.job]) for one in self.running if self.queue.user[one.job] == user)
            self.usage[user] = self.usage[user] * 0.5 ** (gap / self.order.half_life) + rate * gap
        if now == last:
            self.shown = list(self.usage)

    def _rank(self, job: int) -> tuple[float, bool, float, int]:
        """Return the key of a waiting job: tier, whether it has waited too long, priority, number."""
        tier, late = int(self.queue.tier[self.queue.partition[job]]), self.now - self.submit[job] > self.order.longest
        return -tier, not late, 0.0 if late else -self._priority(job), job

    def _priority(self, job: int) -> float:
        q, order, wait = self.queue, self.order, self.now - self.submit[job]
        limit, cpus = float(q.limit[job]), float(q.cpus[job])
        if order.rule == WFP3:
            return (wait / limit) * (wait / limit) * (wait / limit) * cpus
        if order.rule == UNICEP:
            return (wait + TINY) / (log2(cpus + TINY) * limit)
        if order.rule == AREA_AGED:
            return -limit * cpus / (1 + wait / order.age)
        found = float(order.static[job]) + order.slope * wait
        if order.fair_share and order.fair_tree:
            absent = max(order.users - self.users, 0)
            less = sum(one < self.shown[q.user[job]] for one in [*self.shown, *[0.0] * absent])
            found += order.fair_share * ((self.users + absent - less) / (self.users + absent))
        elif order.fair_share:
            part = self.shown[q.user[job]] / sum(self.shown) if sum(self.shown) > 0 else 0.0
            found += order.fair_share * 2.0 ** (-part * max(self.users, order.users))
        return found

    def _pass(self) -> None:
        """Start the waiting jobs that may start, in order, and make reservations for the first others."""
        reservations: list[Booking] = []
        made = dict.fromkeys(range(len(self.queue.tier)), 0)
        for job in sorted(self.waiting, key=self._rank)[: self.backfill.tested]:
            partition = int(self.queue.partition[job])
            if self._limited(job):
                continue
            if machines := self._fit(job, self.now, reservations):
                self._start(job, machines)
            elif made[partition] < self.backfill.reservations:
                at, machines = self._earliest(job, reservations)
                if at <= self.now + self.backfill.window:
                    made[partition] += 1
                    whole = self.queue.whole
                    reservations.append(Booking(job, at, at + float(self.queue.limit[job]), machines, whole))
                    self.done.reserved[job].append(at)

    def _limited(self, job: int) -> bool:
        """Return whether the running jobs of a quota that binds this job and this one would exceed it."""
        q = self.queue
        for quota, binds in zip(q.counted[job].tolist(), q.bound[job].tolist(), strict=True):
            theirs = [one.job for one in self.running if quota in q.counted[one.job]]
            held = [1.0 if q.of_jobs[quota] else float(q.cpus[one]) for one in (*theirs, job)]
            if quota >= 0 and binds and theirs and sum(held) > q.most[quota]:
                return True
        return False

    def _earliest(self, job: int, reservations: list[Booking]) -> tuple[float, list[int]]:
        """Return the earliest time at which a job fits, by limits; amounts become free only when something ends."""
        ends = {one.end for one in self.outages if one.announced and one.end > self.now}
        for at in sorted({one.due for one in (*self.running, *reservations)} | ends):
            if machines := self._fit(job, at, reservations):
                return at, machines
        assert self._down, f"job {job} does not fit on the empty machines of its partition"
        return inf, []

    @property
    def _down(self) -> set[int]:
        """Return the machines that are out, for nobody knows how long."""
        return {one.machine for one in self.outages if not one.announced and one.begin <= self.now < one.end}

    def _fit(
        self, job: int, at: float, reservations: list[Booking], closed: Collection[int] = frozenset()
    ) -> list[int]:
        """Return the first machines with room for a job from a time on for its whole limit; [] if there are too few."""
        bookings, until = [*self.running, *reservations], at + float(self.queue.limit[job])
        out = [one for one in self.outages if one.announced and one.begin < until and one.end > at]
        closed = {*closed, *self._down, *(one.machine for one in out)}
        times = [at, *(one.begin for one in bookings if at < one.begin < until)]
        able = [
            k
            for k in range(len(self.queue.capacity))
            if self.queue.members[self.queue.partition[job], k]
            and k not in closed
            and all((self._free(k, time, bookings) >= self.queue.demand[job]).all() for time in times)
        ]
        nodes = int(self.queue.nodes[job])
        return able[:nodes] if len(able) >= nodes else []

    def _free(self, k: int, time: float, bookings: list[Booking]) -> IntArray:
        """Return what is free [R] on a machine at a time."""
        free = self.queue.capacity[k].copy()
        for one in bookings:
            if k in one.machines and one.begin <= time < one.due:
                free -= self.queue.capacity[k] if one.whole else self.queue.demand[one.job]
        return free


def plain_replay(queue: Queue, order: Order, backfill: Backfill, submit: FloatArray, arrivals: IntArray) -> Replayed:
    """Return a replay; the arguments are those of `pipeline.sites.replay.replay`."""
    return PlainQueue(queue, order, backfill, submit, arrivals).run()
