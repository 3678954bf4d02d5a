"""The plain definition of the cluster that groups share: one episode, written to be read.

Time is real. At the times n * interval, n = 0, 1, ..., the controller is asked, and what it sets holds until it is
asked again. All else happens at events, at each time in this order: jobs that end give back their units, jobs that
arrive join their queues, and then (at the beginning of an interval: once the controller has set) starts are tried:

    own       a job may start if its demand fits into what the cluster has free, and, with what its group uses already,
              into the group's share
    borrowed  when no job may start as its group's own, and the cluster allows it: the share is not looked at

Of each group the candidate is the head of the first of its queues, in the order set, whose head may start; nobody
overtakes inside a queue. Of the groups' candidates the one that arrived first starts, and starts are tried anew.
Nothing is preempted: a group that uses more than its share starts nothing as its own until enough of its jobs end.

A job costs its weight for each time unit that it waits. The episode is over at the first decision at which no job waits
or is still to arrive (those that run then run to their ends), or is cut at the first one at or behind the time limit.
Estimates of run times are used in observations and in `what_if` only. The compiled version must agree with this file.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from math import inf, nan

import numpy as np

from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.groups.env.nouns import (
    RECENT,
    Jobs,
    Observation,
    Served,
    Setting,
    SharedCluster,
    check_jobs,
    equal_shares,
)


@dataclass
class PlainGroups:
    """One episode of jobs of user groups; jobs are named by their order of arrival."""

    jobs: Jobs
    cluster: SharedCluster
    weight: FloatArray  # [J]  what one time unit of a job's waiting costs its group

    def __post_init__(self) -> None:
        check_jobs(self.jobs, self.cluster)
        count, groups, queues = len(self.jobs.arrival), self.cluster.groups, self.cluster.queues
        self.decision, self.clock = 0, 0.0
        self.runs = self.jobs.duration  # [J]  how long a job runs once it has started
        self.coming = list(range(count))
        self.waiting: list[int] = []
        self.running: list[int] = []
        self.start = np.full(count, nan)
        self.used = np.zeros((groups, len(self.cluster.capacity)), dtype=np.int64)
        self.share, self.order = equal_shares(self.cluster), np.zeros(groups, dtype=np.int64)
        self.recent_jobs, self.recent_work = np.zeros((groups, queues)), np.zeros((groups, queues))
        self._handle_due(0.0)
        self._remember(self.waiting)

    @property
    def now(self) -> float:
        """Return the time of the decision that is awaited."""
        return self.decision * self.cluster.interval

    @property
    def drained(self) -> bool:
        """Return whether every job has started."""
        return not self.waiting and not self.coming

    @property
    def over(self) -> bool:
        """Return whether no decision is awaited any more."""
        return self.drained or self.now >= self.cluster.time_limit

    def step(self, setting: Setting) -> FloatArray:
        """Play the interval that begins now under a setting, and return its cost [G]."""
        if self.over:
            raise ValueError(f"the episode is over since {self.now:g}")
        before = list(self.coming)
        cost = self._play(setting)
        self.share, self.order = setting.share[0].copy(), setting.order[0].copy()
        self.decision += 1
        self._remember(before[: len(before) - len(self.coming)])
        return cost

    def what_if(self, setting: Setting, isolated: bool = False, by_estimate: bool = False) -> FloatArray:
        """Return the cost [G] that `step` would return; nothing changes.

        Args:
            setting: what the controller might set.
            isolated: each group plays as if the others were not there: its share is its own to the last unit, and it
                can borrow nothing.
            by_estimate: as far as the controller may know: nobody arrives, and jobs end by their estimate; at once, if
                they run for longer than that already.
        """
        other = deepcopy(self)
        if by_estimate:
            other.coming = []
            other.runs = other.jobs.estimate
            other._handle_due(other.now)
        return other._play(setting, isolated)

    def _play(self, setting: Setting, isolated: bool = False) -> FloatArray:
        """Let the interval pass to its end, and return its cost [G]."""
        time, end = self.now, (self.decision + 1) * self.cluster.interval
        cost = np.zeros(self.cluster.groups)
        while time < end:
            self._start_what_may(setting, isolated)
            event = min(self._next_arrival(), self._next_end(), end)
            for job in self.waiting:
                cost[self.jobs.group[job]] += self.weight[job] * (event - time)
            time = event
            self._handle_due(time)
        return cost

    def _start_what_may(self, setting: Setting, isolated: bool) -> None:
        share, order = setting.share[0], setting.order[0]

        def within_share(job: int) -> bool:
            group = self.jobs.group[job]
            return bool((self.used[group] + self.jobs.demand[job] <= share[group]).all())

        def fits(job: int) -> bool:
            return bool((self.jobs.demand[job] <= self.cluster.capacity - self.used.sum(axis=0)).all())

        if isolated:
            self._start_all(order, within_share)
            return
        self._start_all(order, lambda job: fits(job) and within_share(job))
        if self.cluster.borrowing:
            self._start_all(order, fits)

    def _start_all(self, order: IntArray, may: Callable[[int], bool]) -> None:
        """Start the first of the groups' candidates, and again, until there is none."""
        while candidates := self._candidates(order, may):
            job = min(candidates)
            self.waiting.remove(job)
            self.running.append(job)
            self.start[job] = self.clock
            self.used[self.jobs.group[job]] += self.jobs.demand[job]

    def _candidates(self, order: IntArray, may: Callable[[int], bool]) -> list[int]:
        heads, found = self._heads(), []
        for group in range(self.cluster.groups):
            line = [heads.get((group, int(queue))) for queue in self.cluster.orders[order[group]]]
            found += [head for head in line if head is not None and may(head)][:1]
        return found

    def _heads(self) -> dict[tuple[int, int], int]:
        """Return the job that has waited longest in each queue of each group that has any."""
        last_first = reversed(self.waiting)
        return {(int(self.jobs.group[job]), int(self.jobs.queue[job])): job for job in last_first}

    def _next_arrival(self) -> float:
        return float(self.jobs.arrival[self.coming[0]]) if self.coming else inf

    def _next_end(self) -> float:
        return min((self._end(job) for job in self.running), default=inf)

    def _end(self, job: int) -> float:
        return float(self.start[job] + self.runs[job])

    def _handle_due(self, time: float) -> None:
        """Let jobs that have ended by a time give back their units, and then those that have arrived join."""
        self.clock = time
        for job in [job for job in self.running if self._end(job) <= time]:
            self.running.remove(job)
            self.used[self.jobs.group[job]] -= self.jobs.demand[job]
        while self._next_arrival() <= time:
            self.waiting.append(self.coming.pop(0))

    def _remember(self, arrived: list[int]) -> None:
        """Mix the jobs that have arrived in an interval into what is recent."""
        self.recent_jobs = RECENT * self._by_queue(arrived, np.ones(len(self.start))) + (1 - RECENT) * self.recent_jobs
        self.recent_work = RECENT * self._by_queue(arrived, self._work()) + (1 - RECENT) * self.recent_work

    def _portion(self) -> FloatArray:
        """Return the share of all units [J] that each job wants, mean over resources."""
        return np.asarray((self.jobs.demand / self.cluster.capacity).mean(axis=1))

    def _work(self) -> FloatArray:
        return np.asarray(self.jobs.estimate * self._portion())

    def _by_queue(self, jobs: list[int], value: FloatArray) -> FloatArray:
        """Return a value [J] or [J, R] of some jobs, summed [G, Q] or [G, Q, R]."""
        total = np.zeros((self.cluster.groups, self.cluster.queues, *value.shape[1:]))
        for job in jobs:
            total[self.jobs.group[job], self.jobs.queue[job]] += value[job]
        return total

    def observe(self) -> Observation:
        """Return what the controller sees."""
        jobs, now, heads = self.jobs, self.now, list(self._heads().values())
        waited, demand = np.maximum(now - jobs.arrival, 0.0), jobs.demand.astype(float)
        running = np.zeros(self.cluster.groups, dtype=np.int64)
        left, releasing = np.zeros(self.cluster.groups), np.zeros_like(self.used)
        for job in self.running:
            group = jobs.group[job]
            running[group] += 1
            left[group] += max(jobs.estimate[job] - (now - self.start[job]), 0.0) * self._portion()[job]
            if self.start[job] + jobs.estimate[job] <= now + self.cluster.interval:
                releasing[group] += jobs.demand[job]
        return Observation(
            now=np.array([now]),
            waiting=self._by_queue(self.waiting, np.ones(len(self.start)))[None].astype(np.int64),
            waiting_demand=self._by_queue(self.waiting, demand)[None].astype(np.int64),
            waiting_work=self._by_queue(self.waiting, self._work())[None],
            waited=self._by_queue(self.waiting, waited)[None],
            head_waited=self._by_queue(heads, waited)[None],
            head_demand=self._by_queue(heads, demand)[None].astype(np.int64),
            head_estimate=self._by_queue(heads, jobs.estimate)[None],
            running=running[None],
            used=self.used[None].copy(),
            left=left[None],
            releasing=releasing[None],
            recent_jobs=self.recent_jobs[None].copy(),
            recent_work=self.recent_work[None].copy(),
            share=self.share[None].copy(),
            order=self.order[None].copy(),
        )

    def served(self) -> Served:
        """Return what has become of every job so far, and of the episode."""
        finish = self.start + self.jobs.duration
        if not self.drained:
            finish[~(finish <= self.now)] = nan
        end = float(finish.max(initial=0.0)) if self.drained else self.now
        held = np.where(np.isnan(finish), end, finish) - self.start
        busy = float(np.nansum(self._portion() * held))
        return Served(self.start.copy(), finish, np.array([end]), np.array([busy]))
