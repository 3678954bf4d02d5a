"""The jobs of RLScheduler's protocol (Zhang et al., SC 2020), read as its code reads a log.

Jobs are those whose run time is not 0, in order of their ids; a run time below 0 counts as 10 s. Policies know the
user's estimate (field 9), or the run time where that is -1. A job holds the larger of fields 5 and 8 of the machine's
pooled processors. Ten sequences of 1,024 consecutive jobs are played, each on an empty machine from its first submit
time on.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.core.logs.rows import opened
from pipeline.core.logs.swf import job_lines
from pipeline.core.types import ANY_KIND, THOUSANDTHS, FloatArray
from pipeline.errors import UserError
from pipeline.problems.machines.env.nouns import Jobs

SEQUENCE = 1024  # jobs
STARTS = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)  # in the order of the published runs
UNKNOWN_RUN_S = 10.0
ID, SUBMIT, RUN, ALLOCATED, REQUESTED, ESTIMATE = 0, 1, 3, 4, 7, 8


class Protocol(NamedTuple):
    """A log as the protocol reads it."""

    fields: FloatArray  # [J, 18]
    processors: int

    def jobs(self, first: int, count: int = SEQUENCE) -> Jobs:
        """Return consecutive jobs, at their own times."""
        rows = self.fields[first : first + count]
        run = np.where(rows[:, RUN] < 0, UNKNOWN_RUN_S, rows[:, RUN])
        known = np.where(rows[:, ESTIMATE] == -1, run, rows[:, ESTIMATE])
        held = np.maximum(rows[:, ALLOCATED], rows[:, REQUESTED]).astype(np.int64)
        nodes = np.ones(len(rows), dtype=np.int64)
        return Jobs(rows[:, SUBMIT], run, known, held[:, None] * THOUSANDTHS, nodes, np.full(len(rows), ANY_KIND))


def read_protocol(path: Path, most: int = 0) -> Protocol:
    """Read a log, or its first job lines only.

    Args:
        path: of a log in the Standard Workload Format, plain or .gz.
        most: job lines that are used, from the first on; 0 = all.

    Raises:
        UserError: the log cannot be read, or a job is not one that the protocol can play.
    """
    parts: list[FloatArray] = [np.zeros((0, 18))]
    sizes: dict[str, int] = {}
    with opened(path) as (content, _):
        for lines in job_lines(content, path):
            parts.append(lines.fields)
            sizes.update(lines.sizes)
    fields = np.concatenate(parts)
    fields = fields[:most] if most else fields
    fields = fields[fields[:, RUN] != 0]
    fields = fields[np.argsort(fields[:, ID], kind="stable")]
    if not len(fields):
        raise UserError(f"{path}: no jobs whose run time is not 0")
    held = np.maximum(fields[:, ALLOCATED], fields[:, REQUESTED])
    processors = sizes.get("MaxProcs") or sizes.get("MaxNodes") or int(held.max())
    for what, wrong in (
        (f"1 to {processors} processors", (held < 1) | (held > processors)),
        ("an estimate above 0 s, or -1", (fields[:, ESTIMATE] <= 0) & (fields[:, ESTIMATE] != -1)),
        ("jobs in order of arrival", np.diff(fields[:, SUBMIT], prepend=fields[0, SUBMIT]) < 0),
    ):
        if wrong.any():
            raise UserError(f"{path}: the protocol expects {what}; job {fields[wrong][0, ID]:.0f} is not so")
    return Protocol(fields, processors)
