"""The columns of an image, identified by 64 random bits instead of drawn cells; neighbours are hashed together.

Equal columns have equal bits, whatever they represent. Different columns have different bits except by chance: the
probability that any two of a million patches collide is below 10^-7.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import get_num_threads, njit

from pipeline.core.types import FloatArray, IntArray, KeyArray, keys
from pipeline.problems.pool.agents.networks.encodings import CLOCK_STEPS, Layout
from pipeline.problems.pool.env.nouns import CompactObservation
from pipeline.simulation.compiled import Span, inlined, threaded

STRIDE = 4  # image columns per column of the second pool
MARGIN = 6  # image columns by which a patch begins before its own columns
BLOCKS = 4  # of STRIDE image columns: the width of a patch
STRIPS = 6  # in a patch: columns of the first pool
STRIP = 6  # image columns of a strip; the next strip begins two columns later
FEW = 64  # observations: fewer are faster on one thread
OUTSIDE = np.uint64(0xD1B54A32D192ED03)  # a column beyond the image
SPREAD = np.uint64(0x9E3779B97F4A7C15)
MIXING = np.uint64(0xBF58476D1CE4E5B9)

Scalar = Any  # in compiled code: numba infers whether it is signed


class HashLayout(NamedTuple):
    """A layout, and random bits for everything its columns can show."""

    capacity: IntArray  # [R]
    left: IntArray  # [R]  first column of each resource
    steps: int  # T
    slots: int  # M
    shown: int  # jobs the backlog can show
    backlog: int  # its columns
    clock: int  # 1 = the last column is a clock
    width: int  # of the image
    columns: int  # of the second pool's output
    row: KeyArray  # [T]  bits of a filled cell, by row
    filled: KeyArray  # [T + 1]  bits of a column filled from the top, by height
    tenth: KeyArray  # [CLOCK_STEPS + 1]  bits of a clock
    place: KeyArray  # [columns]  bits of a place


class PatchTables(NamedTuple):
    """Hash tables from hash to number, and the numbered parts."""

    strips: KeyArray  # [2^n, 2]  hash (0 = nothing) and number
    patches: KeyArray  # [2^n, 2]
    placed: KeyArray  # [2^n, 2]
    counts: IntArray  # [3]  of strips, patches and placed patches
    cells: FloatArray  # [S, T, STRIP]  cells of a strip
    strips_of: IntArray  # [U, STRIPS]  strips of a patch; -1 = beyond the first pool's output: zeros
    patch_of: IntArray  # [P, 2]  patch and place


def hash_layout(layout: Layout) -> HashLayout:
    """Return the layout of an image, with random bits for everything it can show."""
    columns, steps = layout.columns // STRIDE, layout.rows
    number = np.arange(steps + CLOCK_STEPS + 1 + columns)
    row, tenth, place = np.split(keys(0, number, np.zeros_like(number)), [steps, steps + CLOCK_STEPS + 1])
    return HashLayout(
        capacity=np.array(layout.capacity, dtype=np.int64),
        left=layout.strips,
        steps=steps,
        slots=layout.slots,
        shown=layout.backlog,
        backlog=layout.backlog_columns,
        clock=int(layout.clock),
        width=layout.columns,
        columns=columns,
        row=row.copy(),
        filled=np.concatenate([np.zeros(1, dtype=np.uint64), np.bitwise_xor.accumulate(row)]),
        tenth=tenth.copy(),
        place=place.copy(),
    )


@inlined
def get(table: KeyArray, hashed: Scalar) -> Scalar:
    """Return the number of a hash, or -1."""
    last = np.uint64(len(table) - 1)
    at = hashed & last
    while table[at, 0] != hashed:
        if table[at, 0] == 0:
            return -1
        at = (at + np.uint64(1)) & last
    return np.int64(table[at, 1])


@inlined
def put(table: KeyArray, hashed: Scalar, number: Scalar) -> None:
    """Store the number of a new hash; the table must have room."""
    last = np.uint64(len(table) - 1)
    at = hashed & last
    while table[at, 0] != 0:
        at = (at + np.uint64(1)) & last
    table[at, 0], table[at, 1] = hashed, np.uint64(number)


@njit(cache=True)
def move(table: KeyArray, larger: KeyArray) -> None:
    """Copy a hash table into a larger one."""
    for k in range(len(table)):
        if table[k, 0] != 0:
            put(larger, table[k, 0], np.int64(table[k, 1]))


def find(layout: HashLayout, observed: CompactObservation, placed: KeyArray, where: IntArray) -> None:
    """Write the number [D, columns] of each placed patch; -1 if it has none."""
    if len(where) < FEW:
        _find_some(layout, observed.cells, observed.rest, placed, 0, len(where), where)
    else:
        _find_all(layout, observed.cells, observed.rest, placed, get_num_threads(), where)


@inlined
def _height(s: HashLayout, waiting: Scalar, k: int) -> Scalar:
    """Return the number of filled cells in the k-th column of the backlog, which is filled row by row."""
    return max(0, -((k - min(waiting, s.shown)) // s.backlog))


@inlined
def _hash_columns(s: HashLayout, cells: IntArray, rest: IntArray, i: int, code: KeyArray) -> None:
    """Write 64 bits for each column of an image; MARGIN columns lie to the left of it."""
    resources = len(s.capacity)
    for k in range(len(code)):
        code[k] = OUTSIDE
    for r in range(resources):
        units, at = s.capacity[r], MARGIN + s.left[r]
        for k in range(at, at + units):
            code[k] = np.uint64(0)
        for t in range(s.steps):
            for k in range(at, at + units - np.int64(cells[i, t * resources + r])):
                code[k] ^= s.row[t]
        for m in range(s.slots):
            at += units
            job = s.steps * resources + m * (1 + resources)
            wanted, bits = np.int64(cells[i, job + 1 + r]), s.filled[np.int64(cells[i, job])]
            for u in range(units):
                code[at + u] = bits if u < wanted else np.uint64(0)
    at = MARGIN + s.width - s.clock - s.backlog
    for k in range(s.backlog):
        code[at + k] = s.filled[_height(s, np.int64(rest[i, 0]), k)]
    if s.clock > 0:
        since: Scalar = min(np.int64(rest[i, 1]), CLOCK_STEPS)
        code[MARGIN + s.width - 1] = s.tenth[since]


@inlined
def _draw(
    s: HashLayout, cells: IntArray, rest: IntArray, i: int, column: int, drawn: FloatArray, n: int, x: int
) -> None:
    """Draw one column of an image, as `encodings.draw` does, into column x of the n-th strip."""
    resources, r = len(s.capacity), 0
    height: Scalar = 0
    for t in range(s.steps):
        drawn[n, t, x] = 0.0
    waiting = column - (s.width - s.clock - s.backlog)
    while r + 1 < resources and s.left[r + 1] <= column:
        r += 1
    if s.clock > 0 and column == s.width - 1:
        for t in range(s.steps):
            since: Scalar = min(np.int64(rest[i, 1]), CLOCK_STEPS)
            drawn[n, t, x] = since / CLOCK_STEPS
    elif waiting >= 0 and column < s.width:
        height = _height(s, np.int64(rest[i, 0]), waiting)
    elif 0 <= column < s.width:
        unit, slot = (column - s.left[r]) % s.capacity[r], (column - s.left[r]) // s.capacity[r] - 1
        job = s.steps * resources + slot * (1 + resources)
        if slot >= 0:
            height = np.int64(cells[i, job]) if unit < np.int64(cells[i, job + 1 + r]) else 0
        else:
            for t in range(s.steps):
                drawn[n, t, x] = 1.0 if unit < s.capacity[r] - np.int64(cells[i, t * resources + r]) else 0.0
    for t in range(height):
        drawn[n, t, x] = 1.0


@inlined
def _mixed(bits: Scalar) -> Scalar:
    """Mix 64 bits; never return 0, which marks an empty place of a hash table."""
    bits = (bits ^ (bits >> np.uint64(30))) * MIXING
    bits ^= bits >> np.uint64(27)
    return bits if bits != 0 else np.uint64(1)


@inlined
def _hash(code: KeyArray, begin: int, end: int) -> Scalar:
    """Return the hash of some consecutive codes."""
    bits = np.uint64(0)
    for k in range(begin, end):
        bits = bits * SPREAD + code[k]
    return _mixed(bits)


@inlined
def _patch_hashes(s: HashLayout, code: KeyArray, block: KeyArray, hashed: KeyArray) -> None:
    """Write the hash [columns] of each patch, from blocks of STRIDE columns that it shares with its neighbours."""
    for k in range(len(block)):
        block[k] = _hash(code, k * STRIDE, (k + 1) * STRIDE)
    for w in range(s.columns):
        hashed[w] = _hash(block, w, w + BLOCKS)


@threaded(lambda s, cells, rest, placed, parts, where: parts)
def _find_all(
    span: Span, s: HashLayout, cells: IntArray, rest: IntArray, placed: KeyArray, parts: int, where: IntArray
) -> None:
    share = -(-where.shape[0] // parts)
    for part in range(*span):
        _find_some(s, cells, rest, placed, part * share, min((part + 1) * share, where.shape[0]), where)


@njit(cache=True)
def _find_some(
    s: HashLayout, cells: IntArray, rest: IntArray, placed: KeyArray, begin: int, end: int, where: IntArray
) -> None:
    blocks = s.columns + BLOCKS - 1
    code, block, hashed = np.empty(blocks * STRIDE, np.uint64), np.empty(blocks, np.uint64), np.empty_like(s.place)
    for i in range(begin, end):
        _hash_columns(s, cells, rest, i, code)
        _patch_hashes(s, code, block, hashed)
        for w in range(s.columns):
            where[i, w] = get(placed, _mixed(hashed[w] ^ s.place[w]))


@njit(cache=True)
def number(s: HashLayout, cells: IntArray, rest: IntArray, rows: IntArray, found: PatchTables, where: IntArray) -> None:
    """Number the new parts of some rows; the tables must have room."""
    blocks = s.columns + BLOCKS - 1
    code, block, hashed = np.empty(blocks * STRIDE, np.uint64), np.empty(blocks, np.uint64), np.empty_like(s.place)
    counts = found.counts
    for i in rows:
        _hash_columns(s, cells, rest, i, code)
        _patch_hashes(s, code, block, hashed)
        for w in range(s.columns):
            if where[i, w] >= 0:
                continue
            placed = _mixed(hashed[w] ^ s.place[w])
            where[i, w] = get(found.placed, placed)
            if where[i, w] >= 0:
                continue
            where[i, w] = counts[2]
            put(found.placed, placed, counts[2])
            patch = get(found.patches, hashed[w])
            if patch < 0:
                patch = counts[1]
                put(found.patches, hashed[w], patch)
                for k in range(STRIPS):
                    found.strips_of[patch, k] = _strip(s, cells, rest, i, code, w, k, found)
                counts[1] += 1
            found.patch_of[counts[2], 0], found.patch_of[counts[2], 1] = patch, w
            counts[2] += 1


@inlined
def _strip(
    s: HashLayout, cells: IntArray, rest: IntArray, i: int, code: KeyArray, w: int, k: int, found: PatchTables
) -> Scalar:
    """Return the number of a patch's k-th strip; if the strip is new, draw it."""
    first = w * STRIDE - MARGIN + 2 * k  # its first column
    if first + 2 < 0 or (first + 2) // 2 >= s.width // 2:
        return -1
    hashed = _hash(code, w * STRIDE + 2 * k, w * STRIDE + 2 * k + STRIP)
    strip = get(found.strips, hashed)
    if strip < 0:
        strip = found.counts[0]
        put(found.strips, hashed, strip)
        for x in range(STRIP):
            _draw(s, cells, rest, i, first + x, found.cells, strip, x)
        found.counts[0] += 1
    return strip
