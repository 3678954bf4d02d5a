"""Jobsets as tables, one row a job: what is the same whatever jobs are."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from pipeline.core import SPLITS, FloatArray, IntArray, KeyArray
from pipeline.errors import UserError

Jobs = TypeVar("Jobs")  # of one jobset


def jobsets_file(folder: Path, split: str) -> Path:
    """Return the table of one of SPLITS."""
    if split not in SPLITS:
        raise ValueError(f"expected one of {SPLITS}, got {split!r}")
    return folder / f"{split}.parquet"


def jobs_frame(
    jobsets: Mapping[int, Sequence[Jobs]],
    columns: Callable[[Jobs], Mapping[str, IntArray | FloatArray]],
    times: Collection[str] = (),
) -> pd.DataFrame:
    """Return jobsets as a table: load, jobset, number of the job in it, and its own columns, each [J] of a jobset.

    All columns but `times` are whole numbers.
    """
    parts = [
        pd.DataFrame({"load": load, "jobset": k, "job": np.arange(len(rows))}).join(rows)
        for load, group in jobsets.items()
        for k, jobs in enumerate(group)
        for rows in [pd.DataFrame(columns(jobs))]
    ]
    frame = pd.concat(parts, ignore_index=True)
    return frame.astype({name: "float64" if name in times else "int64" for name in frame.columns})


def jobsets_of(
    frame: pd.DataFrame, columns: Sequence[IntArray | FloatArray | KeyArray], make: Callable[..., Jobs]
) -> dict[int, list[Jobs]]:
    """Return the jobsets of a table by load; what makes one is given its part of each of the columns [J] or [J, R]."""
    edges = np.flatnonzero(np.diff(frame["load"]) | np.diff(frame["jobset"])) + 1
    loads = frame["load"].to_numpy()[np.concatenate([[0], edges])] if len(frame) else []
    found: dict[int, list[Jobs]] = {}
    for load, *parts in zip(loads, *(np.split(column, edges) for column in columns), strict=True):
        found.setdefault(int(load), []).append(make(*parts))
    return found


def must_run(jobsets: Mapping[int, Sequence[Jobs]], check: Callable[[Jobs], None], path: Path) -> None:
    """Refuse jobs that could never run: in the simulator they would wait for ever.

    Raises:
        UserError: there is one.
    """
    for load, group in jobsets.items():
        for k, jobs in enumerate(group):
            try:
                check(jobs)
            except ValueError as error:
                raise UserError(f"{path}: load {load}, jobset {k}: {error}: run 'dvc repro'") from error
