"""A user's own jobs: a table or a log of any length, in compact columns, and in parts that are played side by side.

Columns: jobset, job (ids of any kind), arrival, duration and, where policies are told it, estimate (whole steps), and
one per resource (whole units). Rows may stand in any order; jobs of a jobset that arrive in one step are revealed in
the order in which they stand.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from pipeline.core import FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.problems.pool.nouns import JobBatch
from pipeline.problems.pool.workload.windows import Discretised
from pipeline.storage.files import line_of

IDS = ("jobset", "job")
WHOLE = ("arrival", "duration", "estimate")
EXACT = 2**53  # whole numbers below it are exact as floats
AT_ONCE = 1_000_000  # jobs of a part
ABREAST = 4096  # jobsets of a part, of a short horizon
STEPS_ABREAST = 1 << 22  # steps of the horizons of a part


class JobTable(NamedTuple):
    """Jobs in the order of their rows."""

    ids: pa.Table  # jobset (as a dictionary) and job, as the user wrote them
    jobset: IntArray  # [J]     number of each job's jobset, by first appearance
    arrival: IntArray  # [J]
    duration: IntArray  # [J]
    demand: IntArray  # [J, R]
    estimate: IntArray | None = None  # [J]     steps that users ask for; None: run times are known


class Part(NamedTuple):
    """Some whole jobsets of a table."""

    number: IntArray  # [B]  of each jobset
    rows: IntArray | slice  # [J]  of its jobs in the table
    jobs: JobBatch


def whole_numbers(frame: pd.DataFrame, resources: list[str], where: str) -> pd.DataFrame:
    """Return the table with its numbers as int64.

    Raises:
        UserError: a value is missing or is no whole number; its row is named.
    """
    wanted = [name for name in (*WHOLE, *resources) if name in frame]
    changed = {}
    for name in wanted:
        numbers = _numbers(frame[name], f"{where}: {name}")
        wrong = np.flatnonzero(~((numbers == np.floor(numbers)) & (np.abs(numbers) < EXACT)))  # so that nan is wrong
        if len(wrong):
            row, value = frame.index[wrong[0]], frame[name].iloc[wrong[0]]
            raise UserError(f"{where}: {name}: expected a whole number in {line_of(where, row)}, got {value!s}")
        changed[name] = numbers.astype("int64")
    return frame.assign(**changed)


def _numbers(column: pd.Series, where: str) -> FloatArray:
    if column.dtype.kind in "Mmbc":  # pandas would make numbers of dates and of yes and no
        raise UserError(f"{where}: expected whole numbers, got {column.dtype}")
    try:
        return pd.to_numeric(column, errors="coerce").to_numpy(dtype="float64", na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: expected whole numbers, got {column.iloc[0]!s}") from error


def log_table(steps: Discretised) -> JobTable:
    """Return a log as a table of one jobset, under the log's own job ids."""
    number = np.zeros(len(steps.id), dtype=np.int32)
    one = pa.DictionaryArray.from_arrays(pa.array(number), pa.array([0]))
    ids = pa.table({"jobset": one, "job": steps.id})
    return JobTable(ids, number, steps.arrival, steps.duration, steps.demand, steps.estimate)


def repeated(table: JobTable) -> int | None:
    """Return the first row whose jobset and job are those of another row, too."""
    job = table.ids["job"]
    mixed = np.empty(len(table.jobset), dtype=np.uint64)
    for first in range(0, len(mixed), AT_ONCE):
        rows = slice(first, first + AT_ONCE)
        some = pd.DataFrame({"jobset": table.jobset[rows], "job": job.slice(first, AT_ONCE).to_pandas()})
        mixed[rows] = pd.util.hash_pandas_object(some, index=False).to_numpy()
    ordered = np.sort(mixed)
    suspect = ordered[1:][ordered[1:] == ordered[:-1]]
    for row in np.flatnonzero(np.isin(mixed, suspect)):  # one look nearly always: different ids hardly ever meet
        same = np.flatnonzero(mixed == mixed[row])
        found = {(int(table.jobset[other]), job[int(other)].as_py()) for other in same}
        if len(found) < len(same):
            return int(row)
    return None


def parts(table: JobTable, horizon: int, jobs: int = AT_ONCE) -> Iterator[Part]:
    """Yield all jobsets in the order in which they first appear, as many at a time as memory is asked for.

    Args:
        table: the jobs.
        horizon: of the cluster that will run them.
        jobs: of a part; a longer jobset is a part of its own.
    """
    rows = _in_order(table)
    number = table.jobset if rows is None else table.jobset[rows]
    edges = np.concatenate([[0], np.flatnonzero(np.diff(number)) + 1, [len(number)]])
    most = max(1, min(ABREAST, STEPS_ABREAST // horizon))
    begin = 0
    while begin < len(edges) - 1:
        full = int(np.searchsorted(edges, edges[begin] + jobs, side="right")) - 1
        end = min(max(begin + 1, full), begin + most, len(edges) - 1)
        at = slice(edges[begin], edges[end])
        mine = at if rows is None else rows[at]
        estimate = None if table.estimate is None else table.estimate[mine]
        columns = (table.arrival[mine], table.duration[mine], table.demand[mine], estimate)
        yield Part(np.arange(begin, end), mine, JobBatch(edges[begin : end + 1] - edges[begin], *columns))
        begin = end


def _in_order(table: JobTable) -> IntArray | None:
    """Return the rows [J] by jobset and arrival; None where they stand so already."""
    later, same = np.diff(table.jobset) > 0, np.diff(table.jobset) == 0
    if (later | (same & (np.diff(table.arrival) >= 0))).all():
        return None
    return np.lexsort((table.arrival, table.jobset))
