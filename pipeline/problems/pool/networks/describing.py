"""The numbers of `relative`, worked out: one compiled definition for observations and the simulator's own state."""

import numpy as np
from numba import njit, prange

from pipeline.compiled import inlined
from pipeline.core import Observation, legal_actions
from pipeline.problems.pool.networks.relative import (
    ELAPSED,
    FITS,
    HASTE,
    OF_JOB,
    STRETCH,
    STRETCH_SCALE,
    Relative,
    Scene,
    room,
)

LOOKS = (0, 1, 2, 4, 8, 16)  # steps ahead at which free units are told


def relative(view: Observation) -> Relative:
    """Return observations of one machine as features."""
    count, slots = view.duration.shape
    seen = room(count, slots)
    if not count:
        return seen
    seen.may[:] = legal_actions(view)
    scene = Scene(
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
    )
    _describe_all(scene, seen)
    return seen


@njit(cache=True, parallel=True)
def _describe_all(scene: Scene, seen: Relative) -> None:
    for i in prange(scene.now.shape[0]):
        describe(scene, int(np.int64(i)), seen, i)


@inlined
def _log(value: float, scale: float) -> float:
    return float(np.log(max(value, 1e-3)) / scale)


@inlined
def _log1p(value: float, scale: float) -> float:
    return float(np.log1p(value) / scale)


@inlined
def _free(scene: Scene, b: int, step: int, r: int) -> float:
    """Return the share of a resource that is free in a step to come; all of it beyond the horizon."""
    resources = scene.capacity.shape[0]
    steps = scene.free.shape[1] // resources
    if step >= steps:
        return 1.0
    row = scene.head[b] + step
    if row >= steps:
        row -= steps
    return float(scene.free[b, row * resources + r]) / float(scene.capacity[r])


@inlined
def describe(scene: Scene, b: int, seen: Relative, i: int) -> None:
    """Write the features of one episode; what is legal is written already."""
    mean = scene.arrived[b, 1] / max(scene.arrived[b, 0], 1.0)
    shortest, waiting, fitting, end = 1e9, 0, 0, 0
    for m in range(scene.duration.shape[1]):
        if scene.duration[b, m] > 0:
            waiting, end = waiting + 1, m + 1
            fitting += int(scene.fits[b, m])
            shortest = min(shortest, float(scene.duration[b, m]))
        else:
            for k in range(OF_JOB):
                seen.job[i, m, k] = 0.0
    for m in range(end):
        if scene.duration[b, m] > 0:
            _describe_job(scene, b, m, seen, i, mean, shortest)
    for m in range(end):
        if scene.duration[b, m] > 0:
            _compare(scene, b, m, seen, i, waiting, fitting, end)
    _describe_rest(scene, b, seen, i, mean, waiting, fitting, end)


@inlined
def _describe_job(scene: Scene, b: int, m: int, seen: Relative, i: int, mean: float, shortest: float) -> None:
    resources = scene.capacity.shape[0]
    duration = float(scene.duration[b, m])
    most, least, total, left, left_total, aligned, own = 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0
    for r in range(resources):
        share, free = scene.demand[b, m, r] / float(scene.capacity[r]), _free(scene, b, 0, r)
        if share > most:
            most, own = share, free - share
        least, total = min(least, share), total + share
        left, left_total = min(left, free - share), left_total + free - share
        aligned += free * share
    end = 0.0
    for r in range(resources):
        end += _free(scene, b, int(scene.duration[b, m]), r)
    seen.job[i, m, 0] = _log(duration, 3.0)
    seen.job[i, m, 1] = _log(duration / max(mean, 1.0), 2.0)
    seen.job[i, m, 2] = _log1p(float(scene.waited[b, m]), 4.0)
    seen.job[i, m, STRETCH] = _log1p(scene.waited[b, m] / duration, STRETCH_SCALE)
    seen.job[i, m, 4], seen.job[i, m, 5], seen.job[i, m, 6] = most, total / resources, least
    seen.job[i, m, FITS] = 1.0 if scene.fits[b, m] else 0.0
    seen.job[i, m, 8], seen.job[i, m, 9], seen.job[i, m, 10] = left, left_total / resources, aligned / resources
    seen.job[i, m, 11] = _log1p(float(_earliest(scene, b, m)), 3.0)
    seen.job[i, m, 14] = _log(duration * total / resources, 3.0)
    seen.job[i, m, 16] = _log(duration / shortest, 2.0)
    seen.job[i, m, 18] = own
    seen.job[i, m, HASTE] = 1.0 / duration
    seen.job[i, m, 20] = end / resources


@inlined
def _earliest(scene: Scene, b: int, m: int) -> int:
    """Return the first step in which there is room for a waiting job."""
    resources = scene.capacity.shape[0]
    steps = scene.free.shape[1] // resources
    for step in range(steps):
        row = scene.head[b] + step
        if row >= steps:
            row -= steps
        fits = True
        for r in range(resources):
            fits = fits and scene.free[b, row * resources + r] >= scene.demand[b, m, r]
        if fits:
            return step
    return int(steps)


@inlined
def _compare(scene: Scene, b: int, m: int, seen: Relative, i: int, waiting: int, fitting: int, end: int) -> None:
    """Write what a waiting job is beside the others: its rank, and whom it would keep out."""
    mine, area = int(scene.duration[b, m]), scene.duration[b, m] * seen.job[i, m, 5]
    shorter, smaller, together, kept_out = 0, 0, 0, 0
    for n in range(end):
        if n == m or scene.duration[b, n] == 0:
            continue
        shorter += int(scene.duration[b, n] < mine)
        smaller += int(scene.duration[b, n] * seen.job[i, n, 5] < area)
        if scene.fits[b, m] and scene.fits[b, n]:
            fits = _fits_beside(scene, b, m, n)
            together += int(fits)
            kept_out += int(not fits and scene.duration[b, n] < mine)
    seen.job[i, m, 12] = shorter / waiting
    seen.job[i, m, 13] = smaller / waiting
    seen.job[i, m, 15] = together / max(fitting, 1)
    seen.job[i, m, 17] = kept_out / max(fitting, 1)


@inlined
def _fits_beside(scene: Scene, b: int, m: int, n: int) -> bool:
    """Return whether a job still fits now once another is started."""
    resources = scene.capacity.shape[0]
    row, fits = scene.head[b] * resources, True
    for r in range(resources):
        fits = fits and scene.free[b, row + r] >= scene.demand[b, m, r] + scene.demand[b, n, r]
    return fits


@inlined
def _describe_rest(
    scene: Scene, b: int, seen: Relative, i: int, mean: float, waiting: int, fitting: int, end: int
) -> None:
    resources = scene.capacity.shape[0]
    for k in range(6):
        total, least = 0.0, 1.0
        for r in range(resources):
            free = _free(scene, b, LOOKS[k], r)
            total, least = total + free, min(least, free)
        seen.rest[i, 2 * k], seen.rest[i, 2 * k + 1] = total / resources, least
    load, work, most, longer, waited = 0.0, 0.0, 0.0, 0, 0.0
    for r in range(resources):
        capacity, here = float(scene.capacity[r]), 0.0
        load += scene.arrived[b, 2 + r] / (capacity * (scene.now[b] + 1.0))
        for m in range(end):
            here += scene.duration[b, m] * scene.demand[b, m, r] / capacity
        work, most = work + here, max(most, here)
    for m in range(end):
        longer += int(scene.duration[b, m] > 2.0 * mean)
        waited += scene.waited[b, m] if scene.duration[b, m] > 0 else 0
    seen.rest[i, 12] = _log1p(float(waiting), 3.0)
    seen.rest[i, 13] = _log1p(float(scene.backlog[b]), 3.0)
    seen.rest[i, 14] = min(load / resources, 3.0)
    seen.rest[i, 15] = _log(max(mean, 1.0), 3.0)
    seen.rest[i, 16] = _log1p(float(scene.since[b]), 3.0)
    seen.rest[i, 17] = fitting / max(waiting, 1)
    seen.rest[i, 18] = _log1p(work / resources, 3.0)
    seen.rest[i, 19] = (most - work / resources) / max(most, 1e-3)
    seen.rest[i, 20] = _log(scene.behind[b, 0] / max(mean, 1.0), 2.0) if scene.backlog[b] > 0 else 0.0
    widest = 0.0
    for r in range(resources):
        widest = max(widest, scene.behind[b, 1 + r] / float(scene.capacity[r]))
    seen.rest[i, 21] = widest
    seen.rest[i, 22] = longer / max(waiting, 1)
    seen.rest[i, 23] = _log1p(waited / max(waiting, 1), 4.0)
    seen.rest[i, 24] = 1.0 if scene.backlog[b] > 0 else 0.0
    seen.rest[i, ELAPSED] = _log1p(float(scene.now[b]), 8.0)
