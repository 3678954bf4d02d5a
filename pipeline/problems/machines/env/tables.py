"""Tables of scenarios of many machines; times have the unit of the jobs, amounts are thousandths of a unit."""

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
    """Return the schema of jobsets; the bits of `kinds` are the kinds of machines that a job may run on."""
    return timed_jobs({"nodes": integers(1), "kinds": integers(1)}, resources, "MachinesJobs")


# Outcome of each job under each policy. The values of an unfinished job are lower bounds, from the time limit; a job
# that never started has no start, and its machine is -1.
JOB_RESULTS = table("MachinesJobResults", timed_job_results({}, {"machine": integers(-1)}), [*KEYS, "job"])

# Results of each policy on each jobset, the unit of every comparison.
JOBSET_RESULTS = table(
    "MachinesJobsetResults",
    timed_jobset_results(area_weighted_response=numbers(0.0), makespan=above_zero(), utilisation=numbers(0.0)),
    KEYS,
)

# Metrics of each policy at each load that only many machines have; the other metrics are in the general summary.
SUMMARY = table(
    "MachinesSummary",
    {
        **{"scenario": pa.Column(str), "load": integers(1), "policy": pa.Column(str), "n": integers(1)},
        **{"jobs": integers(1), "bounded_slowdown": numbers(1.0)},
        **{name: numbers(0.0) for name in ("wait", "p99_wait", "longest_wait", "completion_time")},
        **{"makespan": above_zero(), "area_weighted_response": numbers(0.0), "unfinished": integers(0)},
        "from_end": pa.Column(bool),  # gains over the best heuristic by late ends of episodes (`metrics.from_end`)
    },
    ["scenario", "load", "policy"],
)

TABLES = ResultTables(JOB_RESULTS, JOBSET_RESULTS)

LATEST, MOST_NODES, MOST_UNITS = 1e12, 1_000_000, 1e9  # of a user's jobs


def user_job_columns(resources: Iterable[str]) -> dict[str, pa.Column]:
    """Return the columns of a user's own job table; amounts of `resources` are in units, for each node of a job."""

    def up_to(most: float, column: pa.Column) -> pa.Column:
        column.checks = [*column.checks, pa.Check.le(most, error=f"at most {most:g}")]
        return column

    return {
        "arrival": up_to(LATEST, numbers(0.0)),
        **{name: up_to(LATEST, above_zero()) for name in ("duration", "estimate")},
        "nodes": integers(1, MOST_NODES),
        **{name: up_to(MOST_UNITS, numbers(0.0)) for name in resources},
    }


# Output of `schedule`, in the order of the job table; times have the unit of the jobs.
MEASURED = ("start", "finish", "wait", "slowdown", "bounded_slowdown")
SCHEDULE = table(
    "Schedule",
    {"jobset": pa.Column(), "job": pa.Column()}
    | {name: numbers(1.0 if "slowdown" in name else 0.0) for name in MEASURED}
    | {"machine": integers(0), "nodes": integers(1)},  # the job's first machine, from 0, and the number of its machines
    ["jobset", "job"],
)
