"""Tables of scenarios of many machines; times are those of the jobs, amounts thousandths of a unit."""

from collections.abc import Iterable

import pandera.pandas as pa

from pipeline.core.schemas import ResultTables
from pipeline.core.schemas.columns import (
    KEYS,
    above_zero,
    integers,
    numbers,
    table,
    timed_job_results,
    timed_jobs,
    timed_jobset_results,
)


def jobs_schema(resources: Iterable[str]) -> pa.DataFrameSchema:
    """Return the schema of jobsets; `kinds` are bits of the kinds of machines that a job runs on."""
    return timed_jobs({"nodes": integers(1), "kinds": integers(1)}, resources, "MachinesJobs")


# Outcome of each job under each policy. The values of an unfinished job are lower bounds at the limit; a job that never
# started has no start, and its machine is -1.
JOB_RESULTS = table("MachinesJobResults", timed_job_results({}, {"machine": integers(-1)}), [*KEYS, "job"])

# Each policy on each jobset; the unit of every comparison.
JOBSET_RESULTS = table(
    "MachinesJobsetResults",
    timed_jobset_results(area_weighted_response=numbers(0.0), makespan=above_zero(), utilisation=numbers(0.0)),
    KEYS,
)

# Metrics that only scenarios of many machines have, of each policy at each load; the others are in the summary of all.
SUMMARY = table(
    "MachinesSummary",
    {
        **{"scenario": pa.Column(str), "load": integers(1), "policy": pa.Column(str), "n": integers(1)},
        **{"jobs": integers(1), "bounded_slowdown": numbers(1.0)},
        **{name: numbers(0.0) for name in ("wait", "p99_wait", "longest_wait", "completion_time")},
        **{"makespan": above_zero(), "area_weighted_response": numbers(0.0), "unfinished": integers(0)},
        "from_end": pa.Column(bool),  # a gain over the best heuristic of the load that comes from the end of episodes
    },
    ["scenario", "load", "policy"],
)

TABLES = ResultTables(JOB_RESULTS, JOBSET_RESULTS)

LATEST, MOST_NODES, MOST_UNITS = 1e12, 1_000_000, 1e9  # of a user's jobs


def user_job_columns(resources: Iterable[str]) -> dict[str, pa.Column]:
    """Return the columns of a user's own job table; amounts of `resources` are units, on each of a job's nodes."""

    def up_to(most: float, column: pa.Column) -> pa.Column:
        column.checks = [*column.checks, pa.Check.le(most, error=f"at most {most:g}")]
        return column

    return {
        "arrival": up_to(LATEST, numbers(0.0)),
        **{name: up_to(LATEST, above_zero()) for name in ("duration", "estimate")},
        "nodes": integers(1, MOST_NODES),
        **{name: up_to(MOST_UNITS, numbers(0.0)) for name in resources},
    }


# What `schedule` writes, in the order of the job table; times are those of the jobs.
MEASURED = ("start", "finish", "wait", "slowdown", "bounded_slowdown")
SCHEDULE = table(
    "Schedule",
    {"jobset": pa.Column(), "job": pa.Column()}
    | {name: numbers(1.0 if "slowdown" in name else 0.0) for name in MEASURED}
    | {"machine": integers(0), "nodes": integers(1)},  # the first that it runs on, from 0, and how many in all
    ["jobset", "job"],
)
