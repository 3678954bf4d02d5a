"""The job lines of a log in the Standard Workload Format, read a chunk at a time.

A chunk of plain numbers goes through pandas' parser; any other one line by line, which knows comments, short lines, and
what to say of a line that is no job. Both give the same numbers.
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

from pipeline.core import FloatArray
from pipeline.errors import UserError

FIELDS = 18
MOST = 1e12  # of any field: more is junk, and could overflow sums
CHUNK = 1 << 24  # bytes: some 200,000 lines
LONGEST_LINE = 1 << 20  # bytes: a file without line ends is no log, and need not be held whole
SIZE = re.compile(rb"\s*;\s*(MaxProcs|MaxNodes)\s*:\s*(\d+)")  # MaxNodes may carry words after its number


class Lines(NamedTuple):
    """Some job lines as they stand."""

    fields: FloatArray  # [J, 18]
    short: int  # lines of 17 fields
    sizes: dict[str, int]  # what the header's lines among them say of the machine


def job_lines(content: BinaryIO, path: Path, chunk: int = CHUNK) -> Iterator[Lines]:
    """Yield the job lines of a log in order.

    Raises:
        UserError: a line is not a job's; it is named.
    """
    first = 1
    while text := content.read(chunk):
        text += content.readline(LONGEST_LINE)
        fields = _plain_numbers(text)
        yield _line_by_line(text, first, path) if fields is None else Lines(fields, 0, {})
        first += text.count(b"\n")


def _plain_numbers(text: bytes) -> FloatArray | None:
    """Return the fields of lines that are all 18 numbers; None where there may be anything else."""
    if not text.isascii() or b";" in text or b"\0" in text or text.count(b"\r") != text.count(b"\r\n"):
        return None
    try:
        frame = pd.read_csv(
            BytesIO(text),
            sep=r"\s+",
            header=None,
            quoting=csv.QUOTE_NONE,
            keep_default_na=False,
            low_memory=False,
        )
    except ValueError:
        return None
    if frame.shape[1] != FIELDS or not all(kind.kind in "iuf" for kind in frame.dtypes):
        return None
    fields = frame.to_numpy(dtype=np.float64)
    return fields if (np.abs(fields) < MOST).all() else None  # nan is a line of 17 fields, or junk


def _line_by_line(text: bytes, first: int, path: Path) -> Lines:
    values, sizes, short = array("d"), dict[str, int](), 0
    for number, line in enumerate(text.split(b"\n"), first):
        fields = line.split()
        if not fields:
            continue
        if fields[0].startswith(b";"):
            if said := SIZE.match(line):
                sizes.setdefault(said[1].decode(), int(said[2]))
            continue
        if len(fields) == FIELDS - 1:
            fields.append(b"-1")
            short += 1
        values.extend(_numbers(fields, f"{path}:{number}"))
    return Lines(np.frombuffer(values).reshape(-1, FIELDS), short, sizes)


def _numbers(fields: list[bytes], where: str) -> "array[float]":
    try:
        row = array("d", map(float, fields))
    except ValueError:
        row = array("d")
    if len(row) != FIELDS or any(b"_" in field for field in fields):  # Python reads 1_000 as a number
        raise UserError(f"{where}: expected {FIELDS} numbers, found {_found(fields)}")
    for place, value in enumerate(row, 1):
        if not abs(value) < MOST:  # so that nan is wrong, too
            raise UserError(f"{where}: expected {FIELDS} numbers below {MOST:g}, found {value:g} as field {place}")
    return row


def _found(fields: list[bytes]) -> str:
    if any(byte == 0 or byte > 127 for field in fields for byte in field):
        return "bytes that are not plain text (a binary file, or another encoding such as UTF-16)"
    if len(fields) != FIELDS:
        return str(len(fields))
    place, junk = next((k, field) for k, field in enumerate(fields, 1) if not _is_number(field))
    return f"'{junk.decode()[:40]}' as field {place}"


def _is_number(field: bytes) -> bool:
    try:
        return b"_" not in field and bool(np.isfinite(float(field)))
    except ValueError:
        return False
