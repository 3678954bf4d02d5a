"""Formats of logs: how each is recognised and read."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.core.config import GroupsLog, Instances, MachinesLog, Params, PoolLog, repository_root
from pipeline.core.logs import google2011, slurm, swf
from pipeline.core.logs.plausible import implausible
from pipeline.core.logs.rows import MARK, Layout, opened
from pipeline.core.logs.swf import FIELDS, is_number
from pipeline.core.logs.task_rows import PODS, TASK_LOGS, read_pods
from pipeline.core.logs.trace import Dropped, Trace
from pipeline.core.storage.files import TABLE_SUFFIXES
from pipeline.errors import UserError
from pipeline.progress import ProgressCallback, no_progress

SWF_SUFFIXES = (".swf", ".swf.gz")
HEAD = 1 << 16  # bytes read to recognise a format
Recognizer = Callable[[Path, str], bool]  # (path, first line)


class Format(NamedTuple):
    """Reader and recognizer of a format."""

    read: Callable[..., Trace]  # (path, on_progress), and the format's own options
    recognizes: Recognizer
    options: tuple[str, ...] = ()


def check_formats(params: Params) -> None:
    """Refuse the first row of params.yaml with an unknown format; raise a UserError."""
    for place, row in _logs(params):
        if row.format not in FORMATS:
            raise UserError(f"params.yaml: {place}.format: expected one of {', '.join(FORMATS)}, got '{row.format}'")


def check_there(params: Params) -> None:
    """Refuse the first row of params.yaml whose log is missing; raise a UserError."""
    for place, row in _logs(params):
        for key in ("path", "nodes"):
            named = getattr(row, key, None)
            if named is not None and not (repository_root() / named).exists():
                raise UserError(f"params.yaml: {place}.{key}: {named}: no such file")


def _logs(params: Params) -> list[tuple[str, PoolLog | MachinesLog | GroupsLog]]:
    rows: list[tuple[str, object]] = [("workload", params.workload)]
    rows += [(f"scenarios.{name}.workload", getattr(row, "workload", None)) for name, row in params.scenarios.items()]
    return [(place, row) for place, row in rows if isinstance(row, PoolLog | MachinesLog | GroupsLog)]


def read(
    path: Path,
    format: str | None = None,
    on_progress: ProgressCallback = no_progress,
    *,
    nodes: Path | None = None,
    instances: Instances = "one",
    per_node: bool = False,
) -> Trace:
    """Read a log of any format, which is guessed if not given; with `per_node`, each processor is a machine.

    Raises UserError: the format is unknown or has no such option, or the log cannot be read.
    """
    name = guess(path) if format is None else format
    if name not in FORMATS:
        raise UserError(f"format: expected one of {', '.join(FORMATS)}, found '{name}'")
    asked = {"nodes": nodes, "instances": instances, "per_node": per_node}
    given = {option: value for option, value in asked.items() if value not in (None, "one", False)}
    for option in given:
        if option not in FORMATS[name].options:
            having = ", ".join(other for other, each in FORMATS.items() if option in each.options)
            raise UserError(f"{path}: a log of format '{name}' has no {option}; expected one of format {having}")
    trace = FORMATS[name].read(path, on_progress, **given)
    return trace._replace(doubts=tuple(implausible(trace)))


def guess(path: Path) -> str:
    """Return the format of a log by its first lines; a UserError if it is not readable or has none of the formats."""
    name = _recognised(path)
    if name is None:
        first, formats = _first_line(path), ", ".join(FORMATS)
        found = f"found {max(len(first.split()), first.count(',') + 1)} columns"
        raise UserError(f"{path}: cannot tell its format from its first line: name it, one of {formats} ({found})")
    return name


def _recognised(path: Path) -> str | None:
    if path.name.lower().endswith(SWF_SUFFIXES):
        return "swf"
    first = "" if path.is_dir() else _first_line(path)
    return next((name for name, each in FORMATS.items() if each.recognizes(path, first)), None)


def log_format(path: Path) -> str | None:
    """Return the format of a log, by its name or first lines; None for a job table, UserError for anything else.

    An unreadable file or folder with the name of a table counts as one: its reader reports the error.
    """
    is_table = path.name.endswith(TABLE_SUFFIXES)
    if path.suffix == ".parquet" or (is_table and path.is_dir()):
        return None
    try:
        format = _recognised(path)
    except UserError:
        if is_table:
            return None
        raise
    if format is None and not is_table:
        raise UserError(
            f"{path}: expected a job table ({', '.join(TABLE_SUFFIXES)}) or a log of format {', '.join(FORMATS)}"
        )
    return format


def distinct(trace: Trace) -> Trace:
    """Return a log with distinct job numbers: if it repeats some, all are numbered by arrival."""
    jobs = len(trace.id)
    again = jobs - len(np.unique(trace.id))
    if not again:
        return trace
    renamed = Dropped("number of another job: all are numbered in order of arrival, from 1", again, 0)
    return trace._replace(id=np.arange(1, jobs + 1), repaired=(*trace.repaired, renamed))


def _first_line(path: Path) -> str:
    with opened(path) as (content, _):
        lines = content.read(HEAD).removeprefix(MARK).decode(errors="replace").splitlines()
    first = next((line for line in lines if line.strip()), "")
    if not first:
        raise UserError(f"{path}: expected jobs, found an empty file")
    return first


def _is_swf(path: Path, first: str) -> bool:
    fields = first.split()
    return first.lstrip().startswith(";") or (len(fields) in (FIELDS - 1, FIELDS) and all(map(is_number, fields)))


def _has_header(layout: Layout) -> Recognizer:
    wanted = set(layout.schema.columns) - set(layout.optional)
    return lambda path, first: wanted <= {name.strip() for name in first.split(",")}


def _has_columns(layout: Layout) -> Recognizer:
    kinds = {name: str(column.dtype) for name, column in layout.schema.columns.items()}
    numbers = [place for place, name in enumerate(layout.names) if kinds.get(name) == "float64"]

    def recognizes(path: Path, first: str) -> bool:
        fields = first.strip("\r\n").split(",")
        return len(fields) == len(layout.names) and all(is_number(fields[place] or "0") for place in numbers)

    return recognizes


FORMATS: dict[str, Format] = {
    "swf": Format(swf.read, _is_swf, ("per_node",)),
    "openb": Format(read_pods, _has_header(PODS), ("nodes",)),
    **{
        name: Format(each.read, (_has_columns if each.layout.names else _has_header)(each.layout), ("instances",))
        for name, each in TASK_LOGS.items()
    },
    "slurm": Format(slurm.read, _has_header(slurm.LOG), ("nodes",)),
    "google2011": Format(
        google2011.read, lambda path, first: path.is_dir() or _has_columns(google2011.LAYOUT)(path, first)
    ),
}
