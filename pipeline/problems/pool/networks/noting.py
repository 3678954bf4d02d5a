"""What `describing` works out once and looks up from then on: logarithms, and what jobs of a duration have in common.

Nothing here changes a bit of what is described: what is looked up was worked out by the same sum.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from pipeline.core import BoolArray, FloatArray, IntArray
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
