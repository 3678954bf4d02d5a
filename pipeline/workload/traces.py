"""Logs of real clusters, read from the formats they are published in.

A Standard Workload Format log (Parallel Workloads Archive, version 2.2) has one job a line in 18 fields; -1 is unknown.

Read: arrival = field 2 (s), wait = 3 (s), run time = 4 (s), processors = the larger of 5 and 8, memory = 10 if above 0,
else 7 (KB per processor; 0 counts as unknown). The machine has MaxProcs processors, else MaxNodes, else as many as its
largest job.

Mended and counted: a missing 18th field is unknown; fractions in fields that are read are rounded half up; jobs out of
order are sorted by arrival, those of one second staying as they were.

Set aside and counted: jobs whose run time is unknown or 0, that held no processor, or whose arrival is unknown.

Refused, with its line: anything else that is not 18 numbers.
"""

import gzip
import re
import zlib
from array import array
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.core import BoolArray, FloatArray, IntArray
from pipeline.errors import UserError

FIELDS = 18
ID, SUBMIT, WAIT, RUN, ALLOCATED, USED_KB, REQUESTED, REQUESTED_KB = READ = (0, 1, 2, 3, 4, 6, 7, 9)
MOST = 1e12  # of any field: more is junk, and could overflow the sums below
SIZE = re.compile(rb"\s*;\s*(MaxProcs|MaxNodes)\s*:\s*(\d+)")  # MaxNodes may carry words after its number


class Log(NamedTuple):
    """A cleaned log in its own units, in order of arrival."""

    id: IntArray  # [J]
    submit_s: IntArray  # [J]
    run_s: IntArray  # [J]
    processors: IntArray  # [J]
    memory_kb: IntArray  # [J]  of each of its processors; -1 = unknown
    max_processors: int  # of the machine
    peak_memory_kb: int  # most held at once in the log's own history; 0 = unknown
    repaired: dict[str, int]  # what was mended or set aside: on how many lines; 0 = not a matter of lines


class _Lines(NamedTuple):
    """The job lines of a log as they stand."""

    fields: FloatArray  # [J, 18]
    line: IntArray  # [J]  number of each in the file
    sizes: dict[str, int]  # what the header says of the machine
    short: int  # lines of 17 fields


def read_swf(path: Path) -> Log:
    """Read a log, plain or .gz, and clean it by the rules above.

    Raises:
        UserError: it cannot be read, a line is not a job's, or no job is left.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            lines = _parse(stream, path)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: its name ends in .gz, but it is not a whole gzip file ({error})") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    return _clean(lines, path)


def _parse(stream: Iterable[bytes], path: Path) -> _Lines:
    values, numbers, sizes, short = array("d"), array("q"), dict[str, int](), 0
    for number, line in enumerate(stream, 1):
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
        try:
            row = array("d", map(float, fields))
        except ValueError:
            row = array("d")
        if len(row) != FIELDS or b"_" in line:  # Python reads 1_000 as a number
            raise UserError(f"{path}:{number}: expected {FIELDS} numbers, found {_found(fields)}")
        values.extend(row)
        numbers.append(number)
    return _Lines(np.frombuffer(values).reshape(-1, FIELDS), np.frombuffer(numbers, dtype=np.int64), sizes, short)


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


def _clean(lines: _Lines, path: Path) -> Log:
    whole, repaired = _whole(lines, path)
    kept = _keep(whole, repaired)
    if not kept.any():
        raise UserError(f"{path}: no jobs" + "".join(f"; {what} ({count})" for what, count in repaired.items()))
    whole = whole[kept]
    _count(repaired, "unsorted arrivals: sorted", int((np.diff(whole[:, SUBMIT]) < 0).sum()))
    whole = whole[np.argsort(whole[:, SUBMIT], kind="stable")]
    processors = np.maximum(whole[:, ALLOCATED], whole[:, REQUESTED])
    memory = np.where(whole[:, REQUESTED_KB] > 0, whole[:, REQUESTED_KB], whole[:, USED_KB])
    memory = np.where(memory > 0, memory, -1)
    machine = lines.sizes.get("MaxProcs") or lines.sizes.get("MaxNodes") or 0
    if not machine:
        machine = int(processors.max())
        repaired["no MaxProcs header: the largest job's processors taken"] = 0
    start = whole[:, SUBMIT] + np.maximum(whole[:, WAIT], 0)
    peak = _peak(start, whole[:, RUN], processors * np.maximum(memory, 0).astype(float))
    return Log(whole[:, ID], whole[:, SUBMIT], whole[:, RUN], processors, memory, machine, int(peak), repaired)


def _whole(lines: _Lines, path: Path) -> tuple[IntArray, dict[str, int]]:
    """Return the fields [J, 18] as whole numbers, and what was mended so far."""
    wrong = np.argwhere(~(np.abs(lines.fields) < MOST))  # written so that nan is wrong, too
    if len(wrong):
        row, column = wrong[0]
        found = f"{lines.fields[row, column]:g} as field {column + 1}"
        raise UserError(f"{path}:{lines.line[row]}: expected {FIELDS} numbers below {MOST:g}, found {found}")
    read = lines.fields[:, READ]
    whole = np.full(lines.fields.shape, -1, dtype=np.int64)
    whole[:, READ] = np.floor(read + 0.5)
    repaired: dict[str, int] = {}
    _count(repaired, f"{FIELDS - 1} columns: last one taken as unknown", lines.short)
    _count(repaired, "fractions: rounded", int((read != whole[:, READ]).any(axis=1).sum()))
    return whole, repaired


def _keep(whole: IntArray, repaired: dict[str, int]) -> BoolArray:
    """Return which jobs [J] can be used; count each of the others once, by its first cause."""
    causes = {
        "arrival unknown: set aside": whole[:, SUBMIT] < 0,
        "run time unknown: set aside": whole[:, RUN] < 0,
        "run time 0: set aside": whole[:, RUN] == 0,
        "no processors: set aside": np.maximum(whole[:, ALLOCATED], whole[:, REQUESTED]) <= 0,
    }
    kept = np.ones(len(whole), dtype=bool)
    for what, jobs in causes.items():
        _count(repaired, what, int((kept & jobs).sum()))
        kept &= ~jobs
    return kept


def _count(repaired: dict[str, int], what: str, lines: int) -> None:
    if lines:
        repaired[what] = lines


def _peak(start: IntArray, run: IntArray, amount: FloatArray) -> float:
    """Return the most held at once; what ends in a second is free in that second.

    >>> _peak(np.array([0, 5, 10]), np.array([10, 2, 1]), np.array([4.0, 3.0, 6.0]))
    7.0
    """
    when, change = np.concatenate([start, start + run]), np.concatenate([amount, -amount])
    return float(np.cumsum(change[np.lexsort((change, when))]).max())


READERS: dict[str, Callable[[Path], Log]] = {"swf": read_swf}
