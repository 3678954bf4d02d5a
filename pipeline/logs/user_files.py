"""Which file of a user is a log, and of which format; what is none is a job table."""

from pathlib import Path

import numpy as np

from pipeline.errors import UserError
from pipeline.logs.registry import FORMATS, SWF_SUFFIXES, recognised
from pipeline.logs.trace import Dropped, Trace
from pipeline.storage.user_tables import TABLE_SUFFIXES


def log_format(path: Path) -> str | None:
    """Return the format of a log, by its name or its first lines; None of a job table, which looks like none of them.

    What is named like a table and cannot be read, a folder too, is one all the same: its reader says what is wrong.

    Raises:
        UserError: it cannot be read, or is neither.
    """
    if path.name.lower().endswith(SWF_SUFFIXES):
        return "swf"
    is_table = path.name.endswith(TABLE_SUFFIXES)
    if path.suffix == ".parquet" or (is_table and path.is_dir()):
        return None
    try:
        format = recognised(path)
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
    """Return a log whose jobs have numbers of their own: where it repeats some, all are numbered by arrival."""
    jobs = len(trace.id)
    again = jobs - len(np.unique(trace.id))
    if not again:
        return trace
    renamed = Dropped("number of another job: all are numbered in order of arrival, from 1", again, 0)
    return trace._replace(id=np.arange(1, jobs + 1), repaired=(*trace.repaired, renamed))
