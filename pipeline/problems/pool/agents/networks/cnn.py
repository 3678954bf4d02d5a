"""DeepRM2's network (Table 1, 326,859 weights), with convolutions computed once for each distinct part of the images.

A column of the second pool's output depends on only 16 columns of the image: a patch. Neighbouring states, and the
episodes of one jobset, share nearly all of their slots, so few patches are distinct, and even fewer strips: the 6
columns that determine one column of the first pool. Strips, patches and placed patches (a patch and its place in the
image) are numbered in order of appearance. Places count because the third layer has separate weights for each place.
"""

import copy
from typing import TypeVar

import numpy as np
import torch
import torch.nn.functional as nnf
from numba import get_num_threads
from torch import Tensor, nn

from pipeline.core.types import FloatArray, IntArray, KeyArray
from pipeline.problems.pool.agents.networks.convolutions import (
    TAPS,
    PoolPatches,
    Sum,
    add_up,
    pool,
    share,
    strip_rows,
    weigh,
)
from pipeline.problems.pool.agents.networks.encodings import Layout, paint
from pipeline.problems.pool.agents.networks.hashes import STRIP, STRIPS, PatchTables, find, hash_layout, move, number
from pipeline.problems.pool.agents.networks.network import Forward, Network
from pipeline.problems.pool.agents.networks.rows import padded
from pipeline.problems.pool.env.nouns import CompactObservation

AT_ONCE = 1 << 14  # places looked up at once; tables grow as if all patches were new

Array = TypeVar("Array", IntArray, FloatArray)


class Patchwork:
    """The distinct strips, patches and placed patches so far, each numbered in order of appearance."""

    def __init__(self, layout: Layout) -> None:
        self._layout = hash_layout(layout)
        self._found = PatchTables(
            strips=np.zeros((2, 2), dtype=np.uint64),
            patches=np.zeros((2, 2), dtype=np.uint64),
            placed=np.zeros((2, 2), dtype=np.uint64),
            counts=np.zeros(3, dtype=np.int64),
            cells=np.empty((0, layout.rows, STRIP), dtype=np.float32),
            strips_of=np.empty((0, STRIPS), dtype=np.int32),
            patch_of=np.empty((0, 2), dtype=np.int32),
        )

    @property
    def cells(self) -> FloatArray:
        """Return the cells [S, T, STRIP] of each distinct strip."""
        return self._found.cells[: self._found.counts[0]]

    @property
    def strips(self) -> IntArray:
        """Return the strips [U, STRIPS] of each distinct patch; -1 = beyond the first pool's output."""
        return self._found.strips_of[: self._found.counts[1]]

    @property
    def placed(self) -> IntArray:
        """Return the patch and place [P, 2] of each distinct placed patch."""
        return self._found.patch_of[: self._found.counts[2]]

    def add(self, observed: CompactObservation) -> IntArray:
        """Return the number [D, columns] of the placed patch at each place; new ones get the next numbers."""
        where = np.empty((len(observed.cells), self._layout.columns), dtype=np.int32)
        at_once = max(1, AT_ONCE // max(1, self._layout.columns))
        for k in range(0, len(where), at_once):
            self._add(observed.take(slice(k, k + at_once)), where[k : k + at_once])
        return where

    def _add(self, observed: CompactObservation, where: IntArray) -> None:
        find(self._layout, observed, self._found.placed, where)
        new = where < 0
        rows = np.flatnonzero(new.any(axis=1))
        if len(rows):
            self._reserve(int(new.sum()))
            number(self._layout, observed.cells, observed.rest, rows, self._found, where)

    def _reserve(self, more: int) -> None:
        """Make room for more placed patches, each of a new patch of new strips."""
        found = self._found
        strips, patches, placed = (int(count) for count in found.counts)
        self._found = PatchTables(
            _larger(found.strips, strips + STRIPS * more),
            _larger(found.patches, patches + more),
            _larger(found.placed, placed + more),
            found.counts,
            with_room(found.cells, strips, STRIPS * more),
            with_room(found.strips_of, patches, more),
            with_room(found.patch_of, placed, more),
        )


def with_room(old: Array, used: int, more: int) -> Array:
    """Return an array with room for `more` rows after the used ones; it doubles, because untouched memory is free."""
    if used + more <= len(old):
        return old
    new = np.empty((max(used + more, 2 * len(old)), *old.shape[1:]), dtype=old.dtype)
    new[:used] = old[:used]
    return new


def _larger(table: KeyArray, count: int) -> KeyArray:
    """Return a hash table at most half full with `count` hashes."""
    size = len(table)
    while size < 2 * count:
        size *= 2
    if size == len(table):
        return table
    larger = np.zeros((size, 2), dtype=np.uint64)
    move(table, larger)
    return larger


CHUNK = 65536 * 56  # patch places in the observations of one forward pass
STRIPS_AT_ONCE = 4096  # convolved together in training
PLAY_STRIPS = 64  # convolved together in play: constant, so that a row does not depend on its batch size
MAX_PLACED = 1 << 18  # placed patches cached in play; 75 MB for DeepRM2


class Cnn(Network):
    """Two convolutions with average pools, then two dense layers."""

    def __init__(self, layout: Layout, channels: tuple[int, int], hidden: int) -> None:
        super().__init__()
        self.layout = layout
        self.columns = layout.columns // 4
        self.chunk = max(1, CHUNK // max(1, self.columns))
        self.first = nn.Conv2d(1, channels[0], kernel_size=5, padding=2)
        self.second = nn.Conv2d(channels[0], channels[1], kernel_size=5, padding=2)
        self.third = nn.Linear(channels[1] * (layout.rows // 4) * self.columns, hidden)
        self.last = nn.Linear(hidden, layout.slots + 1)

    def forward(self, observed: CompactObservation) -> Tensor:
        """Return the logits [D, A]."""
        if self.by_torch:
            return self.on_image(paint(observed, self.layout, self.device))
        patchwork = Patchwork(self.layout)
        where = patchwork.add(observed)
        cells = torch.split(torch.from_numpy(rounded_up(patchwork.cells)), STRIPS_AT_ONCE)
        rows = torch.cat([strip_rows(some, self.first, self.second) for some in cells])
        maps = PoolPatches.apply(rows, self.second.bias, patchwork.strips)  # type: ignore[no-untyped-call]
        sums = Sum.apply(maps, self.by_place(), patchwork.placed, where)  # type: ignore[no-untyped-call]
        hidden = sums[:, : len(self.third.bias)] + self.third.bias
        logits: Tensor = self.last(torch.tanh(hidden))
        return logits

    def frozen(self) -> Forward[CompactObservation]:
        """Return a snapshot of the network that caches what it computes."""
        return super().frozen() if self.by_torch else FrozenCnn(self)

    def by_place(self) -> Tensor:
        """Return the third layer's weights [columns, C, padded(H)] by place of the patch."""
        channels, units = self.second.out_channels * (self.layout.rows // 4), len(self.third.bias)
        weight = self.third.weight.view(units, channels, self.columns).permute(2, 1, 0)
        return nnf.pad(weight, (0, padded(units) - units)).contiguous()

    def on_image(self, image: Tensor) -> Tensor:
        """Return the same logits, computed by convolutions of whole drawn images [D, T, columns]."""
        maps = nnf.avg_pool2d(torch.relu(self.first(image[:, None])), 2)
        maps = nnf.avg_pool2d(torch.relu(self.second(maps)), 2)
        logits: Tensor = self.last(torch.tanh(self.third(maps.flatten(1))))
        return logits


def rounded_up(cells: FloatArray) -> FloatArray:
    """Return strips, padded with empty ones to a number of three significant bits.

    oneDNN caches a primitive for each size, which would be gigabytes after a thousand updates.
    """
    step = min(STRIPS_AT_ONCE, 1 << max(0, len(cells).bit_length() - 3))
    return np.concatenate([cells, np.zeros((-len(cells) % step, *cells.shape[1:]), dtype=cells.dtype)])


class FrozenCnn:
    """A snapshot of a network with a cache of the values of all parts seen so far.

    The values of a part depend only on that part, so clearing the cache changes no result.
    """

    def __init__(self, network: Cnn) -> None:
        self._network = copy.deepcopy(network).requires_grad_(False)
        self._weight = self._network.by_place().numpy()  # [columns, C, padded(H)]
        self._forget()

    def _forget(self) -> None:
        network = self._network
        self._patchwork = Patchwork(network.layout)
        self._rows = np.empty((0, TAPS, network.second.out_channels * (network.layout.rows // 2)), dtype=np.float32)
        self._maps = np.empty((0, self._weight.shape[1]), dtype=np.float32)
        self._shares = np.empty((0, self._weight.shape[2]), dtype=np.float32)

    def __call__(self, observed: CompactObservation) -> FloatArray:
        """Return the logits [D, A]."""
        at_once = max(1, MAX_PLACED // 4 // max(1, self._network.columns))
        parts = [self._forward(observed.take(slice(k, k + at_once))) for k in range(0, len(observed.cells), at_once)]
        return np.concatenate(parts)

    def _forward(self, observed: CompactObservation) -> FloatArray:
        if len(self._patchwork.placed) > MAX_PLACED:
            self._forget()
        known = tuple(len(part) for part in (self._patchwork.cells, self._patchwork.strips, self._patchwork.placed))
        where = self._patchwork.add(observed)
        self._learn(*known)
        hidden = np.empty((len(where), self._weight.shape[2]), dtype=np.float32)
        add_up(self._shares, where, get_num_threads(), hidden)
        bias = self._network.third.bias
        values = torch.tanh(torch.from_numpy(hidden)[:, : len(bias)] + bias).numpy()
        logits = np.empty((len(where), len(self._network.last.bias)), dtype=np.float32)
        weigh(values, self._network.last.weight.numpy(), self._network.last.bias.numpy(), logits)
        return logits

    def _learn(self, strips: int, patches: int, placed: int) -> None:
        """Compute the values of parts that were numbered after these counts."""
        network, parts = self._network, self._patchwork
        self._rows = with_room(self._rows, strips, len(parts.cells) - strips)
        self._maps = with_room(self._maps, patches, len(parts.strips) - patches)
        self._shares = with_room(self._shares, placed, len(parts.placed) - placed)
        for k in range(strips, len(parts.cells), PLAY_STRIPS):
            some = parts.cells[k : k + PLAY_STRIPS]
            cells = np.zeros((PLAY_STRIPS, *some.shape[1:]), dtype=np.float32)
            cells[: len(some)] = some
            rows = strip_rows(torch.from_numpy(cells), network.first, network.second)
            self._rows[k : k + len(some)] = rows[: len(some)].numpy()
        bias: Tensor = network.second.get_parameter("bias")
        pool(self._rows, bias.numpy(), parts.strips[patches:], self._maps[patches : len(parts.strips)])
        share(self._maps, self._weight, parts.placed[placed:], self._shares[placed : len(parts.placed)])
