"""DeepRM's first layer without drawing the image: a sum of rows of a table, forward and backward.

The image is a sum of pieces (`encodings.pieces`), each piece a cumulative sum of weights, so one table row a piece
gives exactly the dense layer on the image, with ~70 times less arithmetic.
"""

from typing import Any

import numpy as np
import torch
from numba import get_num_threads, njit, prange
from torch import Tensor

from pipeline.core import FloatArray, IntArray
from pipeline.policies.encodings import Layout


def piece_table(weight: Tensor, layout: Layout) -> Tensor:
    """Return the layer's value [pieces, H] on every piece, from its weight [H, T * columns].

    The rows stand as `encodings.pieces` numbers them.
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
    """Sum of a table's rows for each of B lists of row numbers; torch's own embedding_bag has a slower backward."""

    @staticmethod
    def forward(context: Any, table: Tensor, numbers: Tensor) -> Tensor:
        """Return [B, H] from a table [pieces, H] and row numbers [B, P]."""
        context.save_for_backward(numbers)
        context.rows = len(table)
        sums = np.empty((len(numbers), table.shape[1]), dtype=np.float32)
        _gather(table.detach().numpy(), numbers.numpy(), sums)
        return torch.from_numpy(sums)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Add each list's gradient to its rows, in a fixed order for a given number of threads."""
        (numbers,) = context.saved_tensors
        parts = np.zeros((get_num_threads(), context.rows, gradient.shape[1]), dtype=np.float32)
        _scatter(parts, numbers.numpy(), gradient.contiguous().numpy())
        return torch.from_numpy(parts.sum(axis=0)), None


@njit(cache=True, parallel=True)
def _gather(table: FloatArray, numbers: IntArray, sums: FloatArray) -> None:
    for b in prange(numbers.shape[0]):
        sums[b] = table[numbers[b, 0]]
        for p in range(1, numbers.shape[1]):
            row = numbers[b, p]
            for h in range(table.shape[1]):
                sums[b, h] += table[row, h]


@njit(cache=True, parallel=True)
def _scatter(parts: FloatArray, numbers: IntArray, gradient: FloatArray) -> None:
    share = -(-numbers.shape[0] // parts.shape[0])
    for part in prange(parts.shape[0]):
        for b in range(part * share, min((part + 1) * share, numbers.shape[0])):
            for p in range(numbers.shape[1]):
                row = numbers[b, p]
                for h in range(gradient.shape[1]):
                    parts[part, row, h] += gradient[b, h]
