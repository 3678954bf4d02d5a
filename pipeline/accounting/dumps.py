"""Rows of Slurm's accounting dumps, read in chunks, as text under the field names of sacct.

The first line shows the format: that of `sacct --parsable2`, where it names the fields, or that of `jobcomp/filetxt`,
with one line of words per job. Names and folders may contain any byte, word or line break.
"""

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.accounting.fields import Unread
from pipeline.core.logs.rows import CHUNK, chunks, opened
from pipeline.core.logs.trace import Sieve
from pipeline.errors import UserError
from pipeline.progress import ProgressCallback

BROKEN = "a line break or '|' in a name, which is not read: taken as one line"
ZEROS = "expected lines of text, found zero bytes (an archive to unpack, or UTF-16)"
NEEDED = ("Submit", "Start", "End", "State")
OF_CPUS = ("AllocTRES", "AllocCPUS", "NCPUS", "ReqTRES", "ReqCPUS")
READ = (
    *("JobIDRaw", "JobID", "User", "Account", "Partition", "QOS", *NEEDED, "Eligible", "ElapsedRaw", "Elapsed"),
    *("TimelimitRaw", "Timelimit", *OF_CPUS, "ReqMem", "NNodes", "NodeList", "Cluster", "AllocGRES", "ReqGRES"),
)
FREE = frozenset({"JobName", "Comment", "AdminComment", "SystemComment", "WorkDir", "SubmitLine", "Reason", "WCKey",
                  "Extra", "Container", "StdIn", "StdOut", "StdErr"})  # fmt: skip
DELIMITER = re.compile(r"\w+([^\w\s]+|\t)")
# Fields of filetxt before a job's name, between its name and its folder, and after these; old versions write fewer.
BEFORE = {"JobId": "JobIDRaw", "UserId": "User"}
BETWEEN = {"JobState": "State", "Partition": "Partition", "TimeLimit": "TimelimitRaw", "StartTime": "Start",
           "EndTime": "End", "NodeList": "NodeList", "NodeCnt": "NNodes", "ProcCnt": "AllocCPUS"}  # fmt: skip
AFTER = {"SubmitTime": "Submit", "EligibleTime": "Eligible"}
AFTER |= {name: name for name in ("Tres", "Gres", "Account", "QOS", "Cluster", "ArrayJobId", "ArrayTaskId", "HetJobId",
          "HetJobOffset", "PackJobId", "PackJobOffset")}  # fmt: skip
LONGEST = 1 << 16  # characters of a job, so that a file in another format is not read into memory as one job
ONE = np.ones(1, dtype=bool)  # a row to drop
ROWS = CHUNK // 100  # of a frame; a row has hundreds of bytes
WORD, JOB = re.compile(r" +(?=\w+=)"), re.compile(r"(?=JobId=\d+ UserId=)")


class _Sacct:
    """The rows of a dump of sacct; a row that a line break cut in two is joined again."""

    def __init__(self, header: str, where: str, sieve: Sieve, unread: Unread) -> None:
        found = DELIMITER.match(header)
        self.delimiter = found[1] if found else "|"
        self.names, self.sieve, self.unread = header.split(self.delimiter), sieve, unread
        _check_names(self.names, header, where)
        self.columns = [name for name in READ if name in self.names]
        self.places = [self.names.index(name) for name in self.columns]
        free = [k for k, name in enumerate(self.names) if name in FREE]
        self.free = range(free[0], free[-1] + 1) if free else range(0)
        self.begun: tuple[int, list[str]] = (0, [])

    def is_header(self, text: str) -> bool:
        return NEEDED[0] in text and set(NEEDED) <= set(text.split(self.delimiter))

    def rows(self, line: int, text: str) -> Iterator[tuple[int, list[str]]]:
        fields, count, broken = text.split(self.delimiter), len(self.names), False
        first, begun = self.begun
        if begun and len(begun) + len(fields) - 1 <= count and len(begun) - 1 not in self.places:
            self.begun, line, fields, broken = (0, []), first, [*begun[:-1], *fields], True
        self.left()
        if len(fields) == 1 and self.names[-1] in FREE:  # the rest of a name at the end of the line before
            self.sieve.repair(BROKEN, np.array([line]))
            return
        more = len(fields) - count
        if more > 0 and self.free and not set(self.free) & set(self.places):
            begin, broken = self.free.start, True
            fields = [*fields[:begin], *fields[begin + more :]]
        if len(fields) < count:
            self.begun = (line, fields)
        elif len(fields) > count:
            self._refuse(line, len(fields))
        else:
            self.sieve.repair(BROKEN, np.array([line] * broken))
            yield line, [fields[place] for place in self.places]

    def left(self) -> tuple[()]:
        """Refuse an incomplete row, and return the rows that it leaves: none."""
        line, begun = self.begun
        if begun:
            self._refuse(line, len(begun))
        self.begun = (0, [])
        return ()

    def _refuse(self, line: int, found: int) -> None:
        self.unread.add([line], f"expected {len(self.names)} fields, as its first line names, found {found} (a cut "
                        "line, or a '|' or line break in a JobName or Comment: leave those out)")  # fmt: skip


class _FileTxt:
    """The rows of a file of jobcomp/filetxt."""

    columns = (*BEFORE.values(), *BETWEEN.values(), "Account", "QOS", "Cluster", "Submit", "Eligible",
               "JobID", "ReqTRES", "ReqGRES")  # fmt: skip

    def __init__(self, sieve: Sieve, unread: Unread) -> None:
        self.sieve, self.unread = sieve, unread
        self.begun, self.broken = (0, ""), False

    def is_header(self, _: str) -> bool:
        return False

    def rows(self, line: int, text: str) -> Iterator[tuple[int, list[str]]]:
        for part in filter(None, JOB.split(text)):  # two jobs if the end of a line was never written
            first, begun = self.begun
            if 0 < len(begun) < LONGEST and not part.startswith("JobId=") and "ExitCode=" not in begun:
                self.begun, self.broken = (first, f"{begun} {part}"), True
            else:
                yield from self.left(glued=first == line)
                self.begun = (line, part)

    def left(self, glued: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Yield the pending job; `glued`: another job follows on the same line."""
        (line, text), broken = self.begun, self.broken
        self.begun, self.broken = (0, ""), False
        found = _words(text)
        if found.get("JobIDRaw", "").isdigit() and all(found.get(name) for name in ("State", "Start", "End")):
            self.sieve.repair(BROKEN, np.array([line] * broken))
            yield line, [found.get(name, "") for name in self.columns]
        elif glued:
            self.sieve.keep(np.array([line]), {"a line that the next one follows before its end": ONE})
        elif text:
            why = f"expected JobId=... to ExitCode=..., as jobcomp/filetxt writes, found '{text[:40]}'"
            self.unread.add([line], why)


def _words(text: str) -> dict[str, str]:
    """Return the fields of a line of filetxt; if names or folders contain such words, Slurm's are the last ones."""
    before, _, rest = text.strip().partition(" Name=")
    between, folder, after = rest.rpartition(" WorkDir=")
    found: dict[str, str] = {}
    for part, names in ((before, BEFORE), (between if folder else after, BETWEEN), (after, AFTER)):
        words = dict(word.partition("=")[::2] for word in WORD.split(part))
        found |= {names[word]: value for word, value in words.items() if word in names}
    found["User"] = re.sub(r"\(\d+\)$", "", found.get("User", ""))
    if found.get("State") == "PENDING":  # filetxt's word for a run that a requeue ended
        found["State"] = "REQUEUED"
    asked = found.get("Tres", found.get("Gres", ""))
    found["ReqTRES" if "=" in asked else "ReqGRES"] = asked
    het = next((name for name in ("HetJob", "PackJob") if f"{name}Id" in found), "")
    array = f"{found['ArrayJobId']}_{found.get('ArrayTaskId')}" if "ArrayJobId" in found else found.get("JobIDRaw", "")
    found["JobID"] = f"{found[f'{het}Id']}+{found.get(f'{het}Offset')}" if het else array
    return found


def dump_rows(
    path: Path, sieve: Sieve, unread: Unread, partial: bool, on_progress: ProgressCallback
) -> Iterator[pd.DataFrame]:
    """Yield the rows of a dump, plain or .gz, as texts, indexed by line; `partial`: leave out a cut last line."""
    reader: _Sacct | _FileTxt | None = None
    rows: list[tuple[int, list[str]]] = []
    for line, text, ends in _lines(path, partial, on_progress):
        if reader is None or reader.is_header(text):
            if reader is not None:
                yield from _frame([*rows, *reader.left()], reader)
                sieve.keep(np.array([line]), {"the first line again: dumps put together": ONE})
            rows = []
            if "\0" in text:
                raise UserError(f"{path}:{line}: {ZEROS}")
            if not text.startswith("JobId="):
                reader = _Sacct(text, f"{path}:{line}", sieve, unread)
                continue
            reader = _FileTxt(sieve, unread)
        unread.rows += 1
        if not ends:
            sieve.keep(np.array([line]), {"last line is cut": ONE})
        elif "\0" in text:
            unread.add([line], ZEROS)
        else:
            rows += reader.rows(line, text)
        if len(rows) >= ROWS:
            yield from _frame(rows, reader)
            rows = []
    if reader is None:
        raise UserError(f"{path}: expected jobs, found an empty file")
    yield from _frame([*rows, *reader.left()], reader)


def _frame(rows: list[tuple[int, list[str]]], reader: _Sacct | _FileTxt) -> Iterator[pd.DataFrame]:
    if rows:
        lines, fields = zip(*rows, strict=True)
        yield pd.DataFrame(fields, columns=list(reader.columns), index=lines, dtype=object)


def _lines(path: Path, partial: bool, on_progress: ProgressCallback) -> Iterator[tuple[int, str, bool]]:
    """Yield the number and text of each line that is not empty, and whether it is whole; a cut one needs `partial`."""
    number = 0
    with opened(path) as (content, percent):
        for read in chunks(content):
            for line in StringIO(read.decode(errors="backslashreplace"), newline="\n"):
                text, ends = line.removesuffix("\n").strip("\0\r\ufeff"), line.endswith("\n")
                number += 1
                if text.strip() and not (ends or partial):
                    raise UserError(f"{path}:{number}: expected a whole last line, found one without end, maybe cut; "
                                    "dump it again, or leave it out with --partial")  # fmt: skip
                if text.strip():
                    yield number, text, ends
            on_progress(percent(), f"{number:,} lines")


def _check_names(names: list[str], header: str, where: str) -> None:
    if len(names) < len(NEEDED) or not {"JobID", "JobIDRaw"} & set(names):
        raise UserError(
            f"{where}: expected the names of fields as sacct --parsable2 writes them (without --noheader), "
            f"or JobId=... of jobcomp/filetxt, found '{header[:40]}'"
        )
    lacking = [name for name in NEEDED if name not in names]
    if not lacking and not set(OF_CPUS) & set(names):
        lacking = ["AllocTRES"]
    if lacking:
        raise UserError(f"{where}: expected the field {lacking[0]}, found {', '.join(names)[:200]}")
    if twice := sorted({name for name in names if name and names.count(name) > 1}):
        raise UserError(f"{where}: expected each field once, found {twice[0]} twice")
