"""What distinct parts the images of many observations are made of, found without drawing the images.

A column of the second pool's output depends on 16 columns of the image only: a patch. Neighbouring states, and the
episodes of one jobset, share nearly all of their slots, so few patches are distinct, and fewer of the strips of 6
columns that one column of the first pool depends on. Both are numbered in the order in which they are met, and so is
each place that a patch stands in, for the third layer has weights of its own for every place.
"""

from typing import NamedTuple

import numpy as np
from numba import get_num_threads, njit, prange

from pipeline.core import FloatArray, IntArray, KeyArray, Seen, keys
from pipeline.policies.encodings import CLOCK_STEPS, Layout, draw

STRIDE = 4  # image columns per column of the second pool
MARGIN = 6  # image columns that a patch begins before its own
WIDTH = 16  # image columns of a patch
STRIPS = 6  # strips of a patch: columns of the first pool
STRIP = 6  # image columns of a strip; the next one begins two later
AT_ONCE = 1 << 16  # placed patches looked for at once
OUTSIDE = np.uint64(0xD1B54A32D192ED03)  # stands for a column beyond the image
SPREAD = np.uint64(0x9E3779B97F4A7C15)
MIXING = np.uint64(0xBF58476D1CE4E5B9)


class Sight(NamedTuple):
    """A layout, and the random bits of what its columns can show."""

    capacity: IntArray  # [R]
    left: IntArray  # [R]  first column of each resource
    steps: int  # T
    slots: int  # M
    shown: int  # jobs the backlog can show
    backlog: int  # its columns
    clock: int  # 1 = the last column is one
    width: int  # of the image
    columns: int  # of the second pool's output
    row: KeyArray  # [T]  of a filled cell
    filled: KeyArray  # [T + 1]  of a column filled from the top
    tenth: KeyArray  # [11]  of a clock
    place: KeyArray  # [columns]


def sight_of(layout: Layout) -> Sight:
    """Return the sight of a layout."""
    columns, steps = layout.columns // STRIDE, layout.rows
    bits = keys(0, np.arange(steps + CLOCK_STEPS + 1 + columns), np.zeros(steps + CLOCK_STEPS + 1 + columns))
    row, tenth, place = np.split(bits, [steps, steps + CLOCK_STEPS + 1])
    filled = np.concatenate([np.zeros(1, np.uint64), np.bitwise_xor.accumulate(row)])
    capacity = np.array(layout.capacity, dtype=np.int64)
    backlog, width = layout.backlog_columns, layout.columns
    clock = int(layout.clock)
    return Sight(
        capacity, layout.strips, steps, layout.slots, layout.backlog, backlog, clock, width, columns,
        row, filled, tenth, place,
    )  # fmt: skip


class Patchwork:
    """The distinct strips, patches and placed patches met so far, each numbered in order of appearance."""

    def __init__(self, layout: Layout) -> None:
        self._layout, self._sight = layout, sight_of(layout)
        self._counts = np.zeros(3, dtype=np.int64)
        self._tables = [np.zeros((2, 2), dtype=np.uint64) for _ in range(3)]
        self._cells = np.empty((0, layout.rows, STRIP), dtype=np.float32)
        self._strips = np.empty((0, STRIPS), dtype=np.int32)
        self._placed = np.empty((0, 2), dtype=np.int32)

    @property
    def cells(self) -> FloatArray:
        """Return what each distinct strip shows [S, T, STRIP]."""
        return self._cells[: self._counts[0]]

    @property
    def strips(self) -> IntArray:
        """Return the strips [U, STRIPS] of each distinct patch; -1 = beyond the first pool's output, where zeros are."""
        return self._strips[: self._counts[1]]

    @property
    def placed(self) -> IntArray:
        """Return patch and place [P, 2] of each distinct pair of them."""
        return self._placed[: self._counts[2]]

    def add(self, seen: Seen) -> IntArray:
        """Return which placed patch [D, columns] stands in each column, with those that are new numbered on."""
        where = np.empty((len(seen.cells), self._sight.columns), dtype=np.int32)
        at_once = max(1, AT_ONCE // max(1, self._sight.columns))
        for k in range(0, len(where), at_once):
            self._add(seen.take(slice(k, k + at_once)), where[k : k + at_once])
        return where

    def _add(self, seen: Seen, where: IntArray) -> None:
        _find_all(self._sight, seen.cells, seen.rest, self._tables[2], get_num_threads(), where)
        new = np.flatnonzero((where < 0).any(axis=1))
        if not len(new):
            return
        at_most = int((where < 0).sum())
        strips, patches, placed = (int(count) for count in self._counts)
        for k, (count, more) in enumerate(((strips, STRIPS * at_most), (patches, at_most), (placed, at_most))):
            self._tables[k] = _roomier(self._tables[k], count + more)
        self._strips, self._placed = _longer(self._strips, patches + at_most), _longer(self._placed, placed + at_most)
        example = np.empty((STRIPS * at_most, 2), dtype=np.int64)
        _number(
            self._sight, seen.cells, seen.rest, new, self._tables[0], self._tables[1], self._tables[2], self._counts,
            example, self._strips, self._placed, where,
        )  # fmt: skip
        self._cells = _longer(self._cells, int(self._counts[0]))
        example = example[: self._counts[0] - strips]
        states, at = np.unique(example[:, 0], return_inverse=True)
        _copy(draw(seen.take(states), self._layout), at, example[:, 1], self._cells[strips:])


def _longer(old: IntArray, length: int) -> IntArray:
    """Return an array with room for `length` rows, grown by doubling."""
    if length <= len(old):
        return old
    new = np.empty((max(length, 2 * len(old)), *old.shape[1:]), dtype=old.dtype)
    new[: len(old)] = old
    return new


def _roomier(table: KeyArray, count: int) -> KeyArray:
    """Return a hash table that is at most half full with `count` marks."""
    size = len(table)
    while size < 2 * count:
        size *= 2
    if size == len(table):
        return table
    larger = np.zeros((size, 2), dtype=np.uint64)
    _move(table, larger)
    return larger


@njit(cache=True)
def _move(table: KeyArray, larger: KeyArray) -> None:
    for k in range(len(table)):
        if table[k, 0] != 0:
            _put(larger, table[k, 0], np.int64(table[k, 1]))


@njit(cache=True)
def _get(table: KeyArray, mark: int) -> int:
    """Return the number of a mark, or -1."""
    last = np.uint64(len(table) - 1)
    at = mark & last
    while table[at, 0] != mark:
        if table[at, 0] == 0:
            return -1
        at = (at + np.uint64(1)) & last
    return np.int64(table[at, 1])


@njit(cache=True)
def _put(table: KeyArray, mark: int, number: int) -> None:
    last = np.uint64(len(table) - 1)
    at = mark & last
    while table[at, 0] != 0:
        at = (at + np.uint64(1)) & last
    table[at, 0], table[at, 1] = mark, np.uint64(number)


@njit(cache=True)
def _codes(s: Sight, cells: IntArray, rest: IntArray, i: int, code: KeyArray) -> None:
    """Write 64 bits for each column of an image, equal where the columns are; MARGIN columns lie to the left of it."""
    resources = len(s.capacity)
    code[:] = OUTSIDE
    for r in range(resources):
        units, at = s.capacity[r], MARGIN + s.left[r]
        for u in range(units):
            bits = np.uint64(0)
            for t in range(s.steps):
                if units - cells[i, t * resources + r] > u:
                    bits ^= s.row[t]
            code[at + u] = bits
        for m in range(s.slots):
            at += units
            job = s.steps * resources + m * (1 + resources)
            wanted, bits = np.int64(cells[i, job + 1 + r]), s.filled[np.int64(cells[i, job])]
            for u in range(units):
                code[at + u] = bits if u < wanted else np.uint64(0)
    at, waiting = MARGIN + s.width - s.clock - s.backlog, min(np.int64(rest[i, 0]), s.shown)
    for k in range(s.backlog):
        code[at + k] = s.filled[max(0, -((k - waiting) // s.backlog))]
    if s.clock:
        code[MARGIN + s.width - 1] = s.tenth[min(np.int64(rest[i, 1]), CLOCK_STEPS)]


@njit(cache=True)
def _mixed(bits: int) -> int:
    """Spread 64 bits; 0 stands for an empty place of a hash table."""
    bits = (bits ^ (bits >> np.uint64(30))) * MIXING
    bits ^= bits >> np.uint64(27)
    return bits if bits != 0 else np.uint64(1)


@njit(cache=True)
def _mark(code: KeyArray, begin: int, end: int) -> int:
    """Return 64 bits of some neighbouring columns: of a million, two meet by chance once in 10^7 times."""
    bits = np.uint64(0)
    for k in range(begin, end):
        bits = bits * SPREAD + code[k]
    return bits


@njit(cache=True)
def _marks(s: Sight, code: KeyArray, block: KeyArray, mark: KeyArray) -> None:
    """Write the mark [columns] of each patch, from blocks of STRIDE columns that it shares with its neighbours."""
    for k in range(len(block)):
        block[k] = _mixed(_mark(code, k * STRIDE, (k + 1) * STRIDE))
    for w in range(s.columns):
        mark[w] = _mixed(_mark(block, w, w + WIDTH // STRIDE))


@njit(cache=True, parallel=True)
def _find_all(s: Sight, cells: IntArray, rest: IntArray, table: KeyArray, parts: int, where: IntArray) -> None:
    share = -(-where.shape[0] // parts)
    for part in prange(parts):
        blocks = s.columns + WIDTH // STRIDE - 1
        code, block = np.empty(blocks * STRIDE, np.uint64), np.empty(blocks, np.uint64)
        mark = np.empty(s.columns, np.uint64)
        for i in range(part * share, min((part + 1) * share, where.shape[0])):
            _codes(s, cells, rest, i, code)
            _marks(s, code, block, mark)
            for w in range(s.columns):
                where[i, w] = _get(table, _mixed(mark[w] ^ s.place[w]))


@njit(cache=True)
def _number(
    s: Sight, cells: IntArray, rest: IntArray, rows: IntArray, strips: KeyArray, patches: KeyArray, pairs: KeyArray,
    counts: IntArray, example: IntArray, strips_of: IntArray, placed: IntArray, where: IntArray,
) -> None:  # fmt: skip
    """Number what is new in some rows."""
    known = counts[0]
    blocks = s.columns + WIDTH // STRIDE - 1
    code, block = np.empty(blocks * STRIDE, np.uint64), np.empty(blocks, np.uint64)
    mark = np.empty(s.columns, np.uint64)
    for i in rows:
        _codes(s, cells, rest, i, code)
        _marks(s, code, block, mark)
        for w in range(s.columns):
            if where[i, w] >= 0:
                continue
            pair = _mixed(mark[w] ^ s.place[w])
            where[i, w] = _get(pairs, pair)
            if where[i, w] >= 0:
                continue
            patch = _get(patches, mark[w])
            if patch < 0:
                patch = counts[1]
                counts[1] += 1
                _put(patches, mark[w], patch)
                for k in range(STRIPS):
                    strips_of[patch, k] = _strip(s, code, w, k, i, strips, counts, known, example)
            where[i, w] = counts[2]
            placed[counts[2], 0], placed[counts[2], 1] = patch, w
            counts[2] += 1
            _put(pairs, pair, where[i, w])


@njit(cache=True)
def _strip(
    s: Sight, code: KeyArray, w: int, k: int, i: int, strips: KeyArray, counts: IntArray, known: int, example: IntArray
) -> int:
    """Return the number of a patch's k-th strip; a new one's example is where it was first met."""
    column = 2 * w - 2 + k
    if column < 0 or column >= s.width // 2:
        return -1
    mark = _mixed(_mark(code, w * STRIDE + 2 * k, w * STRIDE + 2 * k + STRIP))
    number = _get(strips, mark)
    if number < 0:
        number = counts[0]
        counts[0] += 1
        _put(strips, mark, number)
        example[number - known, 0], example[number - known, 1] = i, 2 * column - 2
    return number


@njit(cache=True)
def _copy(image: FloatArray, at: IntArray, first: IntArray, cells: FloatArray) -> None:
    """Copy strips from images; beyond them is nothing."""
    for k in range(len(at)):
        for x in range(STRIP):
            inside = first[k] + x >= 0 and first[k] + x < image.shape[2]
            for t in range(image.shape[1]):
                cells[k, t, x] = image[at[k], t, first[k] + x] if inside else 0.0
