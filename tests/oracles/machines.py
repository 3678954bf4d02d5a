"""The plain definition of many machines in continuous time: one episode, written to be read.

Jobs arrive and end in continuous time (Deepk8s, section 3). Who dispatches them is one of six rules:

    greedy       a decision is asked for when a visible job fits; void lets time pass to the next event, or a pause
    blocking     a decision is asked for when a job waits; the chosen one holds all others until it fits
    easy_within  blocking, but while it is held others start that will end before its reservation (RLScheduler)
    easy         the same for others that will end by its reservation, or leave it room then (EASY, Lifka 1995)
    easy_dynamic    as easy, but after every event a decision is asked for, and the reservation made, anew
    easy_shortest    as easy_dynamic, but the shortest of the others start first (Tsafrir, Etsion and Feitelson 2007)

Greedy and the last two handle together all events of one time. The other rules handle them one by one, as they would
reach a scheduler, so what happens in the same second may not be seen yet. The same three tell anew of a job that runs
longer than was told: twice as long, until that lies ahead. The compiled version must agree with this file event for
event.
"""

from dataclasses import dataclass, field
from math import inf, nan
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from pipeline.core.types import BoolArray, FloatArray, IntArray, Observation
from pipeline.problems.machines.env.nouns import (
    BLOCKING,
    EASY_SHORTEST,
    EASY_WITHIN,
    GREEDY,
    SAME_TIME,
    TOGETHER,
    Jobs,
    Machines,
    Placed,
    check_jobs,
)


class Reservation(NamedTuple):
    """What is promised to a job that is held until it fits."""

    time: float  # when it would fit if all running jobs kept to their estimates
    extra: IntArray  # [K, R]  free besides, when all jobs that end by that time have ended


@dataclass
class PlainSimulator:
    """One episode of jobs on machines; jobs are named by their order of arrival."""

    jobs: Jobs
    machines: Machines
    unit_cost: FloatArray  # [J]  what one time unit of a job's presence costs
    costs: list[tuple[float, float]] = field(default_factory=list)  # time passed and its cost, interval by interval

    def __post_init__(self) -> None:
        check_jobs(self.jobs, self.machines)
        count = len(self.jobs.arrival)
        self.now = float(self.jobs.arrival[0]) if count else 0.0
        self.limit = self.now + self.machines.time_limit
        self.cut = False
        self.joined = 0  # jobs whose arrival has been handled
        self.waiting: list[int] = []
        self.running: dict[int, list[int]] = {}  # the machines of each running job
        self.start, self.finish, self.machine = [nan] * count, [nan] * count, [-1] * count
        self.free = self.machines.capacity.copy()
        self.busy = 0.0
        self._until_decision()

    @property
    def rows(self) -> IntArray:
        """Return [0] while a decision is awaited, else nothing."""
        return np.arange(0 if self.done else 1)

    @property
    def done(self) -> bool:
        """Return whether all jobs are finished, or the episode is cut.

        With measured jobs: whether these have all started, or the last of all jobs has arrived.
        """
        if self.machines.measured is not None and not self.cut:
            first, after = self.machines.measured
            return not np.isnan(self.start[first:after]).any() or self.joined == len(self.start)
        return self.cut or not np.isnan(self.finish).any()

    @property
    def cost(self) -> float:
        """Return what the presence of all jobs has cost so far."""
        return sum(cost for _, cost in self.costs)

    def step(self, rows: IntArray, actions: IntArray) -> None:
        """Carry out one decision, and let time go on to the next one."""
        slot, machine = divmod(int(actions[0]), len(self.free))
        if self.machines.dispatch == GREEDY:
            self._start_or_pause(slot, machine)
        else:
            self._start_or_hold(slot, machine)
        self._until_decision()

    def _until_decision(self) -> None:
        greedy = self.machines.dispatch == GREEDY
        while not self.done and not (self._fits_now().any() if greedy else self.waiting):
            self._handle_next()

    def _start_or_pause(self, slot: int, machine: int) -> None:
        """Greedy: start the job of a slot on a machine; void, an empty slot or a misfit lets time pass."""
        if slot < self.machines.slots and self._fits_now()[slot, machine]:
            job = self.waiting[slot]
            self._start(job, self._places(job, self.free, wanted=machine))
        else:
            self._handle_due(latest=self.now + self.machines.pause)

    def _start_or_hold(self, slot: int, machine: int) -> None:
        """Blocking: start the job of a slot, on the machine asked for if it has room by then; hold it until it fits."""
        legal = self._legal()
        if slot >= self.machines.slots or not legal[slot, machine]:
            slot, machine = np.argwhere(legal)[0]
        job = self.waiting[slot]
        fits = bool(self._places(job, self.free))
        if not fits and self.machines.dispatch in TOGETHER:
            self._backfill(job, self._reserve(job, machine))
            self._handle_next()
            return
        if not fits:
            self._hold(job, machine)
        if not self.cut:
            self._start(job, self._places(job, self.free, wanted=machine))

    def _hold(self, job: int, wanted: int) -> None:
        reservation = self._reserve(job, wanted)
        while not self.cut and not self._places(job, self.free):
            if self.machines.dispatch != BLOCKING:
                self._backfill(job, reservation)
            self._handle_one()

    def _reserve(self, job: int, wanted: int) -> Reservation:
        ends, free, time = self._ends(), self.free.copy(), -inf
        while ends and (ends[0][0] <= time or not self._places(job, free)):
            end, other = ends.pop(0)
            if end > time:
                time = max(end, self.now)
                time += 0.0 if self.machines.dispatch == EASY_WITHIN else SAME_TIME * abs(time)
            free[self.running[other]] += self.jobs.demand[other]
        free[self._places(job, free, wanted)] -= self.jobs.demand[job]
        return Reservation(time, free)

    def _ahead(self, job: int) -> tuple[float, IntArray]:
        """Give back what running jobs hold, in the order in which they seem to end, until the job fits."""
        ends, free, time = self._ends(), self.free.copy(), self.now
        while not self._places(job, free):
            time, other = ends.pop(0)
            free[self.running[other]] += self.jobs.demand[other]
        return time, free

    def _ends(self) -> list[tuple[float, int]]:
        """Return when running jobs seem to end, in order; those of one time as they were started."""
        return sorted([(self.start[job] + self._told(job), job) for job in self.running], key=itemgetter(0))

    def _told(self, job: int) -> float:
        """Return what is told of the run time of a running job."""
        told = float(self.jobs.estimate[job])
        while self.machines.dispatch in TOGETHER and self.start[job] + told <= self.now:
            told *= 2.0
        return told

    def _backfill(self, held: int, reservation: Reservation) -> None:
        """Start what does not delay the held job, as far as estimates say; the backlog is looked through as well."""
        others = [other for other in self.waiting if other != held]
        if self.machines.dispatch == EASY_SHORTEST:
            others.sort(key=self.jobs.estimate.__getitem__)
        for job in others:
            end, within = self.now + self.jobs.estimate[job], self.machines.dispatch == EASY_WITHIN
            if end < reservation.time or (end == reservation.time and not within):
                places = self._places(job, self.free)
            elif not within:
                places = self._places(job, np.minimum(self.free, reservation.extra))
                reservation.extra[places] -= self.jobs.demand[job]
            else:
                places = []
            if places:
                self._start(job, places)

    def _can_hold(self, job: int, free: IntArray) -> BoolArray:
        """Return whether each machine [K] is of a kind the job runs on and has room for one of its nodes."""
        suits = (self.jobs.kinds[job] >> self.machines.kind.astype(np.uint64)) & np.uint64(1) > 0
        return np.asarray(suits & (self.jobs.demand[job] <= free).all(axis=1))

    def _places(self, job: int, free: IntArray, wanted: int = 0) -> list[int]:
        """Return the machines the job would take; none if too few have room.

        The first is the wanted one, or the lowest if that has no room; the others follow in order, around the end.
        """
        holders = [int(k) for k in np.flatnonzero(self._can_hold(job, free))]
        if len(holders) < self.jobs.nodes[job]:
            return []
        turn = holders.index(wanted) if wanted in holders else 0
        return (holders[turn:] + holders[:turn])[: self.jobs.nodes[job]]

    def _start(self, job: int, places: list[int]) -> None:
        self.waiting.remove(job)
        self.running[job] = places
        self.free[places] -= self.jobs.demand[job]
        self.start[job] = self.now
        self.machine[job] = places[0]

    def _next_arrival(self) -> float:
        return float(self.jobs.arrival[self.joined]) if self.joined < len(self.start) else inf

    def _next_completion(self) -> tuple[float, int]:
        """Return when the next job ends, and which; the lowest of several."""
        ends = [(self.start[job] + float(self.jobs.duration[job]), job) for job in self.running]
        return min(ends, key=itemgetter(0), default=(inf, -1))  # of those of one time, the one started first

    def _handle_next(self) -> None:
        if self.machines.dispatch in TOGETHER:
            self._handle_due(latest=inf)
        else:
            self._handle_one()

    def _handle_due(self, latest: float) -> None:
        """Let time pass to the next event, or to `latest` if that is sooner, and handle all events then due."""
        self._pass_to(min(self._next_arrival(), self._next_completion()[0], latest))
        while self._next_completion()[0] <= self.now:
            self._complete(self._next_completion()[1])
        while self._next_arrival() <= self.now:
            self._join()

    def _handle_one(self) -> None:
        """Let time pass to the next event and handle it alone; an arrival goes before a completion."""
        arrival, (end, job) = self._next_arrival(), self._next_completion()
        self._pass_to(min(arrival, end))
        if self.cut:
            return
        if arrival <= end:
            self._join()
        else:
            self._complete(job)

    def _pass_to(self, time: float) -> None:
        """Let time pass; the episode is cut where it would pass beyond the limit."""
        self.cut = time > self.limit
        passed = min(time, self.limit) - self.now
        if passed > 0:
            presence = float(self.unit_cost[[*self.waiting, *self.running]].sum())
            self.costs.append((passed, passed * presence))
            # No machine may have a resource (a GPU, say): it is never in use then.
            whole = np.maximum(self.machines.capacity.sum(axis=0), 1)
            self.busy += passed * float(((self.machines.capacity - self.free).sum(axis=0) / whole).mean())
        self.now = min(time, self.limit)

    def _join(self) -> None:
        self.waiting.append(self.joined)
        self.joined += 1

    def _complete(self, job: int) -> None:
        self.free[self.running.pop(job)] += self.jobs.demand[job]
        self.finish[job] = self.now

    def _fits_now(self) -> BoolArray:
        """Return whether each visible job fits, with that machine one of those that could hold it [M, K]."""
        fits = np.zeros((self.machines.slots, len(self.free)), dtype=bool)
        for slot, job in enumerate(self.waiting[: self.machines.slots]):
            if self._places(job, self.free):
                fits[slot] = self._can_hold(job, self.free)
        return fits

    def _legal(self) -> BoolArray:
        """Return where each visible job may be sent [M, K]: if it may be held, wherever idle machines could take it."""
        if self.machines.dispatch == GREEDY:
            return self._fits_now()
        legal = np.zeros((self.machines.slots, len(self.free)), dtype=bool)
        for slot, job in enumerate(self.waiting[: self.machines.slots]):
            legal[slot] = self._can_hold(job, self.machines.capacity)
        return legal

    def observe(self, rows: IntArray) -> Observation:
        """Return what the policy sees."""
        waiting, behind = self.waiting[: self.machines.slots], self.waiting[self.machines.slots :]
        slots = [*waiting, *[None] * (self.machines.slots - len(waiting))]
        nothing = np.zeros(self.free.shape[1], dtype=np.int64)
        last = float(self.jobs.arrival[self.joined - 1]) if self.joined else self.now
        head = [self.jobs.estimate[behind[0]], *self.jobs.demand[behind[0]]] if behind else [0.0, *nothing]
        return Observation(
            free=self.free[None, :, None].copy(),
            demand=np.array([[nothing if job is None else self.jobs.demand[job] for job in slots]]),
            duration=np.array([[0.0 if job is None else self.jobs.estimate[job] for job in slots]]),
            waited=np.array([[0.0 if job is None else self.now - self.jobs.arrival[job] for job in slots]]),
            backlog=np.array([len(behind)]),
            backlog_head=np.array([head]),
            capacity=self.machines.capacity[None].copy(),
            since_arrival=np.array([self.now - last]),
            legal=self._legal()[None],
            fits_now=self._fits_now()[None],
            now=np.array([self.now]),
            nodes=np.array([[0 if job is None else self.jobs.nodes[job] for job in slots]]),
            fits_in=np.array([[0.0 if job is None else max(self._ahead(job)[0] - self.now, 0.0) for job in slots]]),
            arrived=np.zeros((1, 2 + len(nothing))),
            may_idle=np.array([self.now - last < self.machines.stall]),
            to_end=np.array([inf]),
            load=np.array([nan]),
        )

    def placed(self) -> Placed:
        """Return what has become of every job so far."""
        machine, end, busy = np.array(self.machine, dtype=np.int64), np.array([self.now]), np.array([self.busy])
        return Placed(np.array(self.start), np.array(self.finish), machine, end, busy)
