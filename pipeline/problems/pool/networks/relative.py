"""What `sets` sees: every waiting job and the rest of an observation, in numbers that know no size.

Amounts are shares of capacity, durations are told by themselves and beside the mean of those that have arrived so far,
resources only by their largest, mean and smallest, so that the same weights serve any number of slots and resources,
any capacity and horizon. `describing` works them out.
"""

from typing import NamedTuple

import numpy as np

from pipeline.core import BoolArray, FloatArray, IntArray

OF_JOB, OF_REST = 21, 26  # features
STRETCH, FITS, HASTE, ELAPSED = 3, 7, 19, 25  # places of some; haste is 1 / duration
STRETCH_SCALE = 3.0  # what log(1 + waited / duration) is divided by


class Relative(NamedTuple):
    """D observations as features."""

    job: FloatArray  # [D, M, OF_JOB]  0 in empty slots
    rest: FloatArray  # [D, OF_REST]
    may: BoolArray  # [D, A]  the legal actions

    def take(self, rows: IntArray | slice) -> "Relative":
        """Return some of them."""
        return Relative(self.job[rows], self.rest[rows], self.may[rows])


class Scene(NamedTuple):
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


def room(count: int, slots: int) -> Relative:
    """Return empty arrays for so many observations."""
    return Relative(
        np.empty((count, slots, OF_JOB), dtype=np.float32),
        np.empty((count, OF_REST), dtype=np.float32),
        np.empty((count, slots + 1), dtype=np.bool_),
    )
