"""The Standard Workload Format of the Parallel Workloads Archive, version 2.2: one job per line, in 18 fields.

docs/logs.md has the rules for reading, repairing, dropping and refusing, which are the same for every problem.

The processors are pooled: a job runs on one node and holds all its processors and their memory. The machine has
MaxProcs processors, else MaxNodes, else an unknown number. Its memory is unknown, and is taken as the most that the
log's jobs held at one time, but at most the number of processors times the largest known memory of one. The former is a
lower bound. The latter would be too large where few jobs need much memory, so that memory would never be short (HPC2N:
1.7 times as much). With `per_node`, each processor is a machine, a job runs on as many nodes as it has processors, and
memory is left out.

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

from pipeline.core.logs.plausible import least_held
from pipeline.core.logs.rows import chunks, opened
from pipeline.core.logs.trace import CORES, GIB, Columns, Facts, MachineTable, Sieve, Trace, in_order, jobs
from pipeline.core.types import THOUSANDTHS, FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.progress import ProgressCallback, no_progress

FIELDS = 18
MOST = 1e12  # of any field: more is junk, and could overflow sums
SIZE = re.compile(rb"\s*;\s*(Max\s*Procs|Max\s*Nodes)\s*:(.*)", re.IGNORECASE)
WHOLE = re.compile(r"([1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.0*)?(?:\s+\D.*)?")  # words may follow
UNKNOWN = ("", "0", "-1", "unknown", "n/a", "none", "?")
TIMES = (2, 3, 4, 9)  # fields
KB_OF_GIB = 1024.0**2
PARTIAL = "partial execution, which its job's summary line covers"
NO_ARRIVAL, NO_RUN, NO_PROCESSORS = "arrival unknown", "run time unknown", "no processors"
NEVER_RAN = "run time 0, cancelled or without processors: never ran"
NEGATIVE_WAIT = "negative wait: unknown"
SHORT = f"{FIELDS - 1} columns: last one taken as unknown"
FRACTIONS = "fraction of a processor: rounded"
NO_ESTIMATE, NO_MEMORY = "estimate unknown: its run time taken", "memory unknown: holds none"
ABSURD = "memory beyond 1e9 GiB"
MOST_GIB = 1e9
MOST_USER = 2**31
MOST_MACHINES = 1_000_000  # each processor one
NO_SIZE = "no MaxProcs header: the machine is unknown, with at least {:,.0f} processors"
PARTITIONS = "jobs of {} partitions: taken as one machine"
PARTIALS, COMPLETED, CANCELLED = (2, 3, 4), 1, 5  # of a status


class Lines(NamedTuple):
    """Some job lines, unchanged."""

    fields: FloatArray  # [J, 18]
    number: IntArray  # [J]  of each line in the file, from 1
    short: IntArray  # numbers of the lines that have 17 fields
    sizes: dict[str, int]  # of the machine, by the header up to these lines


def read(path: Path, on_progress: ProgressCallback = no_progress, *, per_node: bool = False) -> Trace:
    """Read a log; a UserError if that fails, a line is not a job, or no job is left."""
    parts, sieve, sizes, rows, partitions = list[Columns](), Sieve(), dict[str, int](), 0, set[float]()
    estimates = memory = False
    with opened(path) as (content, percent):
        for lines in job_lines(content, path):
            part = _part(lines, sieve, per_node)
            sizes = lines.sizes
            estimates |= bool((lines.fields[:, 8] > 0).any())
            memory |= not per_node and bool((part["demand"][:, 1] > 0).any())
            partitions |= set(np.unique(lines.fields[:, 15]).tolist()) - {-1.0}
            parts.append(part)
            rows += len(lines.number)
            on_progress(percent(), f"{rows:,} jobs")
    if not estimates:
        sieve.forget(NO_ESTIMATE)
    if not memory:
        sieve.forget(NO_MEMORY)
        parts = [part | {"demand": part["demand"][:, :1]} for part in parts]
    facts = Facts(("cpu", "memory"), (CORES, GIB)) if memory else Facts(("cpu",), (CORES,))
    trace = in_order(parts, sieve, facts._replace(has_estimates=estimates), rows, path)
    size = sizes.get("MaxProcs") or sizes.get("MaxNodes") or 0
    if not size:
        sieve.repair(NO_SIZE.format(least_held(trace, 0)), np.zeros(1, dtype=np.int64))
    if len(partitions) > 1:
        sieve.repair(PARTITIONS.format(len(partitions)), np.zeros(1, dtype=np.int64))
    machines = _machines(trace, size, per_node, path) if size else None
    return trace._replace(machines=machines, repaired=sieve.repaired)


def _part(lines: Lines, sieve: Sieve, per_node: bool) -> Columns:
    """Return the usable jobs, and count repaired and dropped ones."""
    id, submit, wait, run, allocated, _, used_kb, requested, estimate, requested_kb, status, user = lines.fields.T[:12]
    wanted = np.maximum(allocated, requested)
    processors = np.floor(wanted + 0.5)
    gib = np.maximum(np.where(requested_kb > 0, requested_kb, used_kb), 0) * processors / KB_OF_GIB
    causes = {PARTIAL: np.isin(status, PARTIALS), NO_ARRIVAL: submit < 0, NO_RUN: run < 0}
    causes[NEVER_RAN] = (run == 0) & ((status == CANCELLED) | ((allocated <= 0) & (status != COMPLETED)))
    kept = sieve.keep(lines.number, causes | {NO_PROCESSORS: processors <= 0, ABSURD: gib > MOST_GIB})
    sieve.repair(SHORT, lines.short)
    repaired = {FRACTIONS: processors != wanted, NO_ESTIMATE: estimate <= 0, NO_MEMORY: gib == 0}
    repaired[NEGATIVE_WAIT] = (wait < 0) & (wait != -1)
    sieve.repair_each(lines.number, {reason: kept & found for reason, found in repaired.items()})
    return jobs(
        sieve, lines.number, kept, np.ones((len(run), 1)) if per_node else np.column_stack([processors, gib]),
        id=np.floor(id + 0.5),
        submit_s=submit,
        run_s=run,
        nodes=processors if per_node else 1,
        wait_s=np.where(wait >= 0, wait, np.nan),
        estimate_s=np.where(estimate > 0, estimate, np.nan),
        user=np.where((user >= 0) & (user < MOST_USER), user, -1),
    )  # fmt: skip


def _machines(trace: Trace, size: int, per_node: bool, path: Path) -> MachineTable:
    if not per_node:
        capacity = [size * THOUSANDTHS]
        if "memory" in trace.resources:
            memory = trace.demand[:, 1].astype(float)
            most = (memory / trace.demand[:, 0]).max() * capacity[0]
            capacity.append(int(min(trace.most_held(memory), most)))
        return MachineTable(np.array([capacity]), np.zeros(1, dtype=np.int64), trace.resources)
    if size > MOST_MACHINES:
        raise UserError(f"{path}: expected at most {MOST_MACHINES:,} processors as machines, found {size:,}")
    return MachineTable(np.full((size, 1), THOUSANDTHS), np.zeros(size, dtype=np.int64), trace.resources)


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
