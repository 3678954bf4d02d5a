"""Types of the controller's problem: user groups that share a cluster, and the shares of each group.

A controller decides at the beginning of every interval. Its setting holds until the next: for each group, the units of
each resource that it may use, and the order in which its queues are served. Letters, in addition to those of `core`:

    G  user groups     Q  queues of a group (the most that any has; the rest stay empty)
    L  levels: possible amounts of units for a group     O  orders of the queues
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core.types import FloatArray, IntArray


class SharedCluster(NamedTuple):
    """The shared cluster of a scenario."""

    capacity: IntArray  # [R]     units
    groups: int  # G
    orders: IntArray  # [O, Q]  queues of each order, in the order of service
    interval: float  # time between two decisions of the controller
    borrowing: bool  # may jobs use idle units of other groups?
    time_limit: float  # an episode is cut at the first decision at or after it; unfinished jobs are counted

    @property
    def queues(self) -> int:
        """Number of queues Q."""
        return int(self.orders.shape[1])


class Jobs(NamedTuple):
    """The jobs of one episode in order of arrival."""

    arrival: FloatArray  # [J]     time, at least 0, ascending
    duration: FloatArray  # [J]     run time, above 0
    estimate: FloatArray  # [J]     run time known to a controller: requested, predicted or exact; above 0
    demand: IntArray  # [J, R]  units in use while the job runs
    group: IntArray  # [J]     0 .. G - 1
    queue: IntArray  # [J]     0 .. Q - 1, in its group


class JobsBatch(NamedTuple):
    """The jobs of B episodes end to end; episode b owns the jobs first[b] : first[b + 1]."""

    first: IntArray  # [B + 1]
    arrival: FloatArray  # [J]
    duration: FloatArray  # [J]
    estimate: FloatArray  # [J]
    demand: IntArray  # [J, R]
    group: IntArray  # [J]
    queue: IntArray  # [J]

    @property
    def episodes(self) -> int:
        """Number of episodes B."""
        return len(self.first) - 1

    @property
    def episode(self) -> IntArray:
        """Episode [J] of each job."""
        return np.repeat(np.arange(self.episodes), np.diff(self.first))


class Observation(NamedTuple):
    """A controller's view of B episodes at the beginning of an interval.

    Work is a job's share of all units, mean over resources, times its estimated run time.
    Values named `recent` are smoothed over intervals: RECENT of the last one plus 1 - RECENT of the previous value.
    """

    now: FloatArray  # [B]           time
    waiting: IntArray  # [B, G, Q]     jobs that have arrived and not started
    waiting_demand: IntArray  # [B, G, Q, R]  their demands, summed
    waiting_work: FloatArray  # [B, G, Q]     their work, summed
    waited: FloatArray  # [B, G, Q]     time since their arrivals, summed
    head_waited: FloatArray  # [B, G, Q]     time that the first one has waited; 0 = none waits
    head_demand: IntArray  # [B, G, Q, R]  demand of the first one; 0 = none waits
    head_estimate: FloatArray  # [B, G, Q]     estimate of the first one; 0 = none waits
    running: IntArray  # [B, G]        number of running jobs
    used: IntArray  # [B, G, R]     units of running jobs
    left: FloatArray  # [B, G]        remaining work of running jobs, by estimates (at least 0 each)
    releasing: IntArray  # [B, G, R]     units that running jobs release by the end of the interval, by estimates
    recent_jobs: FloatArray  # [B, G, Q]     arrivals in an interval
    recent_work: FloatArray  # [B, G, Q]     work of the arrivals in an interval
    share: IntArray  # [B, G, R]     the group's units in the previous interval; initially equal
    order: IntArray  # [B, G]        index in `orders` in the previous interval; initially 0


RECENT = 0.3


class Setting(NamedTuple):
    """A controller's decision in B episodes for the next interval."""

    share: IntArray  # [B, G, R]  units that a group's jobs may use; sums above capacity are allowed, but useless
    order: IntArray  # [B, G]     index in `orders`


class Served(NamedTuple):
    """Outcome of every job of a batch, and of every episode."""

    start: FloatArray  # [J]  time; nan = never started
    finish: FloatArray  # [J]  time; nan = unfinished when the episode was cut
    end: FloatArray  # [B]  end of the last job; the limit if the episode was cut
    busy: FloatArray  # [B]  shares of all units in use, mean over resources, integrated over time until `end`


class Configurations(NamedTuple):
    """All settings of one group: every level with every order."""

    units: IntArray  # [L, R]  ascending in all resources at once; the first is 0
    orders: int  # O

    @property
    def total(self) -> int:
        """Number of configurations L * O; configuration a has level a // O and order a % O."""
        return len(self.units) * self.orders


Controller = Callable[[Observation, FloatArray], Setting]  # (view, uniform draws [B] in [0, 1)) -> setting


def equal_shares(cluster: SharedCluster) -> IntArray:
    """Return units [G, R] that are as equal as possible; the first groups get the remainder.

    >>> one = SharedCluster(np.array([10]), 4, np.array([[0]]), 1.0, False, 1.0)
    >>> equal_shares(one)[:, 0]
    array([3, 3, 2, 2])
    """
    each, odd = np.divmod(cluster.capacity, cluster.groups)
    return np.asarray(each + (np.arange(cluster.groups)[:, None] < odd))


def batch(jobs: Sequence[Jobs]) -> JobsBatch:
    """Concatenate the jobs of episodes."""
    first = np.concatenate([[0], np.cumsum([len(one.arrival) for one in jobs])]).astype(np.int64)
    kinds = (np.float64, np.float64, np.float64, np.int64, np.int64, np.int64)
    columns = (
        np.ascontiguousarray(np.concatenate([one[k] for one in jobs]), dtype=kind) for k, kind in enumerate(kinds)
    )
    return JobsBatch._make([first, *columns])


def check_jobs(jobs: Jobs, cluster: SharedCluster) -> None:
    """Raise ValueError if a time, an amount, a group or a queue is out of range."""
    if len(jobs.arrival) and (jobs.arrival[0] < 0 or (np.diff(jobs.arrival) < 0).any()):
        raise ValueError("jobs are not in order of arrival from 0 on")
    for name, time in (("duration", jobs.duration), ("estimate", jobs.estimate)):
        if len(time) and not time.min() > 0:
            raise ValueError(f"job {int(time.argmin())} has {name} {time.min()}; expected more than 0")
    for name, column, most in (("group", jobs.group, cluster.groups), ("queue", jobs.queue, cluster.queues)):
        wrong = np.flatnonzero((column < 0) | (column >= most))
        if len(wrong):
            raise ValueError(f"job {wrong[0]} has {name} {column[wrong[0]]}; expected 0 to {most - 1}")
    wide = np.flatnonzero(((jobs.demand < 0) | (jobs.demand > cluster.capacity)).any(axis=1))
    if len(wide):
        raise ValueError(
            f"job {wide[0]} wants {jobs.demand[wide[0]].tolist()} units; there are {cluster.capacity.tolist()}"
        )
