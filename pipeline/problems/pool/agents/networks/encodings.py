"""DeepRM's image of an observation, drawn cell by cell for networks that need pixels.

Columns, for each resource: the units in use (as many columns as units), then each slot (as many columns; a job fills
rows 0..duration - 1 of columns 0..demand - 1). Then come the backlog (filled row by row) and, with a clock, a column
with (time since a job last arrived) / 10, at most 1, in every row. It is DeepRM's image as occupancy, without the
random grey levels that its code gives to jobs.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.pool.env.nouns import Cluster, CompactObservation
from pipeline.simulation.compiled import Span, threaded

CLOCK_STEPS = 10


class Layout(NamedTuple):
    """Layout of the image of a cluster."""

    capacity: tuple[int, ...]  # [R]
    rows: int  # T
    slots: int  # M
    backlog: int  # jobs that the image can show
    clock: bool  # is there a clock?

    @classmethod
    def of(cls, cluster: Cluster, clock: bool) -> "Layout":
        """Return the layout of a cluster's image."""
        return cls(cluster.capacity, cluster.horizon, cluster.slots, cluster.backlog, clock)

    @property
    def backlog_columns(self) -> int:
        """Return the number of columns of the backlog: enough for all jobs that it can show."""
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


def clock(observed: CompactObservation) -> FloatArray:
    """Return the clock [D]: the time since a job last arrived, as a share of ten steps."""
    return np.asarray(np.minimum(observed.rest[:, 1], CLOCK_STEPS) / CLOCK_STEPS).astype(np.float32)


def paint(observed: CompactObservation, layout: Layout, device: torch.device) -> Tensor:
    """Return the same images as `draw`, drawn on a device by torch."""
    cells = (
        torch.from_numpy(observed.cells if observed.cells.itemsize == 1 else observed.cells.astype(np.int32))
        .to(device)
        .int()
    )
    count, steps, resources = len(cells), layout.rows, len(layout.capacity)
    free = cells[:, : steps * resources].view(count, steps, resources)
    slots = cells[:, steps * resources :].view(count, layout.slots, 1 + resources)
    return image_of(free, slots, torch.from_numpy(observed.rest).to(device), layout)


def image_of(free: Tensor, slots: Tensor, rest: Tensor, layout: Layout) -> Tensor:
    """Return the images of free units [D, T, R], duration and demand [D, M, 1 + R], backlog and time since [D, 2]."""
    count, steps, device = free.shape[0], layout.rows, free.device
    step = torch.arange(steps, device=device)[:, None, None]
    parts = []
    for r, units in enumerate(layout.capacity):
        unit = torch.arange(units, device=device)
        parts.append(unit < units - free[:, :, r, None])
        block = (step < slots[:, None, :, :1]) & (unit < slots[:, None, :, 1 + r, None])
        parts.append(block.view(count, steps, -1))
    place = torch.arange(steps * layout.backlog_columns, device=device).view(steps, layout.backlog_columns)
    parts.append(place < rest[:, 0].clamp(max=layout.backlog)[:, None, None])
    image = torch.cat(parts, dim=2).float()
    if not layout.clock:
        return image
    since = (rest[:, 1].clamp(max=CLOCK_STEPS) / CLOCK_STEPS)[:, None, None].expand(count, steps, 1)
    return torch.cat([image, since], dim=2)


def draw(observed: CompactObservation, layout: Layout) -> FloatArray:
    """Return the images [D, T, columns], float32, of occupancy 0 or 1."""
    image = np.zeros((len(observed.cells), layout.rows, layout.columns), dtype=np.float32)
    capacity = np.array(layout.capacity, dtype=np.int64)
    _draw_cluster(image, observed.cells, capacity, layout.strips, layout.slots)
    if layout.backlog:
        first = layout.columns - layout.backlog_columns - int(layout.clock)
        shown = np.minimum(observed.rest[:, 0], layout.backlog)[:, None, None]
        place = np.arange(layout.rows * layout.backlog_columns).reshape(layout.rows, -1)
        image[:, :, first : first + layout.backlog_columns] = place < shown
    if layout.clock:
        image[:, :, -1] = clock(observed)[:, None]
    return image


@threaded(lambda image, *_: len(image))
def _draw_cluster(
    span: Span, image: FloatArray, cells: IntArray, capacity: IntArray, strips: IntArray, slots: int
) -> None:
    steps, resources = image.shape[1], len(capacity)
    for b in range(*span):
        for r in range(resources):
            left, width = strips[r], capacity[r]
            for t in range(steps):
                image[b, t, left : left + width - cells[b, t * resources + r]] = 1.0
            for m in range(slots):
                at, start = steps * resources + m * (1 + resources), left + width * (1 + m)
                image[b, : cells[b, at], start : start + cells[b, at + 1 + r]] = 1.0
