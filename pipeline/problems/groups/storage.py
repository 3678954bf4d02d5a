"""Jobsets of user groups as tables."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.core import SPLITS
from pipeline.errors import UserError
from pipeline.problems.groups.nouns import Jobs, SharedCluster, check_jobs
from pipeline.problems.groups.tables import jobs_schema
from pipeline.storage.files import read_table, write_table

TIMES = ("arrival", "duration", "estimate")

JobSets = Mapping[int, Sequence[Jobs]]  # by load


def write_jobsets(folder: Path, split: str, jobsets: JobSets, resources: Iterable[str]) -> None:
    """Write the jobsets of one split."""
    names = list(resources)
    write_table(folder / f"{split}.parquet", jobs_frame(jobsets, names), jobs_schema(names))


def read_jobsets(folder: Path, split: str, resources: Iterable[str], cluster: SharedCluster) -> dict[int, list[Jobs]]:
    """Read the jobsets of one split, by load.

    Args:
        folder: of the scenario.
        split: one of SPLITS.
        resources: their names, in the scenario's order.
        cluster: what the jobs must go with.

    Raises:
        UserError: the table is missing or damaged, or a job is of no group or queue, or wants more than there is.
    """
    if split not in SPLITS:
        raise ValueError(f"expected one of {SPLITS}, got {split!r}")
    path, names = folder / f"{split}.parquet", list(resources)
    frame = read_table(path, jobs_schema(names))
    edges = np.flatnonzero(np.diff(frame["load"]) | np.diff(frame["jobset"])) + 1
    wanted = [*TIMES, names, "group", "queue"]  # as the fields of Jobs
    columns = [frame[name].to_numpy() for name in wanted]
    loads = frame["load"].to_numpy()[np.concatenate([[0], edges])] if len(frame) else []
    found: dict[int, list[Jobs]] = {}
    for load, *parts in zip(loads, *(np.split(column, edges) for column in columns), strict=True):
        found.setdefault(int(load), []).append(Jobs(*parts))
    _must_run(found, cluster, path)
    return found


def _must_run(jobsets: JobSets, cluster: SharedCluster, path: Path) -> None:
    """Refuse jobs that the cluster can never run: in the simulator they would wait for ever."""
    for load, some in jobsets.items():
        for k, jobs in enumerate(some):
            try:
                check_jobs(jobs, cluster)
            except ValueError as error:
                raise UserError(f"{path}: load {load}, jobset {k}: {error}: run 'dvc repro'") from error


def jobs_frame(jobsets: JobSets, resources: Sequence[str]) -> pd.DataFrame:
    """Return jobsets as a table, one row a job."""
    rows = [
        {"load": load, "jobset": k, "job": np.arange(len(jobs.arrival))}
        | {name: getattr(jobs, name) for name in (*TIMES, "group", "queue")}
        | {name: jobs.demand[:, r] for r, name in enumerate(resources)}
        for load, some in jobsets.items()
        for k, jobs in enumerate(some)
    ]
    frame = pd.concat([pd.DataFrame(row) for row in rows], ignore_index=True)
    return frame.astype({name: "float64" if name in TIMES else "int64" for name in frame.columns})
