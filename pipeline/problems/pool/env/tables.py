"""Tables of one pooled cluster that is scheduled in steps."""

from collections.abc import Iterable, Mapping

import pandera.pandas as pa

from pipeline.core.schemas import ResultTables
from pipeline.core.schemas.columns import KEYS, integers, job_rules, numbers, table
from pipeline.core.schemas.tables import STREAM_BACKLOG, STREAM_FAIRNESS

LAST_ARRIVAL = 10**12  # step of a user's job; sums of more could overflow


def jobs_schema(resources: Iterable[str], estimates: bool = False) -> pa.DataFrameSchema:
    """Return the schema of jobsets: sorted by (load, jobset), jobs numbered from 0 in order of arrival.

    Each resource has a column, and so do estimates if there are any.
    """
    least = {"load": 1, "jobset": 0, "job": 0, "arrival": 0, "duration": 1} | dict.fromkeys(resources, 0)
    least |= {"estimate": 1} if estimates else {}
    columns = {name: integers(low) for name, low in least.items()}
    return table("Jobs", columns, [], job_rules())


# Results of each job under each policy; finish and slowdown of an unfinished job are lower bounds. For streams: only
# measured jobs, numbered as in their jobset; those that never started are unfinished.
JOB_RESULTS = table(
    "JobResults",
    {
        "policy": pa.Column(str),
        "load": integers(1),
        "jobset": integers(0),
        "job": integers(0),
        "duration": integers(1),
        "start": integers(-1),
        "finish": integers(1),
        "withheld": integers(0),
        "slowdown": numbers(1.0),
        "unfinished": pa.Column(bool),
    },
    [*KEYS, "job"],
)

# Results of each policy on each jobset, the unit of every comparison. For streams, all columns but `makespan` and
# `not_work_conserving` refer to the measured jobs and steps.
JOBSET_RESULTS = table(
    "JobsetResults",
    {
        "policy": pa.Column(str),
        "load": integers(1),
        "jobset": integers(0),
        "jobs": integers(1),
        "mean_slowdown": numbers(1.0),
        "p50_slowdown": numbers(1.0),
        "p99_slowdown": numbers(1.0),
        "worst_slowdown": numbers(1.0),
        "longest_wait": integers(0),  # steps from arrival to start; a lower bound for a job that never started
        "completion_time": numbers(1.0),
        "makespan": integers(1),
        "utilisation": numbers(0.0),
        "not_work_conserving": numbers(0.0),
        "unfinished": integers(0),
    },
    KEYS,
)


def user_job_columns(resources: Mapping[str, int], horizon: int) -> dict[str, pa.Column]:
    """Return the columns of a user's own job table: demands within `resources`, run times within the horizon."""
    times = {"arrival": integers(0, LAST_ARRIVAL), "duration": integers(1, horizon), "estimate": integers(1, horizon)}
    return times | {name: integers(0, units) for name, units in resources.items()}


# Output of `schedule`.
SCHEDULE = table(
    "Schedule",
    {"jobset": pa.Column(), "job": pa.Column(), "start": integers(0), "finish": integers(1), "slowdown": numbers(1.0)},
    ["jobset", "job"],
)

TABLES = ResultTables(
    JOB_RESULTS, JOBSET_RESULTS, {"backlog": STREAM_BACKLOG, "fairness": STREAM_FAIRNESS}
)  # of streams
