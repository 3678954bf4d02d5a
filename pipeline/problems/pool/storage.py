"""Jobsets as tables."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet as pq

from pipeline.core import SPLITS
from pipeline.problems.pool.nouns import JobSet
from pipeline.problems.pool.tables import jobs_schema
from pipeline.storage.files import read_table, write_table

JobSets = Mapping[int, list[JobSet]]  # by load


def write_jobsets(folder: Path, split: str, jobsets: JobSets, resources: Mapping[str, int]) -> None:
    """Write the jobsets of one split."""
    frame = jobs_frame(jobsets, resources)
    write_table(folder / f"{split}.parquet", frame, jobs_schema(resources, "estimate" in frame))


def read_jobsets(folder: Path, split: str, resources: Mapping[str, int]) -> dict[int, list[JobSet]]:
    """Read the jobsets of one split, by load."""
    if split not in SPLITS:
        raise ValueError(f"expected one of {SPLITS}, got {split!r}")
    path = folder / f"{split}.parquet"
    estimated = _has_estimates(path)
    frame = read_table(path, jobs_schema(resources, estimated))
    found: dict[int, list[JobSet]] = {}
    edges = np.flatnonzero(np.diff(frame["load"]) | np.diff(frame["jobset"])) + 1
    fields = ("arrival", "duration", list(resources), *(["estimate"] if estimated else []))
    jobsets = zip(*(np.split(frame[field].to_numpy(), edges) for field in fields), strict=True)
    loads = frame["load"].to_numpy()[np.concatenate([[0], edges])] if len(frame) else []
    for load, columns in zip(loads, jobsets, strict=True):
        found.setdefault(int(load), []).append(JobSet(*columns))
    return found


def _has_estimates(path: Path) -> bool:
    """Return whether the jobsets of a file have estimates; whoever reads it all says what is wrong with it."""
    with suppress(OSError, pyarrow.ArrowException):
        return "estimate" in pq.read_schema(path).names
    return False


def jobs_frame(jobsets: JobSets, resources: Mapping[str, int]) -> pd.DataFrame:
    """Return jobsets as a table, one row a job."""
    rows = [
        {"load": load, "jobset": k, "job": np.arange(len(jobs.arrival)), "arrival": jobs.arrival}
        | {"duration": jobs.duration}
        | {name: jobs.demand[:, r] for r, name in enumerate(resources)}
        | ({} if jobs.estimate is None else {"estimate": jobs.estimate})
        for load, group in jobsets.items()
        for k, jobs in enumerate(group)
    ]
    return pd.concat([pd.DataFrame(row) for row in rows], ignore_index=True).astype("int64")
