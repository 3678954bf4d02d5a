"""Copies of episodes to try candidates on: what a policy may know of them, and jobs that may come.

How long the episode's jobs really run is never read: it is drawn as those of the past ran.

A job's run time is drawn as a share of what is told of it, from the past jobs that come nearest in that; of one that
runs already, among the shares that it has not outlived, all alike. Where the past ran as it was told, so do all.
"""

from typing import NamedTuple

import numpy as np

from pipeline.core import FloatArray, IntArray, KeyArray
from pipeline.problems.machines.nouns import JobsBatch, Machines
from pipeline.problems.machines.simulator.compiled.state import State, empty_state
from pipeline.simulation.compiled import inlined, push, uniform

NEAREST = 100  # past jobs that a share is drawn from, at least if there are as many; all that were told the same


def shares(estimate: FloatArray, duration: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what past jobs were told, ascending [J], and the share of it that each ran [J].

    >>> shares(np.array([9.0, 4.0]), np.array([3.0, 4.0]))
    (array([4., 9.]), array([1.        , 0.33333333]))
    """
    order = np.argsort(estimate, kind="stable")
    return estimate[order], duration[order] / estimate[order]


@inlined
def _behind(told: FloatArray, value: float, equal: bool) -> int:
    """Return how many of ascending numbers lie below a value, or are equal to it as well."""
    low, high = 0, told.shape[0]
    while low < high:
        middle = (low + high) // 2
        if told[middle] < value or (equal and told[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def run_time(
    told: FloatArray, share: FloatArray, estimate: float, begun: float, now: float, key: np.uint64, place: int
) -> float:
    """Return a draw of how long a job runs in all, that does not end before now.

    Where no past job ran so long a share, it is what is told, and told anew, twice as much, until it does.

    Args:
        told: [J], see `shares`.
        share: [J], of the same jobs.
        estimate: what is told of the job.
        begun: when it was started; of one that waits, now.
        now: the time of the decision.
        key: of the draws.
        place: of the job among those that share the key.
    """
    low, high, most = _behind(told, estimate, False), _behind(told, estimate, True), told.shape[0]
    width = max(high - low, min(NEAREST, most))
    first = min(max(low - (width - high + low + 1) // 2, 0), most - width)
    alive = 0
    for k in range(first, first + width):
        alive += begun + share[k] * estimate >= now
    if alive == 0:
        anew = estimate
        while begun + anew < now:
            anew *= 2.0
        return float(anew)
    left, found = int(uniform(key, place) * alive), first
    for k in range(first, first + width):
        if begun + share[k] * estimate >= now:
            if left == 0:
                found = k
            left -= 1
    return float(share[found] * estimate)


EARLIER = np.int64(1) << 40  # of ranks: what runs already started before all that is tried


class Coming(NamedTuple):
    """Jobs of the past in order of arrival, of which any N consecutive ones may come next."""

    gap: FloatArray  # [J]     since the job before
    estimate: FloatArray  # [J]
    demand: IntArray  # [J, R]
    nodes: IntArray  # [J]
    kinds: KeyArray  # [J]
    duration: FloatArray  # [J]
    told: FloatArray  # [J]  what was told of how long jobs run, ascending
    share: FloatArray  # [J]  of it, that these jobs ran


def buffer(episodes: int, jobs: int, held: int, machines: Machines) -> State:
    """Return the state of as many episodes, each with room for so many jobs on so many machines, to be written over."""
    room = jobs + 1  # the last is never used: where the machines of the job before it stand, ends there
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
def write_known(t: State, e: int, s: State, b: int, coming: Coming, key: np.uint64) -> int:
    """Write the jobs that run, then those that wait, in slots and behind them; return the place behind the last.

    The key is that of the draws of how long they run; a job's own number chooses among them, for the order of those
    that run is that of their true ends.
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
        t.duration[j] = run_time(coming.told, coming.share, s.estimate[job], begun, s.now[b], key, place)
        t.ends[j] = max(begun + t.duration[j], s.now[b])
        j += 1
    for m in range(s.waiting[b]):
        j = _write_waiting(t, j, s, s.slot_job[b, m], b, coming, key)
    if s.behind[b] > 0:
        for job in range(s.queue[b], s.to_come[b]):
            if np.isnan(s.start[job]):
                j = _write_waiting(t, j, s, job, b, coming, key)
    return int(j)


@inlined
def _write_waiting(t: State, j: int, s: State, job: int, b: int, coming: Coming, key: np.uint64) -> int:
    _copy_job(t, j, s, job)
    now, place = s.now[b], job - s.first[b]
    t.duration[j] = run_time(coming.told, coming.share, s.estimate[job], now, now, key, place)
    return j + 1


@inlined
def write_coming(t: State, e: int, s: State, b: int, coming: Coming, begin: int, count: int, j: int) -> int:
    """Write jobs that may come, from a place of `coming` on; return the place behind the last."""
    at = s.now[b]
    for source in range(begin, begin + count):
        at += coming.gap[source]
        t.arrival[j] = at
        t.duration[j], t.estimate[j] = coming.duration[source], coming.estimate[source]
        t.nodes[j], t.kinds[j] = coming.nodes[source], coming.kinds[source]
        t.held_first[j + 1] = t.held_first[j] + coming.nodes[source]
        for r in range(s.capacity.shape[1]):
            t.demand[j, r] = coming.demand[source, r]
        j += 1
    for k in range(j, t.first[e + 1]):
        t.arrival[k] = np.inf
    return int(j)


@inlined
def begin_again(t: State, e: int, s: State, b: int, last: int) -> None:
    """Set a copy back to where its episode is; its jobs, up to `last`, stay."""
    first, runs = t.first[e], s.runs[b]
    _same_times(t, e, s, b)
    t.waiting[e], t.fitting[e], t.behind[e] = s.waiting[b], s.fitting[b], s.behind[b]
    t.queue[e] = first + runs + s.waiting[b]
    t.to_come[e] = t.queue[e] + s.behind[b]
    t.finished[e], t.done[e] = t.first[e + 1] - last, False  # so that it is over when all have ended
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


@inlined
def _same_times(t: State, e: int, s: State, b: int) -> None:
    t.now[e], t.last_arrival[e] = s.now[b], s.last_arrival[b]
    t.present[e], t.rate[e], t.cost[e], t.busy[e] = 0, 0.0, 0.0, 0.0
    for r in range(s.capacity.shape[1]):
        t.in_use[e, r] = s.in_use[b, r]
        for k in range(s.kind.shape[0]):
            t.free[e, k, r] = s.free[b, k, r]
