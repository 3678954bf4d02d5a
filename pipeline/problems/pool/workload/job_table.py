"""A user's own jobs: a table or a log of any length, in compact columns, and in parts that are played side by side.

Columns: jobset, job (ids of any kind), arrival, duration and, where policies are told it, estimate (whole steps), and
one per resource (whole units). Rows may stand in any order; jobs of a jobset that arrive in one step are revealed in
the order in which they stand.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.core import IntArray
from pipeline.problems.pool.nouns import JobBatch

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
