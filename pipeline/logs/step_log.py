"""Logs of real clusters, read from the formats they are published in.

A Standard Workload Format log (Parallel Workloads Archive, version 2.2) has one job a line in 18 fields; -1 is unknown.
It is read a chunk at a time, and only what is used of a job is kept: 56 bytes.

Read: arrival = field 2 (s), wait = 3 (s), run time = 4 (s), processors = the larger of 5 and 8, estimate = 9 (s; 0
counts as unknown), memory = 10 if above 0, else 7 (KB per processor; 0 counts as unknown). The machine has MaxProcs
processors, else MaxNodes, else as many as its largest job.

Mended and counted: a missing 18th field is unknown; fractions in fields that are read are rounded half up; jobs out of
order are sorted by arrival, those of one second staying as they were.

Set aside and counted: jobs whose run time is unknown or 0, that held no processor, or whose arrival is unknown.

Refused, with its line: anything else that is not 18 numbers.
"""

import gzip
import os
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np

from pipeline.core import BoolArray, FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.logs.lines import CHUNK, FIELDS, Lines, job_lines
from pipeline.progress import ProgressCallback, no_progress

READ = (0, 1, 2, 3, 4, 6, 7, 8, 9)  # of the 18 fields, those that are used
SHORT = f"{FIELDS - 1} columns: last one taken as unknown"
FRACTIONS = "fractions: rounded"
NO_ARRIVAL, NO_RUN = "arrival unknown: set aside", "run time unknown: set aside"
ZERO_RUN, NO_PROCESSORS = "run time 0: set aside", "no processors: set aside"
UNSORTED = "unsorted arrivals: sorted"
TOLD = (SHORT, FRACTIONS, NO_ARRIVAL, NO_RUN, ZERO_RUN, NO_PROCESSORS, UNSORTED)  # in this order


class Log(NamedTuple):
    """A cleaned log in its own units, in order of arrival."""

    id: IntArray  # [J]
    submit_s: IntArray  # [J]
    run_s: IntArray  # [J]
    processors: IntArray  # [J]
    memory_kb: IntArray  # [J]  of each of its processors; -1 = unknown
    estimate_s: IntArray  # [J]  of its run time, by its user; -1 = unknown
    max_processors: int  # of the machine
    peak_memory_kb: int  # most held at once in the log's own history; 0 = unknown
    repaired: dict[str, int]  # what was mended or set aside: on how many lines; 0 = not a matter of lines


class _Jobs(NamedTuple):
    """What is kept of some jobs."""

    id: IntArray  # [J]
    submit_s: IntArray  # [J]
    start_s: IntArray  # [J]
    run_s: IntArray  # [J]
    processors: IntArray  # [J]
    memory_kb: IntArray  # [J]
    estimate_s: IntArray  # [J]


def read_swf(path: Path, on_progress: ProgressCallback = no_progress, chunk: int = CHUNK) -> Log:
    """Read a log, plain or .gz, and clean it by the rules above.

    Args:
        path: of the log.
        on_progress: told while it is read.
        chunk: bytes that are read at a time.

    Raises:
        UserError: it cannot be read, a line is not a job's, or no job is left.
    """
    parts, sizes, counted, seen = list[_Jobs](), dict[str, int](), Counter[str](), 0
    try:
        with path.open("rb") as file, _unpacked(file, path) as stream:
            size = max(os.fstat(file.fileno()).st_size, 1)
            for lines in job_lines(stream, path, chunk):
                parts.append(_kept(lines, counted))
                sizes = {**lines.sizes, **sizes}  # the first word counts
                seen += len(lines.fields)
                on_progress(min(100 * file.tell() / size, 100), f"{seen:,} jobs")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: its name ends in .gz, but it is not a whole gzip file ({error})") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    return _log(parts, sizes, counted, path)


def _unpacked(file: BinaryIO, path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(file)) if path.suffix == ".gz" else file


def _kept(lines: Lines, counted: Counter[str]) -> _Jobs:
    """Return the jobs of some lines that can be used, and count what was mended or set aside."""
    read = lines.fields[:, READ]
    whole = np.floor(read + 0.5).astype(np.int64)
    counted[SHORT] += lines.short
    counted[FRACTIONS] += int((read != whole).any(axis=1).sum())
    id, submit, wait, run, allocated, used_kb, requested, estimate, requested_kb = whole.T
    processors = np.maximum(allocated, requested)
    memory = np.where(requested_kb > 0, requested_kb, used_kb)
    memory = np.where(memory > 0, memory, -1)
    kept = _usable(submit, run, processors, counted)
    estimate = np.where(estimate > 0, estimate, -1)
    jobs = _Jobs(id, submit, submit + np.maximum(wait, 0), run, processors, memory, estimate)
    return _Jobs(*(column[kept] for column in jobs))


def _usable(submit: IntArray, run: IntArray, processors: IntArray, counted: Counter[str]) -> BoolArray:
    """Return which jobs [J] can be used; count each of the others once, by its first cause."""
    causes = {NO_ARRIVAL: submit < 0, NO_RUN: run < 0, ZERO_RUN: run == 0, NO_PROCESSORS: processors <= 0}
    kept = np.ones(len(submit), dtype=bool)
    for what, jobs in causes.items():
        counted[what] += int((kept & jobs).sum())
        kept &= ~jobs
    return kept


def _log(parts: list[_Jobs], sizes: dict[str, int], counted: Counter[str], path: Path) -> Log:
    """Return all jobs in order of arrival."""
    if not any(len(part.id) for part in parts):
        raise UserError(f"{path}: no jobs" + "".join(f"; {what} ({count})" for what, count in _told(counted).items()))
    jobs = _end_to_end(parts)
    counted[UNSORTED] = int((np.diff(jobs.submit_s) < 0).sum())
    if counted[UNSORTED]:
        order = np.argsort(jobs.submit_s, kind="stable")
        jobs = _Jobs(*(column[order] for column in jobs))
    repaired = _told(counted)
    machine = sizes.get("MaxProcs") or sizes.get("MaxNodes") or 0
    if not machine:
        machine = int(jobs.processors.max())
        repaired["no MaxProcs header: the largest job's processors taken"] = 0
    known = jobs.memory_kb > 0
    held = jobs.processors[known] * jobs.memory_kb[known].astype(float)
    peak = _peak(jobs.start_s[known], jobs.run_s[known], held) if known.any() else 0
    return Log(
        id=jobs.id,
        submit_s=jobs.submit_s,
        run_s=jobs.run_s,
        processors=jobs.processors,
        memory_kb=jobs.memory_kb,
        estimate_s=jobs.estimate_s,
        max_processors=machine,
        peak_memory_kb=int(peak),
        repaired=repaired,
    )


def _end_to_end(parts: list[_Jobs]) -> _Jobs:
    """Return the jobs of all parts, and let go of the parts: a long log is not held twice."""
    columns = [list(column) for column in zip(*parts, strict=True)]
    parts.clear()
    joined = []
    while columns:
        joined.append(np.concatenate(columns.pop(0)))
    return _Jobs(*joined)


def _told(counted: Counter[str]) -> dict[str, int]:
    return {what: counted[what] for what in TOLD if counted[what]}


def _peak(start: IntArray, run: IntArray, amount: FloatArray) -> float:
    """Return the most held at once; what ends in a second is free in that second.

    >>> _peak(np.array([0, 5, 10]), np.array([10, 2, 1]), np.array([4.0, 3.0, 6.0]))
    7.0
    """
    when, change = np.concatenate([start, start + run]), np.concatenate([amount, -amount])
    return float(np.cumsum(change[np.lexsort((change, when))]).max())


READERS: dict[str, Callable[..., Log]] = {"swf": read_swf}  # (path, on_progress), and more
