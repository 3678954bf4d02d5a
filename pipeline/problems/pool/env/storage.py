"""Storage of jobsets as tables."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pyarrow
import pyarrow.parquet as pq

from pipeline.core.storage import jobsets as tables
from pipeline.core.storage.files import read_table, write_table
from pipeline.core.types import IntArray
from pipeline.problems.pool.env.nouns import JobSet
from pipeline.problems.pool.env.tables import jobs_schema


def write_jobsets(folder: Path, split: str, jobsets: Mapping[int, list[JobSet]], resources: Mapping[str, int]) -> None:
    """Write the jobsets of one split."""

    def columns(jobs: JobSet) -> dict[str, IntArray]:
        own = {"arrival": jobs.arrival, "duration": jobs.duration}
        own |= {name: jobs.demand[:, r] for r, name in enumerate(resources)}
        return own if jobs.estimate is None else own | {"estimate": jobs.estimate}

    frame = tables.jobs_frame(jobsets, columns)
    write_table(tables.jobsets_file(folder, split), frame, jobs_schema(resources, "estimate" in frame))


def read_jobsets(
    folder: Path,
    split: str,
    resources: Mapping[str, int],
    known_load: Callable[[int], float | None] = lambda load: None,
) -> dict[int, list[JobSet]]:
    """Read the jobsets of one split, by load, each with the load known to policies."""
    frame = stored_jobs(tables.jobsets_file(folder, split), resources)
    estimated = "estimate" in frame
    fields = ("arrival", "duration", list(resources), *(["estimate"] if estimated else []))
    found = tables.jobsets_of(frame, [frame[field].to_numpy() for field in fields], JobSet)
    return {load: [jobs._replace(load=known_load(load)) for jobs in group] for load, group in found.items()}


def stored_jobs(path: Path, resources: Mapping[str, int]) -> pd.DataFrame:
    """Read the jobs of one split, one row per job."""
    estimates = False
    with suppress(OSError, pyarrow.ArrowException):  # `read_table` explains what is wrong with the file
        estimates = "estimate" in pq.read_schema(path).names
    return read_table(path, jobs_schema(resources, estimates))
