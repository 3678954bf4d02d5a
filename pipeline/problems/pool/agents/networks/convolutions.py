"""DeepRM2's layers on distinct parts, each a sum of rows of the previous layer's table, forward and backward.

The first convolution runs on distinct strips. The second is linear in its five columns: each distinct strip has a row
for each of them, and a patch is a sum of ten rows. Each placed patch contributes its share to the third layer, whose
value for an image is the sum of the shares of its placed patches. Each kernel sums in a fixed order, regardless of the
number of threads and the rest of the tables, so the logits of an observation do not depend on its batch.
"""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as nnf
from numba import get_num_threads, njit
from torch import Tensor, nn

from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.pool.agents.networks.rows import NARROW, add_columns, add_mixture, sum_rows
from pipeline.simulation.compiled import Span, inlined, threaded

TAPS = 5  # columns of the second convolution


def strip_rows(cells: Tensor, first: nn.Conv2d, second: nn.Conv2d) -> Tensor:
    """Return each strip's share [S, TAPS, C2 * (T // 2)] of the second convolution's columns, from cells [S, T, 6]."""
    maps = nnf.conv2d(cells[:, None], first.weight, first.bias, padding=(2, 0))
    pooled = nnf.avg_pool2d(torch.relu(maps), 2)[:, :, :, 0]
    taps = second.weight.permute(3, 0, 1, 2).reshape(-1, second.in_channels, second.weight.shape[2])
    return nnf.conv1d(pooled, taps, padding=2).view(len(cells), TAPS, -1)


class PoolPatches(torch.autograd.Function):
    """The second convolution's bias, ReLU and pool on distinct patches."""

    @staticmethod
    def forward(context: Any, rows: Tensor, bias: Tensor, strips: IntArray) -> Tensor:
        """Return [U, C2 * (T // 4)] from rows [S, TAPS, C2 * (T // 2)] and each patch's strips [U, 6]."""
        context.save_for_backward(rows, bias)
        context.strips = strips
        steps = rows.shape[2] // len(bias)
        out = np.empty((len(strips), len(bias) * (steps // 2)), dtype=np.float32)
        pool(rows.detach().numpy(), bias.detach().numpy(), strips, out)
        return torch.from_numpy(out)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        """Add each patch's gradient to its strips' rows."""
        rows, bias = (value.detach().numpy() for value in context.saved_tensors)
        to_rows, to_bias = np.zeros_like(rows), np.zeros_like(bias)
        _unpool(rows, bias, context.strips, gradient.contiguous().numpy(), get_num_threads(), to_rows, to_bias)
        return torch.from_numpy(to_rows), torch.from_numpy(to_bias), None


class Sum(torch.autograd.Function):
    """The third layer, without its bias, as sums of the shares of placed patches."""

    @staticmethod
    def forward(context: Any, maps: Tensor, weight: Tensor, placed: IntArray, where: IntArray) -> Tensor:
        """Return [D, H], H padded, from maps [U, C], weights [columns, C, H], placed [P, 2] and where [D, columns]."""
        context.save_for_backward(maps, weight)
        context.placed, context.where = placed, where
        shares = np.empty((len(placed), weight.shape[2]), dtype=np.float32)
        share(maps.detach().numpy(), weight.detach().numpy(), placed, shares)
        hidden = np.empty((len(where), weight.shape[2]), dtype=np.float32)
        add_up(shares, where, get_num_threads(), hidden)
        return torch.from_numpy(hidden)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """Add each observation's gradient to its placed patches, and theirs to patches and weights."""
        maps, weight = context.saved_tensors
        shares = np.zeros((len(context.placed), weight.shape[2]), dtype=np.float32)
        _scatter(gradient.contiguous().numpy(), context.where, get_num_threads(), shares)
        to_maps, to_weight = torch.zeros_like(maps), torch.zeros_like(weight)
        patch, column = torch.from_numpy(context.placed.T.astype(np.int64))
        order = torch.argsort(column, stable=True)
        ends = torch.bincount(column, minlength=len(weight)).cumsum(0).tolist()
        for k, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
            some = order[begin:end]
            above, below = torch.from_numpy(shares)[some], patch[some]
            to_weight[k] = maps[below].T @ above
            to_maps.index_add_(0, below, above @ weight[k].T)  # within one place, no patch occurs twice
        return to_maps, to_weight, None, None


@inlined
def _convolve(
    rows: FloatArray, bias: FloatArray, strips: IntArray, u: int, first: int, last: int, columns: FloatArray
) -> None:
    """Write a patch's two columns [2, C2 * T2] of the second convolution, for channels first to last - 1."""
    steps = rows.shape[2] // len(bias)
    begin, end = first * steps, last * steps
    for x in range(2):
        for c in range(first, last):
            for k in range(c * steps, (c + 1) * steps):
                columns[x, k] = bias[c]
        for tap in range(TAPS):
            strip = strips[u, x + tap]
            if strip >= 0:
                for k in range(begin, end):
                    columns[x, k] += rows[strip, tap, k]


@threaded(lambda rows, bias, strips, out: -(-len(out) // 64))
def pool(span: Span, rows: FloatArray, bias: FloatArray, strips: IntArray, out: FloatArray) -> None:
    """Write the second pool's output [U, C2 * T4] of patches."""
    channels = len(bias)
    steps = rows.shape[2] // channels
    for part in range(*span):
        columns = np.empty((2, rows.shape[2]), dtype=np.float32)
        for u in range(part * 64, min((part + 1) * 64, len(out))):
            _convolve(rows, bias, strips, u, 0, channels, columns)
            for k in range(columns.shape[1]):
                columns[0, k] = max(columns[0, k], np.float32(0.0)) + max(columns[1, k], np.float32(0.0))
            for c in range(channels):
                for t in range(steps // 2):
                    at = c * steps + 2 * t
                    out[u, c * (steps // 2) + t] = (columns[0, at] + columns[0, at + 1]) * np.float32(0.25)


@threaded(lambda rows, bias, strips, gradient, parts, *_: parts)
def _unpool(
    span: Span, rows: FloatArray, bias: FloatArray, strips: IntArray, gradient: FloatArray, parts: int,
    to_rows: FloatArray, to_bias: FloatArray,
) -> None:  # fmt: skip
    """Add to the gradients of rows and bias; each part has its own channels."""
    channels = len(bias)
    steps = rows.shape[2] // channels
    for part in range(*span):
        first, last = channels * part // parts, channels * (part + 1) // parts
        columns = np.empty((2, rows.shape[2]), dtype=np.float32)
        for u in range(len(strips)):
            _convolve(rows, bias, strips, u, first, last, columns)
            for x in range(2):
                for c in range(first, last):
                    total = np.float32(0.0)
                    for t in range(steps):
                        at = c * steps + t
                        inside = t // 2 < steps // 2 and columns[x, at] > 0.0
                        value = gradient[u, c * (steps // 2) + t // 2] * np.float32(0.25) if inside else np.float32(0.0)
                        columns[x, at] = value
                        total += value
                    to_bias[c] += total
                for tap in range(TAPS):
                    strip = strips[u, x + tap]
                    if strip >= 0:
                        for k in range(first * steps, last * steps):
                            to_rows[strip, tap, k] += columns[x, k]


@threaded(lambda maps, weight, placed, shares: len(placed))
def share(span: Span, maps: FloatArray, weight: FloatArray, placed: IntArray, shares: FloatArray) -> None:
    """Write the share [P, H] of each placed patch in the third layer."""
    for p in range(*span):
        shares[p] = 0.0
        add_mixture(weight[placed[p, 1]], maps[placed[p, 0]], maps.shape[1], shares[p])


@threaded(lambda shares, where, parts, hidden: parts)
def add_up(span: Span, shares: FloatArray, where: IntArray, parts: int, hidden: FloatArray) -> None:
    """Write the sum [D, H] of the shares of each image's placed patches."""
    each = -(-len(where) // parts)
    for part in range(*span):
        for i in range(part * each, min((part + 1) * each, len(where))):
            sum_rows(shares, where[i], where.shape[1], hidden[i])


@threaded(lambda gradient, where, parts, shares: parts)
def _scatter(span: Span, gradient: FloatArray, where: IntArray, parts: int, shares: FloatArray) -> None:
    """Add the gradient of each image to its placed patches; each part has its own hidden units."""
    vectors = gradient.shape[1] // NARROW
    for part in range(*span):
        first, last = vectors * part // parts * NARROW, vectors * (part + 1) // parts * NARROW
        for i in range(len(where)):
            add_columns(shares, where[i], where.shape[1], first, last, gradient[i])


@njit(cache=True)
def weigh(values: FloatArray, weight: FloatArray, bias: FloatArray, logits: FloatArray) -> None:
    """Write the last layer's output [D, A] for values [D, H], row by row."""
    for i in range(len(values)):
        for a in range(len(bias)):
            total = bias[a]
            for h in range(values.shape[1]):
                total += weight[a, h] * values[i, h]
            logits[i, a] = total
