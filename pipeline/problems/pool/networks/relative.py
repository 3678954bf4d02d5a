"""What `sets` sees: every waiting job and the rest of an observation, in numbers that know no size.

Amounts are shares of capacity, durations stand by themselves and beside the mean of those that have arrived so far,
resources only by their largest, mean and smallest, so that the same weights serve any number of slots and resources,
any capacity and horizon. `describing` works them out.

Nothing here changes a bit of what is described: what is looked up was worked out by the same sum.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from pipeline.core import BoolArray, FloatArray, IntArray
from pipeline.problems.pool.simulator.compiled.kernels import may_pass
from pipeline.problems.pool.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined

KNOWN = 256  # durations and waits whose logarithms are looked up
NOBODY = 2**31 - 1  # longer than any job: the duration of an empty slot, beside which none is longer


class Notes(NamedTuple):
    """What need not be worked out for each job anew; whoever describes has one of his own, and may use it again."""

    turn: IntArray  # [1]  number of the description
    duration: IntArray  # [M]
    area: FloatArray  # [M]  duration times mean demand
    fitting: IntArray  # [M]  the slots whose jobs fit now, in their order
    asked: IntArray  # [R, M]  what these ask for
    shorter: IntArray  # [M]  how long these are
    beside: BoolArray  # [M]  would they fit beside the one that is looked at?
    free: FloatArray  # [R]  share that is free now
    seen: IntArray  # [KNOWN]  turn in which a duration was met last
    by_duration: FloatArray  # [KNOWN, 3]  of that turn: to the mean, to the shortest, what is free at its end
    logs: FloatArray  # [3, KNOWN]  of durations, of waits, of steps until there is room; nan: not asked for yet
    stretch: FloatArray  # [M, 2]  of the latest job of a slot, and its logarithm
    size: FloatArray  # [M, 2]  the same of its area


@njit(cache=True)
def notes_for(slots: int, resources: int) -> Notes:
    """Return empty notes."""
    return Notes(
        np.zeros(1, dtype=np.int64),
        np.zeros(slots, dtype=np.int32),
        np.zeros(slots),
        np.zeros(slots, dtype=np.int64),
        np.zeros((resources, slots), dtype=np.int32),
        np.zeros(slots, dtype=np.int32),
        np.zeros(slots, dtype=np.bool_),
        np.zeros(resources),
        np.zeros(KNOWN, dtype=np.int64),
        np.zeros((KNOWN, 3)),
        np.full((3, KNOWN), np.nan),
        np.full((slots, 2), np.nan),
        np.full((slots, 2), np.nan),
    )


@inlined
def log(value: float, scale: float) -> float:
    """Return the logarithm of a number, scaled; of 0, that of little."""
    return float(np.log(max(value, 1e-3)) / scale)


@inlined
def log1p(value: float, scale: float) -> float:
    """Return the logarithm of 1 and a number, scaled."""
    return float(np.log1p(value) / scale)


@inlined
def look_up(notes: Notes, row: int, value: int, scale: float) -> float:
    """Return the logarithm of 1 + a number of steps; where row is 0, of the number."""
    if value >= KNOWN:
        return log(float(value), scale) if row == 0 else log1p(float(value), scale)
    if np.isnan(notes.logs[row, value]):
        notes.logs[row, value] = log(float(value), scale) if row == 0 else log1p(float(value), scale)
    return float(notes.logs[row, value])


@inlined
def remembered(latest: FloatArray, m: int, value: float) -> bool:
    """Return whether a slot's latest number was this one; it is from now on."""
    same = bool(latest[m, 0] == value)
    latest[m, 0] = value
    return same


AHEAD = (0, 1, 2, 4, 8, 16)  # steps ahead at which free units are looked up
OF_JOB, OF_REST = 21, 2 * len(AHEAD) + 16  # features
STRETCH_SCALE = 3.0  # what log(1 + waited / duration) is divided by

# The features of a job, by their place. Shares are of capacity, and least, mean and most are over resources.
(
    DURATION,  # logarithm
    DURATION_TO_MEAN,  # logarithm of the ratio to the mean of all that have arrived so far
    WAITED,  # logarithm
    STRETCH,  # log(1 + waited / duration)
    MOST_DEMAND,
    MEAN_DEMAND,
    LEAST_DEMAND,
    FITS,  # does it fit now?
    LEAST_LEFT,  # free once it is started
    MEAN_LEFT,
    ALIGNMENT,  # mean of free times demanded share
    FIRST_FIT,  # logarithm of the steps until there is room in some one step
    SHORTER,  # share of the waiting jobs
    SMALLER,  # share of the waiting jobs, by duration times mean demand
    AREA,  # logarithm of duration times mean demand
    FITTING_BESIDE,  # share of the fitting jobs that still fit once it is started
    DURATION_TO_SHORTEST,  # logarithm of the ratio to the shortest waiting job
    KEPT_OUT,  # share of the fitting jobs that are shorter and do not fit once it is started
    LEFT_OF_MOST,  # free once it is started, of the resource that it demands most of
    HASTE,  # 1 / duration
    FREE_AT_END,  # mean, in the step after it would end
) = range(OF_JOB)

# The features of the rest.
FREE = 0  # mean and least share that is free, in turn, at each of AHEAD
(
    WAITING,  # logarithm of the jobs in slots
    BACKLOG,  # logarithm of the jobs behind them
    LOAD,  # so far
    MEAN_DURATION,  # logarithm; of all that have arrived so far
    SINCE_ARRIVAL,  # logarithm
    FITTING,  # share of the waiting jobs
    WORK,  # logarithm of duration times demand of all waiting jobs, mean
    IMBALANCE,  # by how much of the most such work of a resource the mean is less
    HEAD_DURATION,  # logarithm of the ratio to the mean, of the backlog's head
    HEAD_DEMAND,  # of the backlog's head, most
    LONG,  # share of the waiting jobs that run more than twice the mean
    MEAN_WAITED,  # logarithm
    HAS_BACKLOG,
    ELAPSED,  # logarithm of the present step
    ENDS,  # is it said when arrivals end?
    TO_END,  # logarithm of the steps until then
) = range(2 * len(AHEAD), OF_REST)


class Relative(NamedTuple):
    """D observations as features."""

    job: FloatArray  # [D, M, OF_JOB]  0 in empty slots
    rest: FloatArray  # [D, OF_REST]
    may: BoolArray  # [D, A]  the legal actions

    def take(self, rows: IntArray | slice) -> "Relative":
        """Return some of them."""
        return Relative(self.job[rows], self.rest[rows], self.may[rows])


class EpisodeArrays(NamedTuple):
    """B episodes, as a simulator or an observation has them."""

    free: IntArray  # [B, T * R]  a ring of rows
    head: IntArray  # [B]  row of the present step in it
    capacity: IntArray  # [R]
    duration: IntArray  # [B, M]
    demand: IntArray  # [B, M, R]
    waited: IntArray  # [B, M]
    fits: BoolArray  # [B, M]
    backlog: IntArray  # [B]
    behind: FloatArray  # [B, 1 + R]  duration and demand of the backlog's head
    since: IntArray  # [B]  steps since a job last arrived
    now: IntArray  # [B]
    arrived: FloatArray  # [B, 2 + R]
    to_end: FloatArray  # [B]  steps until arrivals end; inf where nothing is said


def relative_buffer(count: int, slots: int) -> Relative:
    """Return empty arrays for so many observations."""
    return Relative(
        np.empty((count, slots, OF_JOB), dtype=np.float32),
        np.empty((count, OF_REST), dtype=np.float32),
        np.empty((count, slots + 1), dtype=np.bool_),
    )


@njit(cache=True)
def arrays_of(s: State, b: int) -> EpisodeArrays:
    """Return one episode of a simulator; `refresh` writes what it does not keep in such arrays."""
    slots, resources = s.slot_demand.shape[1], s.slot_demand.shape[2]
    return EpisodeArrays(
        s.free[b].reshape(1, -1),
        s.head[b : b + 1],
        s.capacity,
        s.slot_duration[b : b + 1],
        s.slot_demand[b : b + 1],
        np.zeros((1, slots), dtype=np.int64),
        s.fits_now[b : b + 1],
        np.zeros(1, dtype=np.int64),
        np.zeros((1, 1 + resources)),
        np.zeros(1, dtype=np.int64),
        s.now[b : b + 1],
        np.zeros((1, 2 + resources)),
        np.zeros(1),
    )


@inlined
def refresh(s: State, rules: Rules, b: int, arrays: EpisodeArrays, observed: Relative, i: int) -> None:
    """Write into the arrays of an episode what has changed since, and what is legal."""
    slots = s.slot_job.shape[1]
    for m in range(slots):
        job = s.slot_job[b, m]
        arrays.waited[0, m] = s.now[b] - s.arrival[job] if job >= 0 else 0
        observed.may[i, m] = s.legal[b, m]
    observed.may[i, slots] = may_pass(s, rules, b)
    queue, to_come = s.queue[b], s.to_come[b]
    waits = queue < to_come
    arrays.backlog[0] = to_come - queue
    arrays.behind[0, 0] = s.requested[queue] if waits else 0
    for r in range(s.capacity.shape[0]):
        arrays.behind[0, 1 + r] = s.demand[queue, r] if waits else 0
    arrays.since[0] = s.now[b] - s.last_arrival[b]
    arrays.to_end[0] = np.inf if rules.arrivals_end < 0 else max(rules.arrivals_end - s.now[b], 0)
    for k in range(s.arrived.shape[1]):
        arrays.arrived[0, k] = s.arrived[to_come, k] - s.arrived[s.first[b], k]
