"""The numbers of `relative`, worked out: one compiled definition for observations and the simulator's own state."""

import numpy as np
from numba import get_num_threads, njit, prange

from pipeline.core import Observation, legal_actions
from pipeline.problems.pool.networks import relative as at
from pipeline.problems.pool.networks.relative import (
    EpisodeArrays,
    Notes,
    Relative,
    log,
    log1p,
    look_up,
    notes_for,
    relative_buffer,
    remembered,
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
    _describe_all(arrays, observed, min(count, get_num_threads()))
    return observed


@njit(cache=True, parallel=True)
def _describe_all(arrays: EpisodeArrays, observed: Relative, parts: int) -> None:
    share = -(-arrays.now.shape[0] // parts)
    for k in prange(parts):
        part = int(np.int64(k))
        notes = notes_for(arrays.duration.shape[1], arrays.capacity.shape[0])
        for i in range(part * share, min((part + 1) * share, arrays.now.shape[0])):
            describe(arrays, i, observed, i, notes)


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
def describe(arrays: EpisodeArrays, b: int, observed: Relative, i: int, notes: Notes) -> None:
    """Write the features of one episode; what is legal is written already."""
    mean = arrays.arrived[b, 1] / max(arrays.arrived[b, 0], 1.0)
    shortest, waiting, fitting, end = 1e9, 0, 0, 0
    for m in range(arrays.duration.shape[1]):
        if arrays.duration[b, m] > 0:
            waiting, end = waiting + 1, m + 1
            fitting += int(arrays.fits[b, m])
            shortest = min(shortest, float(arrays.duration[b, m]))
        else:
            for k in range(at.OF_JOB):
                observed.job[i, m, k] = 0.0
    notes.turn[0] += 1
    for r in range(arrays.capacity.shape[0]):
        notes.free[r] = _free(arrays, b, 0, r)
    for m in range(end):
        if arrays.duration[b, m] > 0:
            _describe_job(arrays, b, m, observed, i, mean, shortest, notes)
    _note_jobs(arrays, b, observed, i, end, notes)
    for m in range(end):
        if arrays.duration[b, m] > 0:
            _compare(arrays, b, m, observed, i, waiting, fitting, end, notes)
    _describe_rest(arrays, b, observed, i, mean, waiting, fitting, end)


@inlined
def _by_duration(
    arrays: EpisodeArrays, b: int, steps: int, mean: float, shortest: float, notes: Notes, place: int
) -> None:
    """Note what jobs of a duration have in common now."""
    end = 0.0
    for r in range(arrays.capacity.shape[0]):
        end += _free(arrays, b, steps, r)
    notes.by_duration[place, 0] = log(float(steps) / max(mean, 1.0), 2.0)
    notes.by_duration[place, 1] = log(float(steps) / shortest, 2.0)
    notes.by_duration[place, 2] = end / arrays.capacity.shape[0]
    notes.seen[place] = notes.turn[0]


@inlined
def _describe_job(
    arrays: EpisodeArrays, b: int, m: int, observed: Relative, i: int, mean: float, shortest: float, notes: Notes
) -> None:
    resources = arrays.capacity.shape[0]
    steps = int(arrays.duration[b, m])
    duration = float(steps)
    most, least, total, left, left_total, aligned, own = 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0
    for r in range(resources):
        share, free = arrays.demand[b, m, r] / float(arrays.capacity[r]), notes.free[r]
        if share > most:
            most, own = share, free - share
        least, total = min(least, share), total + share
        left, left_total = min(left, free - share), left_total + free - share
        aligned += free * share
    place = steps if steps < at.KNOWN else 0  # no job takes no time: the first place is for the long ones
    if place == 0 or notes.seen[place] != notes.turn[0]:
        _by_duration(arrays, b, steps, mean, shortest, notes, place)
    if not remembered(notes.stretch, m, arrays.waited[b, m] / duration):
        notes.stretch[m, 1] = log1p(arrays.waited[b, m] / duration, at.STRETCH_SCALE)
    if not remembered(notes.size, m, duration * total / resources):
        notes.size[m, 1] = log(duration * total / resources, 3.0)
    observed.job[i, m, at.DURATION] = look_up(notes, 0, steps, 3.0)
    observed.job[i, m, at.DURATION_TO_MEAN] = notes.by_duration[place, 0]
    observed.job[i, m, at.WAITED] = look_up(notes, 1, int(arrays.waited[b, m]), 4.0)
    observed.job[i, m, at.STRETCH] = notes.stretch[m, 1]
    observed.job[i, m, at.MOST_DEMAND] = most
    observed.job[i, m, at.MEAN_DEMAND] = total / resources
    observed.job[i, m, at.LEAST_DEMAND] = least
    observed.job[i, m, at.FITS] = 1.0 if arrays.fits[b, m] else 0.0
    observed.job[i, m, at.LEAST_LEFT] = left
    observed.job[i, m, at.MEAN_LEFT] = left_total / resources
    observed.job[i, m, at.ALIGNMENT] = aligned / resources
    observed.job[i, m, at.FIRST_FIT] = look_up(notes, 2, _earliest(arrays, b, m), 3.0)
    observed.job[i, m, at.AREA] = notes.size[m, 1]
    observed.job[i, m, at.DURATION_TO_SHORTEST] = notes.by_duration[place, 1]
    observed.job[i, m, at.LEFT_OF_MOST] = own
    observed.job[i, m, at.HASTE] = 1.0 / duration
    observed.job[i, m, at.FREE_AT_END] = notes.by_duration[place, 2]


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
def _note_jobs(arrays: EpisodeArrays, b: int, observed: Relative, i: int, end: int, notes: Notes) -> None:
    """Note durations and areas of all slots, and the jobs that fit, so that comparing them goes through plain rows."""
    count = 0
    for m in range(end):
        there = arrays.duration[b, m] > 0
        notes.duration[m] = arrays.duration[b, m] if there else at.NOBODY
        notes.area[m] = arrays.duration[b, m] * observed.job[i, m, at.MEAN_DEMAND] if there else np.inf
        if there and arrays.fits[b, m]:
            notes.fitting[count], notes.shorter[count] = m, arrays.duration[b, m]
            for r in range(arrays.capacity.shape[0]):
                notes.asked[r, count] = arrays.demand[b, m, r]
            count += 1


@inlined
def _compare(
    arrays: EpisodeArrays,
    b: int,
    m: int,
    observed: Relative,
    i: int,
    waiting: int,
    fitting: int,
    end: int,
    notes: Notes,
) -> None:
    """Write what a waiting job is beside the others: its rank, and whom it would keep out."""
    mine, area = notes.duration[m], notes.area[m]
    shorter = smaller = together = kept_out = 0
    for n in range(end):
        shorter += int(notes.duration[n] < mine)
        smaller += int(notes.area[n] < area)
    if arrays.fits[b, m]:
        _look_beside(arrays, b, m, fitting, notes)
        for n in range(fitting):
            together += int(notes.beside[n] and notes.fitting[n] != m)
            kept_out += int(not notes.beside[n] and notes.shorter[n] < mine)
    observed.job[i, m, at.SHORTER] = shorter / waiting
    observed.job[i, m, at.SMALLER] = smaller / waiting
    observed.job[i, m, at.FITTING_BESIDE] = together / max(fitting, 1)
    observed.job[i, m, at.KEPT_OUT] = kept_out / max(fitting, 1)


@inlined
def _look_beside(arrays: EpisodeArrays, b: int, m: int, fitting: int, notes: Notes) -> None:
    """Note which of the fitting jobs still fit now once another is started."""
    resources = arrays.capacity.shape[0]
    row = arrays.head[b] * resources
    for r in range(resources):
        left = np.int32(arrays.free[b, row + r] - arrays.demand[b, m, r])
        for n in range(fitting):
            notes.beside[n] = (r == 0 or notes.beside[n]) and notes.asked[r, n] <= left


@inlined
def _describe_rest(
    arrays: EpisodeArrays, b: int, observed: Relative, i: int, mean: float, waiting: int, fitting: int, end: int
) -> None:
    resources = arrays.capacity.shape[0]
    for k in range(len(at.AHEAD)):
        total, least = 0.0, 1.0
        for r in range(resources):
            free = _free(arrays, b, at.AHEAD[k], r)
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
    observed.rest[i, at.WAITING] = log1p(float(waiting), 3.0)
    observed.rest[i, at.BACKLOG] = log1p(float(arrays.backlog[b]), 3.0)
    observed.rest[i, at.LOAD] = min(load / resources, 3.0)
    observed.rest[i, at.MEAN_DURATION] = log(max(mean, 1.0), 3.0)
    observed.rest[i, at.SINCE_ARRIVAL] = log1p(float(arrays.since[b]), 3.0)
    observed.rest[i, at.FITTING] = fitting / max(waiting, 1)
    observed.rest[i, at.WORK] = log1p(work / resources, 3.0)
    observed.rest[i, at.IMBALANCE] = (most - work / resources) / max(most, 1e-3)
    later = arrays.backlog[b] > 0
    observed.rest[i, at.HEAD_DURATION] = log(arrays.behind[b, 0] / max(mean, 1.0), 2.0) if later else 0.0
    widest = 0.0
    for r in range(resources):
        widest = max(widest, arrays.behind[b, 1 + r] / float(arrays.capacity[r]))
    observed.rest[i, at.HEAD_DEMAND] = widest
    observed.rest[i, at.LONG] = longer / max(waiting, 1)
    observed.rest[i, at.MEAN_WAITED] = log1p(waited / max(waiting, 1), 4.0)
    observed.rest[i, at.HAS_BACKLOG] = 1.0 if later else 0.0
    observed.rest[i, at.ELAPSED] = log1p(float(arrays.now[b]), 8.0)
    ends = arrays.to_end[b] < np.inf
    observed.rest[i, at.ENDS] = 1.0 if ends else 0.0
    observed.rest[i, at.TO_END] = log1p(arrays.to_end[b], 4.0) if ends else 0.0
