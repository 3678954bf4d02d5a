"""Sums over rows of float32 tables, in vector registers.

numba keeps the sum of such a loop in memory, because it cannot rule out that sum and table overlap. The loops emitted
here read rows in a third of the time and write them in a fifth. Tables are [rows, width] with `padded` widths.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from pipeline.core.types import FloatArray, IntArray
from pipeline.simulation.compiled import inlined

WIDEST, WIDE, NARROW = 64, 16, 8  # floats in four registers, in one, or in half of one
INDEX = ir.IntType(64)


def padded(width: int) -> int:
    """Return the smallest sufficient width of whole vectors.

    >>> padded(20)
    24
    """
    return -(-width // NARROW) * NARROW


class Emitter:
    """Emits the inner loop of one block of columns."""

    def __init__(self, context: Any, builder: Any, width: int, at: Any) -> None:
        self.context, self.builder, self.at = context, builder, at
        self.vector = ir.VectorType(ir.FloatType(), width)

    def array(self, kind: Any, value: Any) -> Any:
        """Return an array's structure."""
        return self.context.make_array(kind)(self.context, self.builder, value)

    def place(self, array: Any, row: Any) -> Any:
        """Return the address of this block of a row; row None: the array has a single row."""
        first = self.at
        if row is not None:
            width = self.builder.extract_value(array.shape, 1)
            first = self.builder.add(first, self.builder.mul(row, width))
        return self.builder.bitcast(self.builder.gep(array.data, [first]), self.vector.as_pointer())

    def load(self, array: Any, row: Any = None) -> Any:
        """Return this block of a row."""
        return self.builder.load(self.place(array, row), align=4)

    def store(self, value: Any, array: Any, row: Any = None) -> None:
        """Write this block of a row."""
        self.builder.store(value, self.place(array, row), align=4)

    def number(self, array: Any, place: Any) -> Any:
        """Return one entry of an array; integers as long ones."""
        value = self.builder.load(self.builder.gep(array.data, [place]))
        short = isinstance(value.type, ir.IntType) and value.type.width < INDEX.width
        return self.builder.sext(value, INDEX) if short else value

    def spread(self, number: Any) -> Any:
        """Return a vector that repeats a number."""
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), self.vector.count), [0] * self.vector.count)
        empty = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(empty, number, ir.IntType(32)(0))
        return self.builder.shuffle_vector(first, empty, lanes)

    def register(self, value: Any = None) -> Any:
        """Return storage for a block, with a value or 0."""
        zero = ir.Constant(self.vector, [0.0] * self.vector.count)
        return cgutils.alloca_once_value(self.builder, zero if value is None else value)  # type: ignore[no-untyped-call]


def _emitted(width: int, emit: Callable[..., None]) -> Callable[..., None]:
    """Return a function for kernels with code by `emit`: (table, picked, count, at, first, row); `at`: first column."""

    def block(typing: Any, table: Any, picked: Any, count: Any, at: Any, first: Any, row: Any) -> Any:
        floats = (table, first, row)
        if any(array.dtype != types.float32 or array.layout != "C" for array in floats) or picked.layout != "C":
            raise TypingError(f"expected C-ordered float32 arrays, got {table}, {picked}, {first} and {row}")

        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            kinds, at = signature.args, values[3]
            emitter = Emitter(context, builder, width, at)
            table, picked, first, row = (emitter.array(kinds[k], values[k]) for k in (0, 1, 4, 5))
            emit(emitter, table, picked, values[2], first, row)
            return context.get_dummy_value()

        return types.void(table, picked, types.int64, types.int64, first, row), code

    compiled: Callable[..., None] = intrinsic(block)
    return compiled


def _sum(e: Emitter, table: Any, found: Any, count: Any, _: Any, row: Any) -> None:
    total = e.register()
    with cgutils.for_range(e.builder, count) as loop:
        more = e.load(table, e.number(found, loop.index))
        e.builder.store(e.builder.fadd(e.builder.load(total), more), total)
    e.store(e.builder.load(total), row)


def _add(e: Emitter, table: Any, found: Any, count: Any, _: Any, row: Any) -> None:
    more = e.load(row)
    with cgutils.for_range(e.builder, count) as loop:
        place = e.number(found, loop.index)
        e.store(e.builder.fadd(e.load(table, place), more), table, place)


def _mix(e: Emitter, table: Any, weights: Any, count: Any, first: Any, row: Any) -> None:
    total = e.register(e.load(first))
    with cgutils.for_range(e.builder, count) as loop:
        more = e.builder.fmul(e.load(table, loop.index), e.spread(e.number(weights, loop.index)))
        e.builder.store(e.builder.fadd(e.builder.load(total), more), total)
    e.store(e.builder.load(total), row)


def _outer(e: Emitter, table: Any, weights: Any, count: Any, _: Any, row: Any) -> None:
    more = e.load(row)
    with cgutils.for_range(e.builder, count) as loop:
        share = e.builder.fmul(more, e.spread(e.number(weights, loop.index)))
        e.store(e.builder.fadd(e.load(table, loop.index), share), table, loop.index)


def _all_columns(emit: Callable[..., None]) -> Callable[..., None]:
    """Return a function for kernels that processes all columns of a table: (table, picked, count, first, row).

    It sums four registers at a time, because each addition to a register waits for the previous one.
    """
    widest, wide, narrow = (_emitted(width, emit) for width in (WIDEST, WIDE, NARROW))

    @inlined
    def whole(table: FloatArray, picked: IntArray | FloatArray, count: int, first: FloatArray, row: FloatArray) -> None:
        at = 0
        while at + WIDEST <= table.shape[1]:
            widest(table, picked, count, at, first, row)
            at += WIDEST
        while at + WIDE <= table.shape[1]:
            wide(table, picked, count, at, first, row)
            at += WIDE
        if at < table.shape[1]:
            narrow(table, picked, count, at, first, row)

    return whole


_sum_all, _add_all, _mix_all, _outer_all = (_all_columns(emit) for emit in (_sum, _add, _mix, _outer))
_add_wide, _add_narrow = _emitted(WIDE, _add), _emitted(NARROW, _add)


@inlined
def sum_rows(table: FloatArray, found: IntArray, count: int, row: FloatArray) -> None:
    """Write the sum of the rows `found[:count]` to a row [width]."""
    _sum_all(table, found, count, row, row)


@inlined
def add_to_rows(table: FloatArray, found: IntArray, count: int, row: FloatArray) -> None:
    """Add a row [width] to each of the rows `found[:count]`."""
    _add_all(table, found, count, row, row)


@inlined
def add_mixture(table: FloatArray, weights: FloatArray, count: int, row: FloatArray) -> None:
    """Add the first `count` rows, each times its weight, to a row [width]."""
    _mix_all(table, weights, count, row, row)


@inlined
def add_outer(table: FloatArray, weights: FloatArray, count: int, row: FloatArray) -> None:
    """Add a row [width] to each of the first `count` rows, times the row's weight."""
    _outer_all(table, weights, count, row, row)


@inlined
def add_columns(table: FloatArray, found: IntArray, count: int, begin: int, end: int, more: FloatArray) -> None:
    """Add to the rows like `add_to_rows`, but only in columns [begin, end), which fill whole vectors."""
    at = begin
    while at + WIDE <= end:
        _add_wide(table, found, count, at, more, more)
        at += WIDE
    if at < end:
        _add_narrow(table, found, count, at, more, more)
