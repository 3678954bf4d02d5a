"""The job lines of a log in the Standard Workload Format, read a chunk at a time.

pandas parses chunks of plain numbers. Other chunks are parsed line by line, with comments, short lines, and errors for
lines that are not jobs. Both ways give the same numbers.
"""

import csv
import re
from array import array
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pandas as pd

from pipeline.core.types import FloatArray, IntArray
from pipeline.errors import UserError

MARK = b"\xef\xbb\xbf"  # byte order mark of UTF-8
FIELDS = 18
MOST = 1e12  # of any field: more is junk, and could overflow sums
CHUNK = 1 << 24  # bytes: some 200,000 lines
LONGEST_LINE = 1 << 20  # bytes, so that a file without line ends is not read whole
SIZE = re.compile(rb"\s*;\s*(Max\s*Procs|Max\s*Nodes)\s*:(.*)", re.IGNORECASE)
WHOLE = re.compile(r"([1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.0*)?(?:\s+\D.*)?")  # words may follow
UNKNOWN = ("", "0", "-1", "unknown", "n/a", "none", "?")
TIMES = (2, 3, 4, 9)  # fields


class Lines(NamedTuple):
    """Some job lines, unchanged."""

    fields: FloatArray  # [J, 18]
    number: IntArray  # [J]  of each line in the file, from 1
    short: IntArray  # numbers of the lines that have 17 fields
    sizes: dict[str, int]  # of the machine, by the header up to these lines


def chunks(content: BinaryIO) -> Iterator[bytes]:
    """Yield the whole lines of a log, without a byte order mark, in parts of some CHUNK bytes."""
    mark = MARK
    while text := content.read(CHUNK):
        yield (text + content.readline(LONGEST_LINE)).removeprefix(mark)
        mark = b""


def job_lines(content: BinaryIO, path: Path) -> Iterator[Lines]:
    """Yield the job lines of a log in order; a UserError names a line that is not a job."""
    first, sizes = 1, dict[str, int]()
    for text in chunks(content):
        fields = _plain_numbers(text)
        if fields is None:
            yield _line_by_line(text, first, path, sizes)
        else:
            yield Lines(fields, np.arange(first, first + len(fields)), np.zeros(0, dtype=np.int64), sizes)
        first += text.count(b"\n")


def _plain_numbers(text: bytes) -> FloatArray | None:
    """Return the fields of lines of 18 numbers; None if there may be any other line, or an empty one."""
    if not text.isascii() or b";" in text or b"\0" in text or text.count(b"\r") != text.count(b"\r\n"):
        return None
    try:
        frame = pd.read_csv(
            BytesIO(text), sep=r"\s+", header=None, quoting=csv.QUOTE_NONE, keep_default_na=False, low_memory=False
        )
    except ValueError:
        return None
    lines = text.count(b"\n") + (not text.endswith(b"\n"))
    if frame.shape != (lines, FIELDS) or not all(kind.kind in "iuf" for kind in frame.dtypes):
        return None
    fields = frame.to_numpy(dtype=np.float64)
    return fields if (np.abs(fields) < MOST).all() else None  # nan is a line of 17 fields, or junk


def _line_by_line(text: bytes, first: int, path: Path, sizes: dict[str, int]) -> Lines:
    values, numbers, short = array("d"), list[int](), list[int]()
    for number, line in enumerate(text.split(b"\n"), first):
        fields = line.split()
        if not fields:
            continue
        if b"\r" in line.rstrip():
            wanted = "line ends (LF or CRLF), found only CR: convert it, as tr '\\r' '\\n' does"
            raise UserError(f"{path}:{number}: expected {wanted}")
        if fields[0].startswith(b";"):
            if said := SIZE.match(line):
                _enter(said, sizes, f"{path}:{number}")
            continue
        if len(fields) == FIELDS - 1:
            fields.append(b"-1")
            short.append(number)
        values.extend(_numbers(fields, f"{path}:{number}"))
        numbers.append(number)
    found = np.frombuffer(values).reshape(-1, FIELDS)
    return Lines(found, np.array(numbers, dtype=np.int64), np.array(short, dtype=np.int64), sizes)


def _enter(said: re.Match[bytes], sizes: dict[str, int], where: str) -> None:
    """Enter a size of the machine from a header; -1, 0 and some words mean unknown."""
    word = "MaxProcs" if b"p" in said[1].lower() else "MaxNodes"
    value = said[2].decode(errors="replace").strip()
    if value.lower() in UNKNOWN:
        return
    number = WHOLE.fullmatch(value)
    size = int(number[1].replace(",", "")) if number else 0
    if not 0 < size < MOST:
        raise UserError(f"{where}: {word}: expected a whole number such as 1024, found '{value[:40]}'")
    if sizes.setdefault(word, size) != size:
        raise UserError(f"{where}: {word}: expected {sizes[word]}, as an earlier line says, found {size}")
    if sizes.get("MaxProcs", MOST) < sizes.get("MaxNodes", 0):
        wanted = f"at least as many MaxProcs ({sizes['MaxProcs']}) as MaxNodes ({sizes['MaxNodes']})"
        raise UserError(f"{where}: expected {wanted}: correct the header")


def _numbers(fields: list[bytes], where: str) -> "array[float]":
    try:
        row = array("d", map(float, fields))
    except ValueError:
        row = array("d")
    if len(row) != FIELDS or any(b"_" in field for field in fields):  # Python reads 1_000 as a number
        raise UserError(f"{where}: expected {FIELDS} numbers, found {_found(fields)}")
    for place, value in enumerate(row, 1):
        if not abs(value) < MOST:  # nan is wrong as well
            hint = ", a time in seconds: milliseconds?" if place in TIMES and value >= MOST else ""
            raise UserError(
                f"{where}: expected {FIELDS} numbers below {MOST:g}, found {value:g} as field {place}{hint}"
            )
    return row


def _found(fields: list[bytes]) -> str:
    if any(byte == 0 or byte > 127 for field in fields for byte in field):
        return "bytes that are not plain text (a binary file, or another encoding such as UTF-16)"
    if len(fields) != FIELDS:
        return str(len(fields))
    place, junk = next((k, field) for k, field in enumerate(fields, 1) if not is_number(field))
    return f"'{junk.decode()[:40]}' as field {place}"


def is_number(field: bytes | str) -> bool:
    """Return whether a field is a finite number, without underscores."""
    try:
        return bool(np.isfinite(float(field))) and "_" not in str(field)
    except ValueError:
        return False
