"""Logs with fields between commas, read in chunks; every row has its line number.

Such logs have no quotes, so that a line is a row. Empty lines are skipped.
"""

import csv
import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa
from pandera.errors import SchemaErrors

from pipeline.core.storage.files import unpacked
from pipeline.core.types import IntArray
from pipeline.errors import UserError
from pipeline.progress import ProgressCallback, no_progress

COMMA, LINE_END = b",\n"
MARK = b"\xef\xbb\xbf"  # byte order mark of UTF-8
CHUNK = 1 << 24  # bytes: some 200,000 lines
LONGEST_LINE = 1 << 20  # bytes, so that a file without line ends is not read whole
NUMBER = "a number"
MOST, MOST_AMOUNT = 1e15, 1e9  # of a time and of an amount: more is invalid, and could overflow sums


def number(most: float, nullable: bool = True) -> pa.Column:
    """Return a column of numbers; readers decide about rows in which one is missing."""
    below = pa.Check.in_range(-most, most, error=f"{NUMBER} below {most:g}")
    return pa.Column("float64", below, nullable=nullable, coerce=True)


def schema(
    name: str, *, times: str = "", amounts: str = "", words: str = "", nullable: bool = True
) -> pa.DataFrameSchema:
    """Return the schema of the space-separated columns; a log that violates it is refused."""
    columns = {column: number(MOST, nullable) for column in times.split()}
    columns |= {column: number(MOST_AMOUNT, nullable) for column in amounts.split()}
    columns |= {column: pa.Column("str", nullable=True, coerce=True) for column in words.split()}
    return pa.DataFrameSchema(columns, name=name, strict=True)


class Layout(NamedTuple):
    """The columns of a log."""

    schema: pa.DataFrameSchema  # of the columns that are read
    names: tuple[str, ...] = ()  # of all columns, in order; () = in the first line
    optional: tuple[str, ...] = ()  # columns of words that a file may lack; then they are empty


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, Callable[[], float]]]:
    """Open a log, plain or .gz: its content, and the percentage read so far; errors while reading become one line."""
    try:
        with path.open("rb") as file:
            size = max(os.fstat(file.fileno()).st_size, 1)
            with unpacked(file, path) as content:
                yield content, lambda: min(100 * file.tell() / size, 100)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: its name ends in .gz, but it is not a whole gzip file ({error})") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error


def chunks(content: BinaryIO) -> Iterator[bytes]:
    """Yield the whole lines of a log, without a byte order mark, in parts of some CHUNK bytes."""
    mark = MARK
    while text := content.read(CHUNK):
        yield (text + content.readline(LONGEST_LINE)).removeprefix(mark)
        mark = b""


def rows(path: Path, layout: Layout, on_progress: ProgressCallback = no_progress) -> Iterator[pd.DataFrame]:
    """Yield the rows of a log in order, checked by their schema and indexed by their lines, or raise a UserError."""
    names, first, seen = layout.names, 1, 0
    with opened(path) as (content, percent):
        for chunk in chunks(content):
            text = _plain(chunk, first, path)
            if not names:
                header, _, text = text.partition(b"\n")
                names, first = _named(header.decode(), layout, path), first + 1
            lines, filled = text.count(b"\n"), _filled(text, first, names, path)
            if len(filled):
                seen += len(filled)
                yield _checked(_parsed(text, names, layout), first + filled, layout, path)
                on_progress(percent(), f"{seen:,} rows")
            first += lines


def _plain(text: bytes, first: int, path: Path) -> bytes:
    """Return text with LF line ends, and refuse other content."""
    if b"\0" in text:
        raise UserError(f"{path}: expected lines of text, found zero bytes (an archive to unpack, or UTF-16)")
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        line = first + text.count(b"\n", 0, error.start)
        raise UserError(f"{path}:{line}: expected UTF-8 text, found byte 0x{text[error.start]:02x}") from error
    return text if text.endswith(b"\n") else text + b"\n"


def _named(header: str, layout: Layout, path: Path) -> tuple[str, ...]:
    """Return the columns in the first line."""
    names = tuple(name.strip() for name in header.split(","))
    wanted = list(layout.schema.columns)
    if not set(wanted) - set(layout.optional) <= set(names):
        raise UserError(f"{path}:1: expected the columns {', '.join(wanted)}, found {', '.join(names)[:200]}")
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise UserError(f"{path}:1: expected each column once, found {', '.join(twice)} twice")
    return names


def _filled(text: bytes, first: int, names: tuple[str, ...], path: Path) -> IntArray:
    """Return which lines are rows, from 0; all must have a field for each column."""
    codes = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(codes == LINE_END)
    lengths = np.diff(ends, prepend=-1) - 1
    fields = np.diff(np.searchsorted(np.flatnonzero(codes == COMMA), ends), prepend=0) + 1
    wrong = np.flatnonzero((lengths > 0) & (fields != len(names)))
    if len(wrong):
        expected = f"{len(names)} columns ({', '.join(name or '-' for name in names)})"
        raise UserError(f"{path}:{first + wrong[0]}: expected {expected}, found {fields[wrong[0]]}")
    return np.flatnonzero(lengths > 0)


def _parsed(text: bytes, names: tuple[str, ...], layout: Layout) -> pd.DataFrame:
    places = {names.index(name): name for name in layout.schema.columns if name in names}
    words = {name: "str" for name, column in layout.schema.columns.items() if str(column.dtype) == "str"}
    found = pd.read_csv(
        BytesIO(text),
        header=None,
        names=[places[place] for place in sorted(places)],
        usecols=sorted(places),
        dtype=words,
        quoting=csv.QUOTE_NONE,
        keep_default_na=False,
        na_values=[""],
        low_memory=False,
    )
    return found.reindex(columns=[*found.columns, *(name for name in layout.optional if name not in names)])


def _checked(frame: pd.DataFrame, lines: IntArray, layout: Layout, path: Path) -> pd.DataFrame:
    """Return rows of numbers and words, or refuse the first invalid one."""
    frame.index = pd.Index(lines)
    kinds = {name: str(column.dtype) for name, column in layout.schema.columns.items()}
    numbers = [name for name in kinds if kinds[name] == "float64" and frame[name].dtype.kind not in "iuf"]
    # Some values are numbers to Python and not to pandas, such as 1_000 or True.
    read = {name: pd.to_numeric(frame[name].astype("str"), errors="coerce") for name in numbers}
    texts = frame[numbers].where(pd.DataFrame(read, index=frame.index).isna())
    cases = texts.melt(ignore_index=False, var_name="column", value_name="found").dropna().rename_axis("index")
    if len(cases):
        raise _refused(cases.reset_index().assign(check=NUMBER), path)
    try:
        return layout.schema.validate(frame.assign(**read), lazy=True)
    except SchemaErrors as error:
        raise _refused(error.failure_cases.rename(columns={"failure_case": "found"}), path) from error


def _refused(cases: pd.DataFrame, path: Path) -> UserError:
    """Return the error of invalid rows: line and column of the first, expected and found value."""
    cases = cases.sort_values("index", kind="stable")
    first, more = cases.iloc[0], cases["index"].nunique() - 1
    expected = first["check"] if str(first["check"]).startswith(NUMBER) else NUMBER
    found = "nothing" if pd.isna(first["found"]) else f"'{str(first['found'])[:40]}'"
    others = f" (and {more:,} more rows of this part)" if more else ""
    return UserError(f"{path}:{first['index']}: expected {expected} as {first['column']}, found {found}{others}")
