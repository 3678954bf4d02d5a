"""DeepRM's image of an observation: drawn pixel by pixel, or as the table rows that it is made of.

Columns, resource after resource: units in use (capacity), then each slot (capacity; a job fills rows 0..duration - 1
of columns 0..demand - 1); then the backlog (filled row by row), then, with a clock, the time since a job last arrived
/ 10, at most 1, in every row. It is DeepRM's image as occupancy: the random grey levels its code gives jobs are left
out.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from pipeline.core import Cluster, FloatArray, IntArray, Observation

CLOCK_STEPS = 10


class Layout(NamedTuple):
    """Where things stand in the image of a cluster."""

    capacity: tuple[int, ...]  # [R]
    rows: int  # T
    slots: int  # M
    backlog: int
    clock: bool

    @classmethod
    def of(cls, cluster: Cluster, clock: bool) -> "Layout":
        """Return the layout of a cluster's image."""
        return cls(cluster.capacity, cluster.horizon, cluster.slots, cluster.backlog, clock)

    @property
    def backlog_columns(self) -> int:
        """Return the columns of the backlog: enough for all its jobs."""
        return -(-self.backlog // self.rows)

    @property
    def columns(self) -> int:
        """Return the width of the image.

        >>> Layout((10, 10), 20, 10, 60, clock=False).columns, Layout((10, 10), 20, 30, 0, clock=False).columns
        (223, 620)
        """
        return sum(self.capacity) * (1 + self.slots) + self.backlog_columns + int(self.clock)

    @property
    def strips(self) -> IntArray:
        """Return the first column [R] of each resource."""
        return np.concatenate([[0], np.cumsum(self.capacity)[:-1]]).astype(np.int64) * (1 + self.slots)


def clock(view: Observation) -> FloatArray:
    """Return the clock [B]: time since a job last arrived, as a share of ten steps."""
    return np.asarray(np.minimum(view.since_arrival, CLOCK_STEPS) / CLOCK_STEPS).astype(np.float32)


def draw(view: Observation, layout: Layout) -> FloatArray:
    """Return the images [B, T, columns], float32, of occupancy 0 or 1."""
    image = np.zeros((len(view.now), layout.rows, layout.columns), dtype=np.float32)
    capacity = np.array(layout.capacity, dtype=np.int64)
    _draw_cluster(image, view.free[:, 0], view.demand, view.duration, capacity, layout.strips)
    if layout.backlog:
        first = layout.columns - layout.backlog_columns - int(layout.clock)
        shown = np.minimum(view.backlog, layout.backlog)[:, None, None]
        place = np.arange(layout.rows * layout.backlog_columns).reshape(layout.rows, -1)
        image[:, :, first : first + layout.backlog_columns] = place < shown
    if layout.clock:
        image[:, :, -1] = clock(view)[:, None]
    return image


@njit(cache=True, parallel=True)
def _draw_cluster(
    image: FloatArray, free: IntArray, demand: IntArray, duration: IntArray, capacity: IntArray, strips: IntArray
) -> None:
    for b in prange(image.shape[0]):
        for r in range(capacity.shape[0]):
            left, width = strips[r], capacity[r]
            for t in range(image.shape[1]):
                image[b, t, left : left + width - free[b, t, r]] = 1.0
            for m in range(duration.shape[1]):
                start = left + width * (1 + m)
                image[b, : duration[b, m], start : start + demand[b, m, r]] = 1.0


def pieces(view: Observation, layout: Layout) -> IntArray:
    """Return the pieces [B, R * T + R * M + 1] that the image is the sum of, as rows of one table.

    A row of the cluster image is one of capacity + 1 pieces, a slot's block one of (T + 1) * (capacity + 1), the
    backlog one of backlog + 1: a dense layer on the image is the sum of its values on the pieces.
    """
    numbers = []
    offset = 0
    for r, units in enumerate(layout.capacity):
        used = units - view.free[:, 0, :, r].astype(np.int64)
        numbers.append(offset + np.arange(layout.rows) * (units + 1) + used)
        offset += layout.rows * (units + 1)
        block = view.duration.astype(np.int64) * (units + 1) + view.demand[:, :, r]
        numbers.append(offset + np.arange(layout.slots) * (layout.rows + 1) * (units + 1) + block)
        offset += layout.slots * (layout.rows + 1) * (units + 1)
    numbers.append(offset + np.minimum(view.backlog, layout.backlog).astype(np.int64)[:, None])
    return np.concatenate(numbers, axis=1).astype(np.int32)
