"""What distinct parts the images of many observations are made of, found without drawing the images.

A column of the second pool's output depends on 16 columns of the image only: a patch. Neighbouring states, and the
episodes of one jobset, share nearly all of their slots, so few patches are distinct, and fewer of the strips of 6
columns that one column of the first pool depends on. Both are numbered in the order in which they are met, and so is
each place that a patch stands in, for the third layer has weights of its own for every place.
"""

from typing import TypeVar

import numpy as np

from pipeline.core import FloatArray, IntArray, KeyArray
from pipeline.problems.pool.networks.encodings import Layout
from pipeline.problems.pool.networks.hashes import STRIP, STRIPS, PatchTables, find, hash_layout, number
from pipeline.problems.pool.networks.hashing import move
from pipeline.problems.pool.nouns import CompactObservation

AT_ONCE = 1 << 14  # places of patches looked for together; tables grow as if all were new

Array = TypeVar("Array", IntArray, FloatArray)


class Patchwork:
    """The distinct strips, patches and placed patches met so far, each numbered in order of appearance."""

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
        """Return what each distinct strip shows [S, T, STRIP]."""
        return self._found.cells[: self._found.counts[0]]

    @property
    def strips(self) -> IntArray:
        """Return the strips [U, STRIPS] of each distinct patch; -1 = beyond the first pool's output."""
        return self._found.strips_of[: self._found.counts[1]]

    @property
    def placed(self) -> IntArray:
        """Return patch and place [P, 2] of each distinct pair of them."""
        return self._found.patch_of[: self._found.counts[2]]

    def add(self, observed: CompactObservation) -> IntArray:
        """Return which placed patch [D, columns] stands in each place of the images; new ones are numbered on."""
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
            self._found = _grown(self._found, int(new.sum()))
            number(self._layout, observed.cells, observed.rest, rows, self._found, where)


def _grown(found: PatchTables, more: int) -> PatchTables:
    """Return the same with room for so many more placed patches, each of a new patch of new strips."""
    strips, patches, placed = (int(count) for count in found.counts)
    return PatchTables(
        _larger(found.strips, strips + STRIPS * more),
        _larger(found.patches, patches + more),
        _larger(found.placed, placed + more),
        found.counts,
        longer(found.cells, strips, STRIPS * more),
        longer(found.strips_of, patches, more),
        longer(found.patch_of, placed, more),
    )


def longer(old: Array, used: int, more: int) -> Array:
    """Return an array with room for more rows than those in use, grown by doubling.

    Memory that was never written to costs nothing.
    """
    if used + more <= len(old):
        return old
    new = np.empty((max(used + more, 2 * len(old)), *old.shape[1:]), dtype=old.dtype)
    new[:used] = old[:used]
    return new


def _larger(table: KeyArray, count: int) -> KeyArray:
    """Return a hash table that is at most half full with `count` hashes."""
    size = len(table)
    while size < 2 * count:
        size *= 2
    if size == len(table):
        return table
    larger = np.zeros((size, 2), dtype=np.uint64)
    move(table, larger)
    return larger
