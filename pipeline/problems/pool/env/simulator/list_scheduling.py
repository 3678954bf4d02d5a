"""Compiled list scheduling and local search: an order of known jobs becomes a schedule, and orders are tried.

From its arrival on, each job in turn starts as soon as it fits for its whole duration (serial list scheduling). Some
order gives an optimal schedule: if the jobs of a schedule are listed by their starts, no job starts later than before,
as the jobs listed before it use no more units at or after its old start than they did. So it still fits there.

Orders are improved by simulated annealing. A move takes the two jobs at the ends of a stretch of the order (short
stretches more often): they swap places, or one moves after or before the other. The schedule before the stretch is
kept, and a trial ends once it is too bad to be accepted. Jobsets are independent.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from pipeline.core.types import FloatArray, IntArray, KeyArray
from pipeline.problems.pool.env.nouns import JobBatch
from pipeline.simulation.compiled import Span, inlined, threaded, uniform

HOT, COLD = 0.3, 0.01  # first and last temperature, relative to the mean wait / duration of the first schedule
NEAR = 2.0  # exponent in the draw of a stretch's length: 1 would make all lengths equally likely
DRAWS = 4  # random draws per move

# One word holds the units of four resources, 16 bits each. The top bit of each is set in free units but not in a job's
# needs: if the job does not fit, that bit is 0 in the difference.
FIELDS, BITS = 4, 16
GUARDS = np.uint64(0x8000800080008000)
MOST_UNITS = (1 << (BITS - 1)) - 1


class PackedJobs(NamedTuple):
    """Jobs in the form that kernels read."""

    arrival: IntArray  # [J]
    duration: IntArray  # [J]
    worth: FloatArray  # [J]     1 / duration: slowdown per step of waiting
    need: KeyArray  # [J, W]  units, packed
    idle: KeyArray  # [W]     units of the idle cluster, packed


class SearchState(NamedTuple):
    """The order of one jobset, the trial of another order, and a buffer for scheduling."""

    order: IntArray  # [J]      jobs
    start: IntArray  # [J]      start of the job at each place of the order
    before: FloatArray  # [J + 1]  sum of wait / duration of the jobs before each place
    trial: IntArray  # [J]      the order, except in the stretch of a move
    trial_start: IntArray  # [J]      valid up to where the trial ended
    free: KeyArray  # [T, W]   free units, packed, after the jobs scheduled so far
    used: IntArray  # [1]      rows of `free` from here on are idle


def improved(
    jobs: JobBatch, capacity: Sequence[int], orders: IntArray, evaluations: int, key: KeyArray | None = None
) -> IntArray:
    """Return the start [J] of every job in the best schedule found.

    Args:
        jobs: known from the start; no job demands more than the capacity.
        capacity: units of each resource.
        orders: jobs [J] by their number in the batch, jobset after jobset.
        evaluations: number of orders to schedule for each jobset, including the first; 1: no search.
        key: random key [B] of each jobset; not needed for one evaluation.
    """
    numbers = np.arange(len(jobs.arrival))
    if not np.array_equal(np.sort(orders), numbers) or (jobs.episode[orders] != jobs.episode).any():
        raise ValueError("orders do not name every job of each jobset once")
    packed, start = packed_jobs(jobs, capacity), np.empty(len(orders), dtype=np.int64)
    keys = np.zeros(jobs.episodes, dtype=np.uint64) if key is None else np.ascontiguousarray(key)
    _search_rows(jobs.first, packed, np.ascontiguousarray(orders, dtype=np.int64), evaluations, keys, start)
    return start


def packed_jobs(jobs: JobBatch, capacity: Sequence[int]) -> PackedJobs:
    """Return jobs in the form that kernels read; raise a ValueError for a job that never fits."""
    units = np.array(capacity, dtype=np.int64)
    if units.max() > MOST_UNITS:
        raise ValueError(f"a resource has {units.max()} units; list scheduling takes at most {MOST_UNITS}")
    if (beyond := (jobs.demand > units).any(axis=1)).any():
        job = int(beyond.argmax())
        raise ValueError(f"job {job} wants {jobs.demand[job].tolist()} units; the cluster has {units.tolist()}")
    duration = np.ascontiguousarray(jobs.duration, dtype=np.int64)
    arrival = np.ascontiguousarray(jobs.arrival, dtype=np.int64)
    return PackedJobs(arrival, duration, 1.0 / duration, _packed(jobs.demand), _packed(units[None])[0] | GUARDS)


def _packed(units: IntArray) -> KeyArray:
    words = np.zeros((len(units), -(-units.shape[1] // FIELDS)), dtype=np.uint64)
    for r in range(units.shape[1]):
        words[:, r // FIELDS] |= units[:, r].astype(np.uint64) << np.uint64(BITS * (r % FIELDS))
    return words


@threaded(lambda first, *_: len(first) - 1)
def _search_rows(
    span: Span, first: IntArray, jobs: PackedJobs, orders: IntArray, evaluations: int, key: KeyArray, start: IntArray
) -> None:
    for b in range(*span):
        if first[b + 1] > first[b]:
            _search(jobs, orders[first[b] : first[b + 1]], evaluations, key[b], start)


@njit(cache=True)
def _search(jobs: PackedJobs, order: IntArray, evaluations: int, key: np.uint64, best: IntArray) -> None:
    """Write the start of every job of one jobset."""
    search = _search_state(jobs, order)
    count = order.shape[0]
    current = _list(jobs, search, 0, np.inf)
    _accept(jobs, search, 0, count - 1)
    _note(search, best)
    if count < 2:
        return
    least, heat, cooling = current, HOT * current / count, (COLD / HOT) ** (1.0 / evaluations)
    for k in range(1, evaluations):
        low, high = _move(search, key, DRAWS * k)
        most = current - heat * math.log(1.0 - uniform(key, DRAWS * k + 3))
        total = _list(jobs, search, low, most)
        if total <= most:
            _accept(jobs, search, low, high)
            current = total
            if current < least - 1e-9:
                least = current
                _note(search, best)
        else:
            for p in range(low, high + 1):
                search.trial[p] = search.order[p]
        heat *= cooling


@njit(cache=True)
def _search_state(jobs: PackedJobs, order: IntArray) -> SearchState:
    count, steps, latest = order.shape[0], 0, 0
    for job in order:
        steps += jobs.duration[job]
        latest = max(latest, jobs.arrival[job])
    free = np.empty((latest + steps, jobs.idle.shape[0]), dtype=np.uint64)
    free[:] = jobs.idle
    starts, trials = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    return SearchState(
        order.copy(), starts, np.zeros(count + 1), order.copy(), trials, free, np.zeros(1, dtype=np.int64)
    )


@inlined
def _move(search: SearchState, key: np.uint64, draw: int) -> tuple[int, int]:
    """Move jobs of the trial; return the ends of the stretch that differs from the order."""
    count, order, trial = search.order.shape[0], search.order, search.trial
    length = 1 + int((count - 1) * uniform(key, draw) ** NEAR)
    low = int((count - length) * uniform(key, draw + 1))
    high, how = low + length, uniform(key, draw + 2)
    if how < 0.5:
        trial[low], trial[high] = order[high], order[low]
    elif how < 0.75:
        for p in range(low, high):
            trial[p] = order[p + 1]
        trial[high] = order[low]
    else:
        for p in range(low, high):
            trial[p + 1] = order[p]
        trial[low] = order[high]
    return low, high


@inlined
def _list(jobs: PackedJobs, search: SearchState, low: int, most: float) -> float:
    """Schedule the trial, equal to the order before `low`; return its sum of wait / duration, or a sum above `most`."""
    for row in range(np.uintp(search.used[0])):
        for w in range(np.uintp(search.free.shape[1])):
            search.free[row, w] = jobs.idle[w]
    search.used[0] = 0
    for p in range(low):
        _put(jobs, search, search.order[p], search.start[p])
    total = search.before[low]
    for p in range(low, search.trial.shape[0]):
        job = search.trial[p]
        begin = _earliest(jobs, search, job)
        _put(jobs, search, job, begin)
        search.trial_start[p] = begin
        total += (begin - jobs.arrival[job]) * jobs.worth[job]
        if total > most:
            break
    return float(total)


@inlined
def _earliest(jobs: PackedJobs, search: SearchState, job: int) -> int:
    """Return the first step from which a job fits throughout: after any row that is too full, the last one first."""
    begin, duration = jobs.arrival[job], jobs.duration[job]
    row = begin + duration - 1
    while row >= begin:
        if _fits(jobs, search, job, row):
            row -= 1
        else:
            begin = row + 1
            row = begin + duration - 1
    return int(begin)


@inlined
def _fits(jobs: PackedJobs, search: SearchState, job: int, row: int) -> bool:
    for w in range(np.uintp(search.free.shape[1])):  # unsigned: numba lets signed indices count from the end
        if (search.free[np.uintp(row), w] - jobs.need[np.uintp(job), w]) & GUARDS != GUARDS:
            return False
    return True


@inlined
def _put(jobs: PackedJobs, search: SearchState, job: int, begin: int) -> None:
    end = begin + jobs.duration[job]
    for row in range(np.uintp(begin), np.uintp(end)):
        for w in range(np.uintp(search.free.shape[1])):
            search.free[row, w] -= jobs.need[np.uintp(job), w]
    search.used[0] = max(search.used[0], end)


@inlined
def _accept(jobs: PackedJobs, search: SearchState, low: int, high: int) -> None:
    """Accept the trial as the order; they differ from `low` to `high`, and their starts from `low` on."""
    for p in range(low, high + 1):
        search.order[p] = search.trial[p]
    for p in range(low, search.order.shape[0]):
        job = search.order[p]
        search.start[p] = search.trial_start[p]
        search.before[p + 1] = search.before[p] + (search.start[p] - jobs.arrival[job]) * jobs.worth[job]


@inlined
def _note(search: SearchState, best: IntArray) -> None:
    for p in range(search.order.shape[0]):
        best[search.order[p]] = search.start[p]
