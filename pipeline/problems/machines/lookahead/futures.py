"""Futures in which candidates are tried: copies of episodes with sampled run times, and arrivals as in the past.

The true run times of the episode's jobs are never read. The run time of a job is drawn as a share of its estimate: the
share of one of the past jobs with the nearest estimates, all equally likely. A running job has a share that it has not
yet outlived. Where past estimates were exact, so are the draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.core.types import FloatArray, IntArray, KeyArray
from pipeline.problems.machines.env.nouns import Jobs, JobsBatch, Machines
from pipeline.problems.machines.env.simulator.state import State, empty_state
from pipeline.simulation.compiled import inlined, push, uniform

NEAREST = 100  # past jobs that a share is drawn from: fewer if there are fewer, more if more have the estimate
EARLIER = np.int64(1) << 40  # taken off ranks: running jobs started before all jobs of a trial


class PastJobs(NamedTuple):
    """Jobs of the past in order of arrival; any N consecutive ones may come next."""

    gap: FloatArray  # [J]     time since the job before
    estimate: FloatArray  # [J]
    demand: IntArray  # [J, R]
    nodes: IntArray  # [J]
    kinds: KeyArray  # [J]
    duration: FloatArray  # [J]
    estimates: FloatArray  # [J]  ascending
    share: FloatArray  # [J]  run time over estimate, in the same order


def run_time_shares(estimate: FloatArray, duration: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the estimates [J] of past jobs in ascending order, and the share [J] of its estimate that each ran.

    >>> run_time_shares(np.array([9.0, 4.0]), np.array([3.0, 4.0]))
    (array([4., 9.]), array([1.        , 0.33333333]))
    """
    order = np.argsort(estimate, kind="stable")
    return estimate[order], duration[order] / estimate[order]


@dataclass(frozen=True)
class ArrivalModel:
    """Jobs of past jobsets, end to end."""

    past: PastJobs
    first: IntArray  # [B + 1]  where each jobset begins

    def places(self, draws: FloatArray, jobs: int) -> IntArray:
        """Return where futures of `jobs` consecutive jobs of one jobset begin in `past`, given uniform draws.

        >>> past = Jobs(np.arange(4.0), *[np.ones(4)] * 2, np.ones((4, 1)), *[np.ones(4)] * 2)
        >>> arrival_model([past, past]).places(np.array([0.0, 0.3, 0.6, 0.9]), jobs=2)
        array([1, 2, 5, 6])
        """
        count = np.maximum(np.diff(self.first) - jobs, 0)  # never the first: the gap before it is unknown
        before = np.concatenate([[0], np.cumsum(count)])
        place = (draws * before[-1]).astype(np.int64)
        jobset = np.searchsorted(before, place, side="right") - 1
        return np.asarray(self.first[jobset] + 1 + place - before[jobset])

    def reaches(self, jobs: int) -> bool:
        """Return whether there is any future with this number of jobs."""
        return bool((np.diff(self.first) > jobs).any())


def arrival_model(past: Sequence[Jobs]) -> ArrivalModel:
    """Return the arrival model of past jobsets."""
    gap = np.concatenate([np.diff(jobs.arrival, prepend=jobs.arrival[:1]) for jobs in past])
    duration, estimate, demand, nodes, kinds = (np.concatenate([jobs[k] for jobs in past]) for k in range(1, 6))
    first = np.concatenate([[0], np.cumsum([len(jobs.arrival) for jobs in past])])
    shares = run_time_shares(estimate, duration)
    return ArrivalModel(PastJobs(gap, estimate, demand, nodes, kinds, duration, *shares), first)


@inlined
def _count_below(values: FloatArray, value: float, equal: bool) -> int:
    """Return how many of some ascending values are below a value or, if `equal`, at most that value."""
    low, high = 0, values.shape[0]
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value or (equal and values[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def run_time(
    estimates: FloatArray, share: FloatArray, estimate: float, begun: float, now: float, key: np.uint64, place: int
) -> float:
    """Draw the total run time of a job, such that it does not end before now.

    The draw is the estimate times the share of a past job with a similar estimate. If the job has already run longer
    than any such draw, its run time is the estimate, doubled until the end is not before now.

    Args:
        estimates: [J] estimates of past jobs, see `PastJobs`.
        share: [J] run time over estimate of the same jobs.
        estimate: the job's estimate.
        begun: start of the job; `now` for a waiting job.
        now: time of the decision.
        key: key of the random draws.
        place: number of the job among those that share the key.
    """
    low, high = _count_below(estimates, estimate, False), _count_below(estimates, estimate, True)
    most = estimates.shape[0]
    width = max(high - low, min(NEAREST, most))
    first = min(max(low - (width - high + low + 1) // 2, 0), most - width)
    alive = 0
    for k in range(first, first + width):
        alive += begun + share[k] * estimate >= now
    if alive == 0:
        doubled = estimate
        while begun + doubled < now:
            doubled *= 2.0
        return float(doubled)
    left, found = int(uniform(key, place) * alive), first
    for k in range(first, first + width):
        if begun + share[k] * estimate >= now:
            if left == 0:
                found = k
            left -= 1
    return float(share[found] * estimate)


def buffer(episodes: int, jobs: int, held: int, machines: Machines) -> State:
    """Return the state of copies to be overwritten, each with room for `jobs` jobs on `held` nodes together."""
    room = jobs + 1  # the last place is never used: it bounds the machines of the job before it
    count, resources = episodes * room, machines.capacity.shape[1]
    times, whole = np.ones(count), np.zeros(count, dtype=np.int64)
    demand = np.zeros((count, resources), dtype=np.int64)
    first = np.arange(episodes + 1, dtype=np.int64) * room
    batch = JobsBatch(first, times, times.copy(), times.copy(), demand, whole, whole.astype(np.uint64))
    state = empty_state(batch, machines, np.zeros(count))
    return state._replace(held=np.full(episodes * held, -1, dtype=np.int32))


@inlined
def _copy_job(t: State, j: int, s: State, job: int) -> None:
    t.arrival[j] = s.arrival[job]
    t.estimate[j] = s.estimate[job]
    t.nodes[j], t.kinds[j] = s.nodes[job], s.kinds[job]
    t.held_first[j + 1] = t.held_first[j] + s.nodes[job]
    for r in range(s.capacity.shape[1]):
        t.demand[j, r] = s.demand[job, r]


@inlined
def _copy_waiting(t: State, j: int, s: State, job: int, b: int, past: PastJobs, key: np.uint64) -> int:
    _copy_job(t, j, s, job)
    now, place = s.now[b], job - s.first[b]
    t.duration[j] = run_time(past.estimates, past.share, s.estimate[job], now, now, key, place)
    return j + 1


@inlined
def write_known(t: State, e: int, s: State, b: int, past: PastJobs, key: np.uint64) -> int:
    """Write the running jobs, then the waiting ones in slots and in the backlog; return the place after the last.

    `key` seeds the draws of run times. A draw depends on the number of the job, not on its place here, because running
    jobs are ordered by their true ends.
    """
    j = t.first[e]
    t.held_first[j] = e * (t.held.shape[0] // t.now.shape[0])
    for i in range(s.runs[b]):
        job = s.running[s.first[b] + i]
        _copy_job(t, j, s, job)
        for place in range(s.nodes[job]):
            t.held[t.held_first[j] + place] = s.held[s.held_first[job] + place]
        t.estimated[j], t.rank[j] = s.estimated[job], s.rank[job] - EARLIER
        begun, place = s.start[job], job - s.first[b]
        t.duration[j] = run_time(past.estimates, past.share, s.estimate[job], begun, s.now[b], key, place)
        t.ends[j] = max(begun + t.duration[j], s.now[b])
        j += 1
    for m in range(s.waiting[b]):
        j = _copy_waiting(t, j, s, s.slot_job[b, m], b, past, key)
    if s.backlog[b] > 0:
        for job in range(s.queue[b], s.to_come[b]):
            if np.isnan(s.start[job]):
                j = _copy_waiting(t, j, s, job, b, past, key)
    return int(j)


@inlined
def write_arrivals(t: State, e: int, s: State, b: int, past: PastJobs, begin: int, count: int, j: int) -> int:
    """Write future arrivals: `count` past jobs from `begin` on; return the place after the last."""
    at = s.now[b]
    for source in range(begin, begin + count):
        at += past.gap[source]
        t.arrival[j] = at
        t.duration[j], t.estimate[j] = past.duration[source], past.estimate[source]
        t.nodes[j], t.kinds[j] = past.nodes[source], past.kinds[source]
        t.held_first[j + 1] = t.held_first[j] + past.nodes[source]
        for r in range(s.capacity.shape[1]):
            t.demand[j, r] = past.demand[source, r]
        j += 1
    for k in range(j, t.first[e + 1]):
        t.arrival[k] = np.inf
    return int(j)


@inlined
def reset_copy(t: State, e: int, s: State, b: int, last: int) -> None:
    """Reset a copy to the current state of its episode; its jobs, up to `last`, stay."""
    first, runs = t.first[e], s.runs[b]
    t.now[e], t.last_arrival[e] = s.now[b], s.last_arrival[b]
    t.present[e], t.rate[e], t.cost[e], t.busy[e] = 0, 0.0, 0.0, 0.0
    for r in range(s.capacity.shape[1]):
        t.in_use[e, r] = s.in_use[b, r]
        for k in range(s.kind.shape[0]):
            t.free[e, k, r] = s.free[b, k, r]
    t.waiting[e], t.fitting[e], t.backlog[e] = s.waiting[b], s.fitting[b], s.backlog[b]
    t.queue[e] = first + runs + s.waiting[b]
    t.to_come[e] = t.queue[e] + s.backlog[b]
    t.finished[e], t.done[e] = t.first[e + 1] - last, False  # so that the copy is over when all jobs have ended
    t.runs[e] = 0
    for j in range(first, last):
        t.start[j] = np.nan
    for j in range(first, first + runs):
        t.start[j] = s.start[s.running[s.first[b] + j - first]]
        push(t.running, first, t.runs[e], t.ends, t.rank, j)
        t.runs[e] += 1
    for m in range(s.waiting[b]):
        t.slot_job[e, m], t.able[e, m] = first + runs + m, s.able[b, m]
        for k in range(s.kind.shape[0]):
            t.can[e, m, k] = s.can[b, m, k]
