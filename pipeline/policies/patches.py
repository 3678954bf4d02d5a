"""DeepRM2's convolutions on each distinct patch of the images once.

A column of the second pool's output depends on 16 columns of the image only. Neighbouring states, and the episodes of
one jobset, share nearly all of their slots, so few of the 16-column patches in a batch are distinct: the convolutions
run on those, and their outputs are laid out again as the maps of every image. The function is exactly that of
convolving whole images (a test holds it), for a fraction of the arithmetic.
"""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as nnf
from numba import njit, prange
from torch import Tensor, nn

from pipeline.core import FloatArray, IntArray

STRIDE = 4  # image columns per column of the second pool
WIDTH = 16  # image columns that one of them depends on
MARGIN = 6  # of which to the left of its own
POOLED = 6  # columns of the first pool within a patch
AT_ONCE = 512  # patches whose maps stay in the cache


class Patches(NamedTuple):
    """The distinct patches of B images, and where they stand."""

    patch: FloatArray  # [U, T, WIDTH]  distinct patches
    inside: FloatArray  # [U, POOLED]     1 where a column of the first pool lies within the image, else 0
    place: IntArray  # [B, columns]    which patch stands there


def patches_of(image: FloatArray) -> Patches:
    """Return the distinct patches of images [B, T, columns]."""
    episodes, rows, width = image.shape
    columns = width // STRIDE
    padded = np.zeros((episodes, rows, columns * STRIDE + WIDTH), dtype=np.float32)
    padded[:, :, MARGIN : MARGIN + width] = image[:, :, : padded.shape[2] - MARGIN]
    mark = np.empty((episodes, columns), dtype=np.uint64)
    _mark(padded, mark)
    first = np.arange(columns)[:, None] * 2 - 2 + np.arange(POOLED)
    inside = (first >= 0) & (first < width // 2)
    # Patches at an edge are told apart by what lies outside: the second convolution pads with zeros there.
    _, kind = np.unique(inside, axis=0, return_inverse=True)
    mark ^= (kind.reshape(-1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))[None]
    example, place = _distinct(mark.reshape(-1))
    at, column = np.divmod(example, columns)
    patch = np.empty((len(example), rows, WIDTH), dtype=np.float32)
    _copy(padded, at, column, patch)
    return Patches(patch, inside[column].astype(np.float32), place.reshape(episodes, columns))


@njit(cache=True, parallel=True)
def _mark(padded: FloatArray, mark: IntArray) -> None:
    """Give each patch 64 bits (FNV-1a): of a million patches, two meet by chance once in 10^7 times.

    A patch is four blocks of STRIDE columns, each of which it shares with its neighbours.
    """
    blocks = mark.shape[1] + WIDTH // STRIDE - 1
    for b in prange(mark.shape[0]):
        block = np.full(blocks, np.uint64(0xCBF29CE484222325))
        for t in range(padded.shape[1]):
            for k in range(blocks):
                row = np.uint64(0)
                for cell in padded[b, t, k * STRIDE : (k + 1) * STRIDE]:
                    row = row * np.uint64(16) + np.uint64(cell * 10.0 + 0.5)  # 0, 1 or a clock's tenths
                block[k] = (block[k] ^ row) * np.uint64(0x100000001B3)
                block[k] ^= block[k] >> np.uint64(29)
        for column in range(mark.shape[1]):
            bits = np.uint64(0)
            for k in range(column, column + WIDTH // STRIDE):
                bits = (bits ^ block[k]) * np.uint64(0x9E3779B97F4A7C15)
                bits ^= bits >> np.uint64(32)
            mark[b, column] = bits


@njit(cache=True)
def _distinct(mark: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first place of each distinct mark, and which of those stands at every place (a hash table)."""
    size = 1
    while size < 2 * len(mark):
        size *= 2
    slot = np.full(size, -1, dtype=np.int64)
    example, place = np.empty(len(mark), dtype=np.int64), np.empty(len(mark), dtype=np.int64)
    count = 0
    for k in range(len(mark)):
        at = np.int64(mark[k] & np.uint64(size - 1))
        while slot[at] >= 0 and mark[example[slot[at]]] != mark[k]:
            at = (at + 1) & (size - 1)
        if slot[at] < 0:
            slot[at] = count
            example[count] = k
            count += 1
        place[k] = slot[at]
    return example[:count].copy(), place


@njit(cache=True, parallel=True)
def _copy(padded: FloatArray, at: IntArray, column: IntArray, patch: FloatArray) -> None:
    for u in prange(len(at)):
        patch[u] = padded[at[u], :, column[u] * STRIDE : column[u] * STRIDE + WIDTH]


def convolved(found: Patches, first: nn.Conv2d, second: nn.Conv2d) -> Tensor:
    """Return the second pool's maps [B, channels * T // 4 * columns], flat in the order of whole images."""
    cells, inside = torch.from_numpy(found.patch)[:, None], torch.from_numpy(found.inside)[:, None, None]
    parts = []
    for k in range(0, len(cells), AT_ONCE):
        some = cells[k : k + AT_ONCE].contiguous(memory_format=torch.channels_last)
        maps = nnf.conv2d(some, first.weight, first.bias, padding=(2, 0))
        maps = nnf.avg_pool2d(torch.relu(maps), 2) * inside[k : k + AT_ONCE]
        maps = nnf.conv2d(maps, second.weight, second.bias, padding=(2, 0))
        parts.append(nnf.avg_pool2d(torch.relu(maps), 2).flatten(1))
    table = torch.cat(parts)
    laid = nnf.embedding(torch.from_numpy(found.place), table)
    return laid.transpose(1, 2).flatten(1)
