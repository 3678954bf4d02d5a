"""Observations as features of jobs, machines and pairs: the input of networks.

Deepk8s (section 4.1, Figure 2) gives its network the used and free resources of machines, demand and run time of n
tasks, and the length and head of the backlog; the waiting time is our addition. Amounts are shares of a machine or of
all machines, and times are logarithms in the scenario's time unit, so that the features fit any cluster and job count.
"""

from typing import NamedTuple

import numpy as np

from pipeline.core.types import BoolArray, FloatArray, IntArray, Observation
from pipeline.simulation.compiled import Span, inlined, threaded

# Indices of features; the features of each resource follow them.
THERE, DURATION, WAITED, WAITED_OF_DURATION, AREA, FITS, PLACE, FITS_IN, OVER_IN, AREA_AHEAD, PER_JOB = range(11)
IDLE, PER_MACHINE = range(2)
PAIR_FITS, ALIGNMENT, PER_PAIR = range(3)
WAITING, BACKLOG, HEAD_DURATION, SINCE_ARRIVAL, OF_REST = range(5)
SMALLEST, SHORTEST = 1e-3, 1e-2  # added to shares and times before the logarithm, so that 0 has one
SCALE = 0.5  # of logarithms, so that all features have similar magnitudes


class Shape(NamedTuple):
    """Sizes of the problem that a network depends on."""

    slots: int  # M
    machines: int  # K
    resources: int  # R
    unit: float  # unit of time
    void: bool  # may a policy let time pass although a job fits?

    @property
    def of_job(self) -> int:
        """Return the number of features of a job."""
        return PER_JOB + 2 * self.resources

    @property
    def of_machine(self) -> int:
        """Return the number of features of a machine."""
        return PER_MACHINE + 2 * self.resources

    @property
    def of_pair(self) -> int:
        """Return the number of features of a pair of job and machine."""
        return PER_PAIR + self.resources

    @property
    def of_rest(self) -> int:
        """Return the number of other features."""
        return OF_REST + 2 * self.resources


class Features(NamedTuple):
    """D observations as features."""

    job: FloatArray  # [D, M, of_job]
    machine: FloatArray  # [D, K, of_machine]
    pair: FloatArray  # [D, M, K, of_pair]
    rest: FloatArray  # [D, of_rest]
    may: BoolArray  # [D, A]  the legal actions

    def take(self, rows: IntArray) -> "Features":
        """Return the features of some observations."""
        return Features._make(field[rows] for field in self)


def features(view: Observation, shape: Shape) -> Features:
    """Return observations as features."""
    buffer = empty_features(view, shape)
    _fill(view, buffer, shape.unit, shape.void)
    return buffer


def empty_features(view: Observation, shape: Shape) -> Features:
    """Return features of the right shapes for these observations, all zero, to be filled in."""
    count, slots, machines = view.legal.shape
    return Features(
        np.zeros((count, slots, shape.of_job), dtype=np.float32),
        np.zeros((count, machines, shape.of_machine), dtype=np.float32),
        np.zeros((count, slots, machines, shape.of_pair), dtype=np.float32),
        np.zeros((count, shape.of_rest), dtype=np.float32),
        np.zeros((count, slots * machines + 1), dtype=np.bool_),
    )


@threaded(lambda view, *_: len(view.now))
def _fill(span: Span, view: Observation, to: Features, unit: float, void: bool) -> None:
    for i in range(*span):
        fill_one(view, to, i, unit, void)


@inlined
def _log(value: float, least: float) -> float:
    """Return a scaled logarithm of `value + least` that is 0 for a value of 0."""
    return float(SCALE * (np.log(value + least) - np.log(least)))


@inlined
def fill_one(view: Observation, to: Features, i: int, unit: float, void: bool) -> None:
    """Write the features of one observation; those of empty slots stay unchanged."""
    resources = view.capacity.shape[2]
    waiting, idle, some_fit = 0, True, False
    for r in range(resources):
        total, free = 0.0, 0.0
        for k in range(view.capacity.shape[1]):
            total += view.capacity[i, k, r]
            free += view.free[i, k, 0, r]
        idle = idle and free == total
        share = free / max(total, 1.0)
        to.rest[i, OF_REST + r] = share
        to.rest[i, OF_REST + resources + r] = view.backlog_head[i, 1 + r] / max(total, 1.0)
        for m in range(view.duration.shape[1]):
            wanted = view.nodes[i, m] * view.demand[i, m, r] / max(total, 1.0)
            to.job[i, m, PER_JOB + r] = wanted
            to.job[i, m, PER_JOB + resources + r] = _log(wanted, SMALLEST) if view.nodes[i, m] else 0.0
    for k in range(view.capacity.shape[1]):
        whole = True
        for r in range(resources):
            capacity, largest = view.capacity[i, k, r], 1
            for other in range(view.capacity.shape[1]):
                largest = max(largest, view.capacity[i, other, r])
            to.machine[i, k, PER_MACHINE + r] = view.free[i, k, 0, r] / max(capacity, 1)
            to.machine[i, k, PER_MACHINE + resources + r] = capacity / largest
            whole = whole and view.free[i, k, 0, r] == capacity
        to.machine[i, k, IDLE] = 1.0 if whole else 0.0
    for m in range(view.duration.shape[1]):
        if view.nodes[i, m]:
            waiting += 1
            fit = _job(view, to, i, m, unit)
            some_fit = some_fit or fit
    to.rest[i, WAITING] = np.log1p(float(waiting))
    to.rest[i, BACKLOG] = np.log1p(float(view.backlog[i]))
    to.rest[i, HEAD_DURATION] = _log(view.backlog_head[i, 0] / unit, SHORTEST)
    to.rest[i, SINCE_ARRIVAL] = _log(view.since_arrival[i] / unit, SHORTEST)
    to.may[i, to.may.shape[1] - 1] = void and (view.may_idle[i] or not (idle and some_fit))


@inlined
def _job(view: Observation, to: Features, i: int, m: int, unit: float) -> bool:
    """Write the features of a waiting job and of its pairs; return whether it fits."""
    fit, resources, machines = False, view.capacity.shape[2], view.capacity.shape[1]
    duration, waited, widest = view.duration[i, m], view.waited[i, m], 0.0
    for k in range(machines):
        fits, alignment = view.fits_now[i, m, k], 0.0
        fit = fit or fits
        for r in range(resources):
            capacity = float(max(view.capacity[i, k, r], 1))
            free, wanted = view.free[i, k, 0, r] / capacity, view.demand[i, m, r] / capacity
            to.pair[i, m, k, PER_PAIR + r] = free - wanted
            alignment += free * wanted
        to.pair[i, m, k, PAIR_FITS] = 1.0 if fits else 0.0
        to.pair[i, m, k, ALIGNMENT] = alignment / resources
        to.may[i, m * machines + k] = view.legal[i, m, k]
    for r in range(resources):
        widest = max(widest, np.float64(to.job[i, m, PER_JOB + r]))
    to.job[i, m, THERE] = 1.0
    over = duration + view.fits_in[i, m]  # time until the job ends if it is the next to start
    to.job[i, m, DURATION] = _log(duration / unit, SHORTEST)
    to.job[i, m, WAITED] = _log(waited / unit, SHORTEST)
    to.job[i, m, WAITED_OF_DURATION] = _log(waited / duration, SHORTEST)
    to.job[i, m, AREA] = _log(duration / unit * widest, SMALLEST)
    to.job[i, m, FITS] = 1.0 if fit else 0.0
    to.job[i, m, PLACE] = (m + 1) / view.duration.shape[1]
    to.job[i, m, FITS_IN] = _log(view.fits_in[i, m] / unit, SHORTEST)
    to.job[i, m, OVER_IN] = _log(over / unit, SHORTEST)
    to.job[i, m, AREA_AHEAD] = _log(over / unit * widest, SMALLEST)
    return bool(fit)
