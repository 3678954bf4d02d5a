"""The numbers of `relative`, worked out: one compiled definition for observations and the simulator's own state."""

import numpy as np
from numba import njit, prange

from pipeline.core import Observation, legal_actions
from pipeline.problems.pool.networks import relative as at
from pipeline.problems.pool.networks.relative import (
    AHEAD,
    OF_JOB,
    STRETCH_SCALE,
    EpisodeArrays,
    Relative,
    relative_buffer,
)
from pipeline.simulation.compiled import inlined


def relative(view: Observation) -> Relative:
    """Return observations of one machine as features."""
    count, slots = view.duration.shape
    observed = relative_buffer(count, slots)
    if not count:
        return observed
    observed.may[:] = legal_actions(view)
    arrays = EpisodeArrays(
        np.ascontiguousarray(view.free[:, 0].reshape(count, -1), dtype=np.int16),
        np.zeros(count, dtype=np.int64),
        np.ascontiguousarray(view.capacity[0, 0], dtype=np.int16),
        np.ascontiguousarray(view.duration, dtype=np.int16),
        np.ascontiguousarray(view.demand, dtype=np.int16),
        np.ascontiguousarray(view.waited, dtype=np.int64),
        np.ascontiguousarray(view.fits_now[:, :, 0]),
        np.ascontiguousarray(view.backlog, dtype=np.int64),
        np.ascontiguousarray(view.backlog_head, dtype=np.float64),
        np.ascontiguousarray(view.since_arrival, dtype=np.int64),
        np.ascontiguousarray(view.now, dtype=np.int64),
        np.ascontiguousarray(view.arrived, dtype=np.float64),
        np.ascontiguousarray(view.to_end, dtype=np.float64),
    )
    _describe_all(arrays, observed)
    return observed


@njit(cache=True, parallel=True)
def _describe_all(arrays: EpisodeArrays, observed: Relative) -> None:
    for i in prange(arrays.now.shape[0]):
        describe(arrays, int(np.int64(i)), observed, i)


@inlined
def _log(value: float, scale: float) -> float:
    return float(np.log(max(value, 1e-3)) / scale)


@inlined
def _log1p(value: float, scale: float) -> float:
    return float(np.log1p(value) / scale)


@inlined
def _free(arrays: EpisodeArrays, b: int, step: int, r: int) -> float:
    """Return the share of a resource that is free in a step to come; all of it beyond the horizon."""
    resources = arrays.capacity.shape[0]
    steps = arrays.free.shape[1] // resources
    if step >= steps:
        return 1.0
    row = arrays.head[b] + step
    if row >= steps:
        row -= steps
    return float(arrays.free[b, row * resources + r]) / float(arrays.capacity[r])


@inlined
def describe(arrays: EpisodeArrays, b: int, observed: Relative, i: int) -> None:
    """Write the features of one episode; what is legal is written already."""
    mean = arrays.arrived[b, 1] / max(arrays.arrived[b, 0], 1.0)
    shortest, waiting, fitting, end = 1e9, 0, 0, 0
    for m in range(arrays.duration.shape[1]):
        if arrays.duration[b, m] > 0:
            waiting, end = waiting + 1, m + 1
            fitting += int(arrays.fits[b, m])
            shortest = min(shortest, float(arrays.duration[b, m]))
        else:
            for k in range(OF_JOB):
                observed.job[i, m, k] = 0.0
    for m in range(end):
        if arrays.duration[b, m] > 0:
            _describe_job(arrays, b, m, observed, i, mean, shortest)
    for m in range(end):
        if arrays.duration[b, m] > 0:
            _compare(arrays, b, m, observed, i, waiting, fitting, end)
    _describe_rest(arrays, b, observed, i, mean, waiting, fitting, end)


@inlined
def _describe_job(
    arrays: EpisodeArrays, b: int, m: int, observed: Relative, i: int, mean: float, shortest: float
) -> None:
    resources = arrays.capacity.shape[0]
    duration = float(arrays.duration[b, m])
    most, least, total, left, left_total, aligned, own = 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0
    for r in range(resources):
        share, free = arrays.demand[b, m, r] / float(arrays.capacity[r]), _free(arrays, b, 0, r)
        if share > most:
            most, own = share, free - share
        least, total = min(least, share), total + share
        left, left_total = min(left, free - share), left_total + free - share
        aligned += free * share
    end = 0.0
    for r in range(resources):
        end += _free(arrays, b, int(arrays.duration[b, m]), r)
    observed.job[i, m, at.DURATION] = _log(duration, 3.0)
    observed.job[i, m, at.DURATION_TO_MEAN] = _log(duration / max(mean, 1.0), 2.0)
    observed.job[i, m, at.WAITED] = _log1p(float(arrays.waited[b, m]), 4.0)
    observed.job[i, m, at.STRETCH] = _log1p(arrays.waited[b, m] / duration, STRETCH_SCALE)
    observed.job[i, m, at.MOST_DEMAND] = most
    observed.job[i, m, at.MEAN_DEMAND] = total / resources
    observed.job[i, m, at.LEAST_DEMAND] = least
    observed.job[i, m, at.FITS] = 1.0 if arrays.fits[b, m] else 0.0
    observed.job[i, m, at.LEAST_LEFT] = left
    observed.job[i, m, at.MEAN_LEFT] = left_total / resources
    observed.job[i, m, at.ALIGNMENT] = aligned / resources
    observed.job[i, m, at.FIRST_FIT] = _log1p(float(_earliest(arrays, b, m)), 3.0)
    observed.job[i, m, at.AREA] = _log(duration * total / resources, 3.0)
    observed.job[i, m, at.DURATION_TO_SHORTEST] = _log(duration / shortest, 2.0)
    observed.job[i, m, at.LEFT_OF_MOST] = own
    observed.job[i, m, at.HASTE] = 1.0 / duration
    observed.job[i, m, at.FREE_AT_END] = end / resources


@inlined
def _earliest(arrays: EpisodeArrays, b: int, m: int) -> int:
    """Return the first step in which there is room for a waiting job."""
    resources = arrays.capacity.shape[0]
    steps = arrays.free.shape[1] // resources
    for step in range(steps):
        row = arrays.head[b] + step
        if row >= steps:
            row -= steps
        fits = True
        for r in range(resources):
            fits = fits and arrays.free[b, row * resources + r] >= arrays.demand[b, m, r]
        if fits:
            return step
    return int(steps)


@inlined
def _compare(
    arrays: EpisodeArrays, b: int, m: int, observed: Relative, i: int, waiting: int, fitting: int, end: int
) -> None:
    """Write what a waiting job is beside the others: its rank, and whom it would keep out."""
    mine, area = int(arrays.duration[b, m]), arrays.duration[b, m] * observed.job[i, m, at.MEAN_DEMAND]
    shorter, smaller, together, kept_out = 0, 0, 0, 0
    for n in range(end):
        if n == m or arrays.duration[b, n] == 0:
            continue
        shorter += int(arrays.duration[b, n] < mine)
        smaller += int(arrays.duration[b, n] * observed.job[i, n, at.MEAN_DEMAND] < area)
        if arrays.fits[b, m] and arrays.fits[b, n]:
            fits = _fits_beside(arrays, b, m, n)
            together += int(fits)
            kept_out += int(not fits and arrays.duration[b, n] < mine)
    observed.job[i, m, at.SHORTER] = shorter / waiting
    observed.job[i, m, at.SMALLER] = smaller / waiting
    observed.job[i, m, at.FITTING_BESIDE] = together / max(fitting, 1)
    observed.job[i, m, at.KEPT_OUT] = kept_out / max(fitting, 1)


@inlined
def _fits_beside(arrays: EpisodeArrays, b: int, m: int, n: int) -> bool:
    """Return whether a job still fits now once another is started."""
    resources = arrays.capacity.shape[0]
    row, fits = arrays.head[b] * resources, True
    for r in range(resources):
        fits = fits and arrays.free[b, row + r] >= arrays.demand[b, m, r] + arrays.demand[b, n, r]
    return fits


@inlined
def _describe_rest(
    arrays: EpisodeArrays, b: int, observed: Relative, i: int, mean: float, waiting: int, fitting: int, end: int
) -> None:
    resources = arrays.capacity.shape[0]
    for k in range(len(AHEAD)):
        total, least = 0.0, 1.0
        for r in range(resources):
            free = _free(arrays, b, AHEAD[k], r)
            total, least = total + free, min(least, free)
        observed.rest[i, at.FREE + 2 * k], observed.rest[i, at.FREE + 2 * k + 1] = total / resources, least
    load, work, most, longer, waited = 0.0, 0.0, 0.0, 0, 0.0
    for r in range(resources):
        capacity, here = float(arrays.capacity[r]), 0.0
        load += arrays.arrived[b, 2 + r] / (capacity * (arrays.now[b] + 1.0))
        for m in range(end):
            here += arrays.duration[b, m] * arrays.demand[b, m, r] / capacity
        work, most = work + here, max(most, here)
    for m in range(end):
        longer += int(arrays.duration[b, m] > 2.0 * mean)
        waited += arrays.waited[b, m] if arrays.duration[b, m] > 0 else 0
    observed.rest[i, at.WAITING] = _log1p(float(waiting), 3.0)
    observed.rest[i, at.BACKLOG] = _log1p(float(arrays.backlog[b]), 3.0)
    observed.rest[i, at.LOAD] = min(load / resources, 3.0)
    observed.rest[i, at.MEAN_DURATION] = _log(max(mean, 1.0), 3.0)
    observed.rest[i, at.SINCE_ARRIVAL] = _log1p(float(arrays.since[b]), 3.0)
    observed.rest[i, at.FITTING] = fitting / max(waiting, 1)
    observed.rest[i, at.WORK] = _log1p(work / resources, 3.0)
    observed.rest[i, at.IMBALANCE] = (most - work / resources) / max(most, 1e-3)
    later = arrays.backlog[b] > 0
    observed.rest[i, at.HEAD_DURATION] = _log(arrays.behind[b, 0] / max(mean, 1.0), 2.0) if later else 0.0
    widest = 0.0
    for r in range(resources):
        widest = max(widest, arrays.behind[b, 1 + r] / float(arrays.capacity[r]))
    observed.rest[i, at.HEAD_DEMAND] = widest
    observed.rest[i, at.LONG] = longer / max(waiting, 1)
    observed.rest[i, at.MEAN_WAITED] = _log1p(waited / max(waiting, 1), 4.0)
    observed.rest[i, at.HAS_BACKLOG] = 1.0 if later else 0.0
    observed.rest[i, at.ELAPSED] = _log1p(float(arrays.now[b]), 8.0)
    ends = arrays.to_end[b] < np.inf
    observed.rest[i, at.ENDS] = 1.0 if ends else 0.0
    observed.rest[i, at.TO_END] = _log1p(arrays.to_end[b], 4.0) if ends else 0.0
