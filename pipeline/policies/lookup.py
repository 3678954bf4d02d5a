"""DeepRM's first layer without drawing the image: a sum of rows of a table, forward and backward.

The image is a sum of pieces, each a cumulative sum of weights: a row of a resource (by its units in use), a slot's
block (by duration and demand), the backlog (by its count), the clock. One table row a piece gives exactly the dense
layer on the image, with ~70 times less arithmetic; empty rows, slots and backlogs cost nothing.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numba import get_num_threads, njit, prange
from torch import Tensor

from pipeline.compiled import inlined
from pipeline.core import FloatArray, IntArray, Seen
from pipeline.policies.encodings import CLOCK_STEPS, Layout

FEW = 64  # observations: waking a second thread takes longer than summing so few


class Places(NamedTuple):
    """Where the pieces stand in the table."""

    capacity: IntArray  # [R]
    steps: int  # T
    slots: int  # M
    rows: IntArray  # [R]  first row of the cluster image's pieces: T * (capacity + 1)
    blocks: IntArray  # [R]  of the slots': M * (T + 1) * (capacity + 1)
    backlog: int  # of the backlog's: one more than it can show
    shown: int  # jobs the backlog can show
    clock: int  # the clock's only row; -1 = none


def places_of(layout: Layout) -> Places:
    """Return where the pieces of a layout stand."""
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
    """Return the layer's value [pieces, H] on every piece, from its weight [H, T * columns]; `places_of` says where."""
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
    return torch.cat(tables)


def _sums_along(weights: Tensor, dim: int) -> Tensor:
    """Return the sums of the first 0, 1, 2, ... entries along a dimension."""
    sums = weights.cumsum(dim)
    return (
        torch.cat([torch.zeros_like(sums.narrow(dim, 0, 1)), sums], dim=dim)
        if sums.shape[dim]
        else sums.new_zeros([1 if k == dim else n for k, n in enumerate(sums.shape)])
    )


class SumRows(torch.autograd.Function):
    """Sum of the table's rows that each observation is made of; torch's own embedding_bag has a slower backward."""

    @staticmethod
    def forward(context: Any, table: Tensor, seen: Seen, places: Places) -> Tensor:
        """Return [D, H] from a table [pieces, H]."""
        context.seen, context.places, context.rows = seen, places, len(table)
        sums = np.empty((len(seen.cells), table.shape[1]), dtype=np.float32)
        _gather(table.detach().numpy(), seen.cells, seen.rest, places, get_num_threads(), sums)
        return torch.from_numpy(sums)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Add each observation's gradient to its rows, in a fixed order for a given number of threads."""
        parts = np.zeros((get_num_threads(), context.rows, gradient.shape[1]), dtype=np.float32)
        _scatter(parts, context.seen.cells, context.seen.rest, context.places, gradient.contiguous().numpy())
        return torch.from_numpy(parts.sum(axis=0)), None, None


def decide(
    table: FloatArray, bias: FloatArray, last: FloatArray, last_bias: FloatArray, seen: Seen, places: Places
) -> FloatArray:
    """Return the logits [D, A] of the whole network; those of an observation do not depend on the others.

    Args:
        table: [pieces, H] of the first layer.
        bias: [H] of it.
        last: [A, H], weight of the last layer.
        last_bias: [A] of it.
        seen: D observations.
        places: of the pieces.
    """
    logits = np.empty((len(seen.cells), len(last_bias)), dtype=np.float32)
    if len(logits) < FEW:
        _decide(table, bias, last, last_bias, seen.cells, seen.rest, places, 0, len(logits), logits)
    else:
        _decide_all(table, bias, last, last_bias, seen.cells, seen.rest, places, get_num_threads(), logits)
    return logits


@inlined
def _pieces(cells: IntArray, rest: IntArray, p: Places, i: int, found: IntArray) -> int:
    """Write the table rows of what one observation shows, and return how many; the clock's is not among them."""
    count, resources = 0, len(p.capacity)
    for t in range(p.steps):
        for r in range(resources):
            used = p.capacity[r] - cells[i, t * resources + r]
            if used > 0:
                found[count] = p.rows[r] + t * (p.capacity[r] + 1) + used
                count += 1
    for m in range(p.slots):
        at = p.steps * resources + m * (1 + resources)
        duration = np.int64(cells[i, at])
        if duration == 0:
            continue
        for r in range(resources):
            found[count] = p.blocks[r] + (m * (p.steps + 1) + duration) * (p.capacity[r] + 1) + cells[i, at + 1 + r]
            count += 1
    if rest[i, 0] > 0 and p.shown > 0:
        found[count] = p.backlog + min(rest[i, 0], p.shown)
        count += 1
    return count


@inlined
def _since(rest: IntArray, i: int) -> np.float32:
    """Return what `encodings.clock` does."""
    return np.float32(min(rest[i, 1], CLOCK_STEPS) / CLOCK_STEPS)


@inlined
def _sum(
    table: FloatArray, cells: IntArray, rest: IntArray, p: Places, i: int, found: IntArray, total: FloatArray
) -> None:
    """Write the sum [H] of one observation's rows."""
    count = _pieces(cells, rest, p, i, found)
    total[:] = 0.0
    for k in range(count):
        row = found[k]
        for h in range(table.shape[1]):
            total[h] += table[row, h]
    if p.clock >= 0:
        share = _since(rest, i)
        for h in range(table.shape[1]):
            total[h] += share * table[p.clock, h]


@inlined
def _most(p: Places) -> int:
    """Return the most pieces an observation can have."""
    return len(p.capacity) * (p.steps + p.slots) + 1


@njit(cache=True, parallel=True)
def _gather(table: FloatArray, cells: IntArray, rest: IntArray, p: Places, parts: int, sums: FloatArray) -> None:
    share = -(-cells.shape[0] // parts)
    for part in prange(parts):
        found = np.empty(_most(p), dtype=np.int64)
        for i in range(part * share, min((part + 1) * share, cells.shape[0])):
            _sum(table, cells, rest, p, i, found, sums[i])


@njit(cache=True, parallel=True)
def _scatter(parts: FloatArray, cells: IntArray, rest: IntArray, p: Places, gradient: FloatArray) -> None:
    share = -(-cells.shape[0] // parts.shape[0])
    for part in prange(parts.shape[0]):
        found = np.empty(_most(p), dtype=np.int64)
        for i in range(part * share, min((part + 1) * share, cells.shape[0])):
            count = _pieces(cells, rest, p, i, found)
            for k in range(count):
                row = found[k]
                for h in range(gradient.shape[1]):
                    parts[part, row, h] += gradient[i, h]
            if p.clock >= 0:
                since = _since(rest, i)
                for h in range(gradient.shape[1]):
                    parts[part, p.clock, h] += since * gradient[i, h]


@njit(cache=True)
def _decide(
    table: FloatArray,
    bias: FloatArray,
    last: FloatArray,
    last_bias: FloatArray,
    cells: IntArray,
    rest: IntArray,
    p: Places,
    begin: int,
    end: int,
    logits: FloatArray,
) -> None:
    found = np.empty(_most(p), dtype=np.int64)
    hidden = np.empty(len(bias), dtype=np.float32)
    for i in range(begin, end):
        _sum(table, cells, rest, p, i, found, hidden)
        for h in range(len(bias)):
            hidden[h] = max(hidden[h] + bias[h], np.float32(0.0))
        for a in range(len(last_bias)):
            value = last_bias[a]
            for h in range(len(bias)):
                value += last[a, h] * hidden[h]
            logits[i, a] = value


@njit(cache=True, parallel=True)
def _decide_all(
    table: FloatArray,
    bias: FloatArray,
    last: FloatArray,
    last_bias: FloatArray,
    cells: IntArray,
    rest: IntArray,
    p: Places,
    parts: int,
    logits: FloatArray,
) -> None:
    share = -(-cells.shape[0] // parts)
    for part in prange(parts):
        end = min((part + 1) * share, cells.shape[0])
        _decide(table, bias, last, last_bias, cells, rest, p, part * share, end, logits)
