"""A user's own job table as jobsets, and a log as such a table.

Columns: jobset, job (ids of any kind), arrival and duration (whole steps), and one per resource (whole units). Rows may
stand in any order; jobs of a jobset that arrive in one step are revealed in the order in which they stand.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.core import IntArray, JobSet
from pipeline.errors import UserError
from pipeline.workload.windows import Discretised

WHOLE = ("arrival", "duration")
EXACT = 2**53  # whole numbers below it are exact as floats


class JobTable(NamedTuple):
    """Jobsets, and the table rows their jobs came from."""

    jobsets: list[JobSet]
    rows: IntArray  # [J]  row of each job, jobsets end to end


def whole_numbers(frame: pd.DataFrame, resources: list[str], where: str) -> pd.DataFrame:
    """Return the table with its numbers as int64.

    Raises:
        UserError: a value is missing or is no whole number; its row is named.
    """
    wanted = [name for name in (*WHOLE, *resources) if name in frame]
    changed = {}
    for name in wanted:
        numbers = pd.to_numeric(frame[name], errors="coerce").astype("float64")
        wrong = np.flatnonzero(~((numbers == np.floor(numbers)) & (np.abs(numbers) < EXACT)))  # so that nan is wrong
        if len(wrong):
            row = int(wrong[0])
            raise UserError(f"{where}: {name}: expected a whole number in row {row}, got {frame[name].iloc[row]!s}")
        changed[name] = numbers.astype("int64")
    return frame.assign(**changed)


def jobsets_of(frame: pd.DataFrame, resources: list[str]) -> JobTable:
    """Return the jobsets of a checked table, in the order in which they first appear."""
    number, _ = pd.factorize(frame["jobset"])
    arrival = frame["arrival"].to_numpy()
    rows = np.lexsort((np.arange(len(frame)), arrival, number))
    edges = np.flatnonzero(np.diff(number[rows])) + 1
    columns = (frame[wanted].to_numpy()[rows] for wanted in ("arrival", "duration", resources))
    parts = (np.split(column, edges) for column in columns)
    return JobTable([JobSet(*jobs) for jobs in zip(*parts, strict=True)], rows)


def log_table(steps: Discretised, resources: list[str]) -> pd.DataFrame:
    """Return a log as a job table of one jobset, under the log's own job ids."""
    columns = {"jobset": 0, "job": steps.id, "arrival": steps.arrival, "duration": steps.duration}
    return pd.DataFrame(columns | {name: steps.demand[:, r] for r, name in enumerate(resources)})
