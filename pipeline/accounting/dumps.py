"""Rows of what Slurm writes of its jobs, read a chunk at a time, as texts under the names that sacct gives them.

Two forms are told apart by the first line: `sacct --parsable2`, whose first line names its fields, and the file of
`jobcomp/filetxt`, one line of words a job. That file says PENDING of a run that a requeue ended, and leaves its user's
number and command unread here.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.errors import UserError
from pipeline.logs.lines import CHUNK, LONGEST_LINE
from pipeline.logs.rows import MARK, opened
from pipeline.logs.trace import Sieve
from pipeline.progress import ProgressCallback, no_progress

CUT, HEADER_AGAIN = "last line is cut", "the first line again: dumps put together"
NEEDED = ("Submit", "Start", "End", "State")
OF_CPUS = ("AllocTRES", "AllocCPUS", "NCPUS", "ReqTRES", "ReqCPUS")
READ = (
    *("JobIDRaw", "JobID", "User", "Account", "Partition", "QOS", *NEEDED, "Eligible", "ElapsedRaw", "Elapsed"),
    *("TimelimitRaw", "Timelimit", *OF_CPUS, "ReqMem", "NNodes", "NodeList"),
)
# The words of a line in the order in which the plugin writes them; names and folders may hold anything.
FILETXT = re.compile(
    r"JobId=(?P<JobIDRaw>\d+) UserId=(?P<User>.*?)\(\d+\) GroupId=\S* Name=.* JobState=(?P<State>\S+) "
    r"Partition=(?P<Partition>\S*) TimeLimit=(?P<TimelimitRaw>\S+) StartTime=(?P<Start>\S+) EndTime=(?P<End>\S+) "
    r"NodeList=(?P<NodeList>\S*) NodeCnt=(?P<NNodes>\S+) ProcCnt=(?P<AllocCPUS>\S+) WorkDir=.* ReservationName=\S* "
    r"(?:Tres|Gres)=(?P<ReqTRES>\S*) Account=(?P<Account>\S*) QOS=(?P<QOS>\S*) WcKey=\S* Cluster=\S* "
    r"SubmitTime=(?P<Submit>\S+) EligibleTime=(?P<Eligible>\S+)"
    r"(?: ArrayJobId=(?P<array>\d+) ArrayTaskId=(?P<task>\d+))?(?: HetJobId=(?P<het>\d+) HetJobOffset=(?P<part>\d+))?"
    r" DerivedExitCode=\S* ExitCode=\S*\s*"
)


class _Lines(NamedTuple):
    """Filled lines of a chunk."""

    texts: pd.Series  # indexed by line
    cut: bool  # the last of them has no end


def dump_rows(
    path: Path, sieve: Sieve, partial: bool, on_progress: ProgressCallback = no_progress, chunk: int = CHUNK
) -> Iterator[pd.DataFrame]:
    """Yield the rows of a dump as texts, indexed by line.

    Args:
        path: plain or .gz.
        sieve: counts what is left out.
        partial: leave out a last line that is cut, instead of refusing the dump.
        on_progress: called with the percent of the file that is read.
        chunk: bytes that are read at a time.

    Raises:
        UserError: it cannot be read, or a line is not one of such a dump.
    """
    header, rows = "", None
    for lines in _chunks(path, chunk, on_progress):
        texts = lines.texts
        if rows is None:
            header = texts.iloc[0]
            rows = _reader(header, f"{path}:{texts.index[0]}")
            texts = texts if header.startswith("JobId=") else texts.iloc[1:]
        cut = np.zeros(len(texts), dtype=bool)
        cut[-1:] = lines.cut
        if cut.any() and not partial:
            raise UserError(f"{path}:{texts.index[-1]}: expected a whole last line, found one without end, maybe cut; "
                            "dump it again, or leave it out with --partial")  # fmt: skip
        again = texts.to_numpy() == header if not header.startswith("JobId=") else np.zeros(len(texts), dtype=bool)
        kept = sieve.keep(texts.index.to_numpy(), {CUT: cut, HEADER_AGAIN: again})
        if kept.any():
            yield rows(texts[kept], path)
    if rows is None:
        raise UserError(f"{path}: expected jobs, found an empty file")


def _chunks(path: Path, chunk: int, on_progress: ProgressCallback) -> Iterator[_Lines]:
    first = 1
    with opened(path) as (content, percent):
        while text := content.read(chunk):
            text += content.readline(LONGEST_LINE)
            text = text.removeprefix(MARK) if first == 1 else text
            lines = [line.rstrip("\r") for line in _decoded(text, first, path).split("\n")]
            texts = pd.Series(lines, index=np.arange(first, first + len(lines)), dtype=object)
            first += text.count(b"\n")
            filled = texts[texts.str.strip() != ""]
            if len(filled):
                yield _Lines(filled, not text.endswith(b"\n"))
            on_progress(percent(), f"{first - 1:,} lines")


def _decoded(text: bytes, first: int, path: Path) -> str:
    if b"\0" in text:
        raise UserError(f"{path}: expected lines of text, found zero bytes (an archive to unpack, or UTF-16)")
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        line = first + text.count(b"\n", 0, error.start)
        raise UserError(f"{path}:{line}: expected UTF-8 text, found byte 0x{text[error.start]:02x}") from error


def _reader(header: str, where: str) -> Callable[[pd.Series, Path], pd.DataFrame]:
    """Return what reads the lines of a dump that begins with a line."""
    if header.startswith("JobId="):
        return _of_filetxt
    names = header.split("|")
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
    return lambda texts, path: _of_sacct(texts, names, path)


def _of_sacct(texts: pd.Series, names: list[str], path: Path) -> pd.DataFrame:
    fields = [text.split("|") for text in texts]
    for line, found in zip(texts.index, fields, strict=True):
        if len(found) != len(names):
            raise UserError(
                f"{path}:{line}: expected {len(names)} fields, as its first line names, found {len(found)} "
                "(a cut line, or a '|' in a JobName or Comment: leave those out)"
            )
    frame = pd.DataFrame(fields, columns=names, index=texts.index, dtype=object)
    return frame[[name for name in READ if name in names]]


def _of_filetxt(texts: pd.Series, path: Path) -> pd.DataFrame:
    found = [FILETXT.fullmatch(text) for text in texts]
    for line, text, match in zip(texts.index, texts, found, strict=True):
        if match is None:
            raise UserError(
                f"{path}:{line}: expected JobId=... to ExitCode=..., as jobcomp/filetxt writes, found '{text[:40]}'"
            )
    frame = pd.DataFrame([match.groupdict("") for match in found if match], index=texts.index, dtype=object)
    array = (frame["array"] + "_" + frame["task"]).where(frame["array"] != "", frame["JobIDRaw"])
    frame["JobID"] = array.where(frame["het"] == "", frame["het"] + "+" + frame["part"])
    return frame[[name for name in READ if name in frame]]
