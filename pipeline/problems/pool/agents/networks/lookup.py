"""DeepRM's first layer without a drawn image: a sum of rows of a table, forward and backward.

The image consists of pieces: a row of a resource (by its units in use), a slot's block (by duration and demand), the
backlog (by its count), and the clock. The layer's value on a piece is a cumulative sum of weights, a row of the table.
The sum of these rows is exactly the dense layer on the image, with ~70 times less work; empty pieces cost nothing.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numba import get_num_threads
from torch import Tensor

from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.pool.agents.networks.encodings import CLOCK_STEPS, Layout
from pipeline.problems.pool.agents.networks.rows import add_to_rows, padded, sum_rows
from pipeline.problems.pool.env.nouns import CompactObservation
from pipeline.simulation.compiled import Span, inlined, threaded


class Places(NamedTuple):
    """Rows of the pieces in the table."""

    capacity: IntArray  # [R]
    steps: int  # T
    slots: int  # M
    rows: IntArray  # [R]  first row of the cluster's pieces: T * (capacity + 1)
    blocks: IntArray  # [R]  first row of the slots' pieces: M * (T + 1) * (capacity + 1)
    backlog: int  # first row of the backlog's pieces: one more than the jobs it can show
    shown: int  # jobs the backlog can show
    clock: int  # the clock's only row; -1 = none


def places_of(layout: Layout) -> Places:
    """Return the rows of a layout's pieces."""
    capacity = np.array(layout.capacity, dtype=np.int64)
    sizes = np.stack([layout.rows * (capacity + 1), layout.slots * (layout.rows + 1) * (capacity + 1)], axis=1)
    ends = sizes.cumsum().reshape(-1, 2)
    begins = ends - sizes
    last = int(ends[-1, 1])
    clock = last + layout.backlog + 1 if layout.clock else -1
    return Places(
        capacity, layout.rows, layout.slots, begins[:, 0].copy(), begins[:, 1].copy(), last, layout.backlog, clock
    )


def piece_table(weight: Tensor, layout: Layout) -> Tensor:
    """Return the layer's value on every piece, from its weights [H, T * columns]; rows are as in `places_of`.

    The table is [pieces, padded(H)]; its last columns are 0.
    """
    image = weight.view(-1, layout.rows, layout.columns)
    tables = []
    for left, units in zip(layout.strips.tolist(), layout.capacity, strict=True):
        in_use = _sums_along(image[:, :, left : left + units], dim=2)
        tables.append(in_use.permute(1, 2, 0).reshape(-1, len(image)))
        slots = image[:, :, left + units : left + units * (1 + layout.slots)]
        blocks = slots.reshape(len(image), layout.rows, layout.slots, units).permute(2, 1, 3, 0)
        blocks = _sums_along(_sums_along(blocks, dim=1), dim=2)
        tables.append(blocks.reshape(-1, len(image)))
    first = layout.columns - layout.backlog_columns - int(layout.clock)
    backlog = image[:, :, first : first + layout.backlog_columns].reshape(len(image), -1)[:, : layout.backlog]
    tables.append(_sums_along(backlog, dim=1).T)
    if layout.clock:
        tables.append(image[:, :, -1].sum(dim=1)[None])
    return torch.nn.functional.pad(torch.cat(tables), (0, padded(len(image)) - len(image)))


def _sums_along(weights: Tensor, dim: int) -> Tensor:
    """Return the sums of the first 0, 1, 2, ... entries along a dimension."""
    sums = weights.cumsum(dim)
    return (
        torch.cat([torch.zeros_like(sums.narrow(dim, 0, 1)), sums], dim=dim)
        if sums.shape[dim]
        else sums.new_zeros([1 if k == dim else n for k, n in enumerate(sums.shape)])
    )


class SumRows(torch.autograd.Function):
    """Sum of the table rows of each observation's pieces; the backward pass of torch's embedding_bag is slower."""

    @staticmethod
    def forward(context: Any, table: Tensor, observed: CompactObservation, places: Places) -> Tensor:
        """Return [D, width] from a table [pieces, width]."""
        context.observed, context.places, context.rows = observed, places, len(table)
        sums = np.empty((len(observed.cells), table.shape[1]), dtype=np.float32)
        _gather(table.detach().numpy(), observed, places, get_num_threads(), sums)
        return torch.from_numpy(sums)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Add each observation's gradient to its rows, in a fixed order for a given number of threads."""
        parts = np.zeros((get_num_threads(), context.rows, gradient.shape[1]), dtype=np.float32)
        _scatter(parts, context.observed, context.places, gradient.contiguous().numpy())
        return torch.from_numpy(parts.sum(axis=0)), None, None


@inlined
def pieces(observed: CompactObservation, p: Places, i: int, found: IntArray) -> int:
    """Write the table rows of one observation's pieces, without the clock's; return their number."""
    count, resources = 0, len(p.capacity)
    for t in range(p.steps):
        for r in range(resources):
            used = p.capacity[r] - observed.cells[i, t * resources + r]
            if used > 0:
                found[count] = p.rows[r] + t * (p.capacity[r] + 1) + used
                count += 1
    for m in range(p.slots):
        at = p.steps * resources + m * (1 + resources)
        duration = np.int64(observed.cells[i, at])
        if duration == 0:
            continue
        for r in range(resources):
            row = (m * (p.steps + 1) + duration) * (p.capacity[r] + 1) + observed.cells[i, at + 1 + r]
            found[count] = p.blocks[r] + row
            count += 1
    if observed.rest[i, 0] > 0 and p.shown > 0:
        found[count] = p.backlog + min(observed.rest[i, 0], p.shown)
        count += 1
    return count


@inlined
def max_pieces(p: Places) -> int:
    """Return the largest number of pieces of an observation."""
    return len(p.capacity) * (p.steps + p.slots) + 1


@inlined
def _since(observed: CompactObservation, i: int) -> np.float32:
    """Return `encodings.clock` of one observation."""
    return np.float32(min(observed.rest[i, 1], CLOCK_STEPS) / CLOCK_STEPS)


@inlined
def add_up(
    table: FloatArray, observed: CompactObservation, p: Places, i: int, found: IntArray, total: FloatArray
) -> int:
    """Write the sum [width] of one observation's rows, and their indices to `found`; return their number."""
    count = pieces(observed, p, i, found)
    sum_rows(table, found, count, total)
    if p.clock >= 0:
        share = _since(observed, i)
        for h in range(table.shape[1]):
            total[h] += share * table[p.clock, h]
    return count


@inlined
def scatter_row(
    table: FloatArray, observed: CompactObservation, p: Places, i: int, found: IntArray, count: int, more: FloatArray
) -> None:
    """Add a gradient [width] to one observation's rows, which `add_up` found."""
    add_to_rows(table, found, count, more)
    if p.clock >= 0:
        share = _since(observed, i)
        for h in range(table.shape[1]):
            table[p.clock, h] += share * more[h]


@threaded(lambda table, observed, p, parts, sums: parts)
def _gather(
    span: Span, table: FloatArray, observed: CompactObservation, p: Places, parts: int, sums: FloatArray
) -> None:
    share = -(-sums.shape[0] // parts)
    for part in range(*span):
        found = np.empty(max_pieces(p), dtype=np.int64)
        for i in range(part * share, min((part + 1) * share, sums.shape[0])):
            add_up(table, observed, p, i, found, sums[i])


@threaded(lambda parts, *_: len(parts))
def _scatter(span: Span, parts: FloatArray, observed: CompactObservation, p: Places, gradient: FloatArray) -> None:
    share = -(-gradient.shape[0] // parts.shape[0])
    for part in range(*span):
        found = np.empty(max_pieces(p), dtype=np.int64)
        for i in range(part * share, min((part + 1) * share, gradient.shape[0])):
            scatter_row(parts[part], observed, p, i, found, pieces(observed, p, i, found), gradient[i])
