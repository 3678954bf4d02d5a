"""Jobsets of user groups as tables."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from pipeline.core import FloatArray, IntArray
from pipeline.problems.groups.nouns import Jobs, SharedCluster, check_jobs
from pipeline.problems.groups.tables import jobs_schema
from pipeline.storage import jobsets as tables
from pipeline.storage.files import read_table, write_table

TIMES = ("arrival", "duration", "estimate")
WHOLE = ("group", "queue")

JobSets = Mapping[int, Sequence[Jobs]]  # by load


def write_jobsets(folder: Path, split: str, jobsets: JobSets, resources: Iterable[str]) -> None:
    """Write the jobsets of one split."""
    names = list(resources)
    write_table(tables.jobsets_file(folder, split), jobs_frame(jobsets, names), jobs_schema(names))


def read_jobsets(folder: Path, split: str, resources: Iterable[str], cluster: SharedCluster) -> dict[int, list[Jobs]]:
    """Read the jobsets of one split, by load.

    Raises:
        UserError: the table is missing or damaged, or a job is of no group or queue, or wants more than there is.
    """
    path, names = tables.jobsets_file(folder, split), list(resources)
    frame = read_table(path, jobs_schema(names))
    found = tables.jobsets_of(frame, [frame[name].to_numpy() for name in (*TIMES, names, *WHOLE)], Jobs)
    tables.check_can_run(found, lambda jobs: check_jobs(jobs, cluster), path)
    return found


def jobs_frame(jobsets: JobSets, resources: Sequence[str]) -> pd.DataFrame:
    """Return jobsets as a table, one row a job."""

    def columns(jobs: Jobs) -> dict[str, IntArray | FloatArray]:
        own = {name: getattr(jobs, name) for name in (*TIMES, *WHOLE)}
        return own | {name: jobs.demand[:, r] for r, name in enumerate(resources)}

    return tables.jobs_frame(jobsets, columns, TIMES)
