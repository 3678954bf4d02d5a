"""The plain definition of the cluster: one episode, written to be read.

DeepRM section 3.1-3.2. Time stands still while a policy starts jobs; void, an empty slot or a job that cannot be
placed lets one step pass: the images shift up, arrivals are revealed in order into the lowest free slots, and the rest
queue in the backlog, whose head refills a slot in the moment that slot is emptied. `compiled` must agree with this file
step for step.

Policies may know but an estimate of a job's run time (a departure). It reserves the steps it requests. If it ends
earlier, the rest is given back in the moment it ends; if it runs on, it keeps its units, and in every step seems to end
after that step. Rewards know the true duration.
"""

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from pipeline.core.types import FloatArray, IntArray, Observation
from pipeline.problems.pool.env.nouns import Cluster, JobSet, Schedule
from pipeline.problems.pool.env.simulator.rewards import REWARDS
from pipeline.problems.pool.env.simulator.state import requested_steps


@dataclass
class Timestep:
    """One episode of one jobset."""

    jobs: JobSet
    cluster: Cluster
    step_limit: int
    objective: str = "slowdown"
    rewards: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now = 0
        self.last_arrival = 0
        self.requested = requested_steps(self.jobs, self.cluster)
        self.start = [-1] * len(self.jobs.arrival)
        self.slots: list[int | None] = [None] * self.cluster.slots
        self.backlog: deque[int] = deque()
        self.to_come = deque(range(len(self.start)))
        self.free = np.tile(np.array(self.cluster.capacity), (self.cluster.horizon, 1))
        self.withheld = [0] * len(self.start)
        self.withheld_steps = 0
        self.used = 0.0
        self._admit()

    @property
    def rows(self) -> IntArray:
        """Return [0] while the episode goes on, else nothing."""
        return np.arange(0 if self.done else 1)

    @property
    def done(self) -> bool:
        """Return whether all jobs are finished, or all that are measured started, or the episode is cut."""
        if self.now >= self.step_limit or all(self._finished(job) for job in range(len(self.start))):
            return True
        if self.cluster.measured is None:
            return False
        first, after = self.cluster.measured
        return all(begin >= 0 for begin, at in zip(self.start, self.jobs.arrival, strict=True) if first <= at < after)

    def step(self, rows: IntArray, actions: IntArray) -> None:
        """Start the job of a slot, or let a step pass."""
        slot = int(actions[0])
        job = self.slots[slot] if slot < len(self.slots) else None
        begin = None if job is None else self._earliest_start(job)
        if job is None or begin is None:
            self._pass_one_step()
            return
        self.start[job] = self.now + begin
        self.free[begin : begin + self.requested[job]] -= self.jobs.demand[job]
        self.slots[slot] = self.backlog.popleft() if self.backlog else None

    def _earliest_start(self, job: int) -> int | None:
        """Return the first step of the horizon from which a job fits until it ends."""
        duration, demand = self.requested[job], self.jobs.demand[job]
        last = self.cluster.horizon - duration if self.cluster.place_ahead else 0
        for begin in range(last + 1):
            if begin + duration <= self.cluster.horizon and (self.free[begin : begin + duration] >= demand).all():
                return begin
        return None

    def _fits_now(self, job: int) -> bool:
        duration = self.requested[job]
        fits = (self.free[:duration] >= self.jobs.demand[job]).all()
        return bool(fits) and duration <= self.cluster.horizon

    def _pass_one_step(self) -> None:
        capacity = np.array(self.cluster.capacity)
        shares = float(((capacity - self.free[0]) / capacity).sum())
        present = [job for job in range(len(self.start)) if self._in_system(job)]
        inverse = sum(1.0 / float(self.jobs.duration[job]) for job in present)
        self.rewards.append(REWARDS[self.objective](inverse, len(present), shares))
        self.used += shares
        fitting = [job for job in self.slots if job is not None and self._fits_now(job)]
        self.withheld_steps += bool(fitting)
        for job in fitting:
            self.withheld[job] += 1
        self.free = np.vstack([self.free[1:], capacity])
        self.now += 1
        self._settle()
        self._admit()

    def _settle(self) -> None:
        """Give back what is reserved for jobs that have ended; let others run on beyond what they requested."""
        for job in (job for job, start in enumerate(self.start) if start >= 0):
            end = self.start[job] + int(self.jobs.duration[job])
            reserved = max(0, self.start[job] + int(self.requested[job]) - self.now)
            if end == self.now:
                self.free[:reserved] += self.jobs.demand[job]
            elif end > self.now and not reserved:
                self.free[0] -= self.jobs.demand[job]

    def _admit(self) -> None:
        while self.to_come and self.jobs.arrival[self.to_come[0]] <= self.now:
            job = self.to_come.popleft()
            self.last_arrival = self.now
            if None in self.slots:
                self.slots[self.slots.index(None)] = job
            else:
                self.backlog.append(job)

    def _finished(self, job: int) -> bool:
        return self.start[job] >= 0 and self.start[job] + int(self.jobs.duration[job]) <= self.now

    def _in_system(self, job: int) -> bool:
        return bool(self.jobs.arrival[job] <= self.now) and not self._finished(job)

    def observe(self, rows: IntArray) -> Observation:
        """Return what the policy sees."""
        resources = len(self.cluster.capacity)
        waiting = [(0, [0] * resources, 0) if job is None else self._card(job) for job in self.slots]
        head = self._card(self.backlog[0])[:2] if self.backlog else (0, [0] * resources)
        fits = [job is not None and self._fits_now(job) for job in self.slots]
        legal = [job is not None and self._earliest_start(job) is not None for job in self.slots]
        return Observation(
            free=self.free[None, None].copy(),
            demand=np.array([[demand for _, demand, _ in waiting]]),
            duration=np.array([[duration for duration, _, _ in waiting]]),
            waited=np.array([[waited for _, _, waited in waiting]]),
            backlog=np.array([len(self.backlog)]),
            backlog_head=np.array([[head[0], *head[1]]]),
            capacity=np.array([[self.cluster.capacity]]),
            since_arrival=np.array([self.now - self.last_arrival]),
            legal=np.array(legal)[None, :, None],
            fits_now=np.array(fits)[None, :, None],
            now=np.array([self.now]),
            nodes=np.array([[int(job is not None) for job in self.slots]]),
            fits_in=np.zeros((1, len(self.slots))),
            arrived=self._arrived()[None],
            may_idle=np.array([self.now - self.last_arrival < self.cluster.stalled_after]),
            to_end=np.array([self._to_end()]),
            load=np.array([self._load()]),
        )

    def _to_end(self) -> float:
        end = self.cluster.arrivals_end
        return math.inf if end is None else float(max(end - self.now, 0))

    def _load(self) -> float:
        known = self.cluster.load if self.jobs.load is None else self.jobs.load
        return math.nan if known is None else known

    def _arrived(self) -> FloatArray:
        so_far = len(self.start) - len(self.to_come)
        steps = self.requested[:so_far].astype(float)
        return np.array([so_far, steps.sum(), *(steps[:, None] * self.jobs.demand[:so_far]).sum(axis=0)])

    def _card(self, job: int) -> tuple[int, list[int], int]:
        demand = [int(units) for units in self.jobs.demand[job]]
        return int(self.requested[job]), demand, self.now - int(self.jobs.arrival[job])

    def schedule(self) -> Schedule:
        """Return what has become of every job so far; of a stream that is over, when all that began will end."""
        start = np.array(self.start)
        done = np.array([self._finished(job) for job in range(len(start))])
        done |= self.done and self.cluster.measured is not None and start >= 0
        finish = np.where(done, start + self.jobs.duration, -1)
        steps, withheld_steps = np.array([self.now]), np.array([self.withheld_steps])
        return Schedule(start, finish, np.array(self.withheld), steps, withheld_steps, np.array([self.used]))
