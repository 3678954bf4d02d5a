"""Tables of user groups that share a cluster; times are those of the jobs, amounts whole units."""

from collections.abc import Iterable

import numpy as np
import pandera.pandas as pa

from pipeline.config import GroupsScenario
from pipeline.schemas import ResultTables
from pipeline.schemas.columns import (
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
    """Return the schema of jobsets."""
    return timed_jobs({"group": integers(0), "queue": integers(0)}, resources, "Jobs")


def user_job_columns(scenario: GroupsScenario) -> dict[str, pa.Column]:
    """Return the columns of a user's own job table; queues by their names, or numbers from 0."""
    known = [*scenario.queues, *(str(place) for place in range(len(scenario.queues)))]
    queues = pa.Check.isin(known, error=f"one of {', '.join(scenario.queues)}")
    return (
        {"arrival": numbers(0.0), "duration": above_zero(), "estimate": above_zero()}
        | {name: integers(0, units) for name, units in scenario.resources.items()}
        | {"group": integers(0, scenario.groups - 1), "queue": pa.Column(str, queues)}
    )


# Output of `schedule`; a job that never started has no times.
SCHEDULE = table(
    "Schedule",
    {
        "jobset": pa.Column(),
        "job": pa.Column(),
        "group": integers(0),
        "queue": pa.Column(str),
        "start": numbers(0.0, nullable=True),
        "finish": numbers(0.0, nullable=True),
        "slowdown": numbers(1.0, nullable=True),
        "wait": numbers(0.0, nullable=True),
    },
    ["jobset", "job"],
)


def shares_schema(resources: Iterable[str]) -> pa.DataFrameSchema:
    """Return the schema of shares and use of groups, in units of each resource, interval by interval."""
    columns = {"jobset": pa.Column(str), "begin": numbers(0.0), "group": integers(0), "waiting": integers(0)}
    columns |= {f"share_{name}": integers(0) for name in resources}
    columns |= {f"used_{name}": numbers(0.0) for name in resources}  # mean over the interval
    return table("Shares", columns, ["jobset", "begin", "group"])


def _finite(nullable: bool = False) -> pa.Column:
    return pa.Column("float64", pa.Check(np.isfinite, error="finite"), nullable=nullable)


def _share() -> pa.Column:
    return pa.Column("float64", [pa.Check.ge(0, error="at least 0"), pa.Check.le(1, error="at most 1")])


# Each job under each policy; unfinished jobs have a lower bound. A job that never started has no start.
JOB_RESULTS = table(
    "GroupJobResults", timed_job_results({"group": integers(0), "queue": integers(0)}, {}), [*KEYS, "job"]
)

# Each policy on each jobset: the unit of every comparison.
JOBSET_RESULTS = table(
    "GroupJobsetResults",
    timed_jobset_results(
        makespan=above_zero(),
        utilisation=numbers(0.0),
        jain_wait=_share(),
        jain_slowdown=_share(),
        reward=_finite(),  # of the cluster, mean over intervals
    ),
    KEYS,
)

# Each group with jobs, in each jobset.
GROUP_RESULTS = table(
    "GroupResults",
    {
        "policy": pa.Column(str),
        "load": integers(1),
        "jobset": integers(0),
        "group": integers(0),
        "jobs": integers(1),
        "mean_wait": numbers(0.0),
        "mean_slowdown": numbers(1.0),
        "p99_slowdown": numbers(1.0),
        "mean_bounded_slowdown": numbers(1.0),
        "p99_wait": numbers(0.0),
        "unfinished": integers(0),
    },
    [*KEYS, "group"],
)

# The share of each group, interval by interval, and its consequences.
INTERVALS = table(
    "GroupIntervals",
    {
        "policy": pa.Column(str),
        "load": integers(1),
        "jobset": integers(0),
        "interval": integers(0),
        "group": integers(0),
        "share": numbers(0.0),
        "used": _share(),
        "waiting": integers(0),
        "cost": numbers(0.0),
        "reward": _finite(),
        "q": _finite(nullable=True),  # expectation of the controller; rules have none
        "realised": _finite(nullable=True),
    },
    [*KEYS, "interval", "group"],
)

# Metrics of each policy at each load that only scenarios of groups have.
GROUPS_SUMMARY = table(
    "GroupSummary",
    {
        "scenario": pa.Column(str),
        "load": integers(1),
        "policy": pa.Column(str),
        "n": integers(1),
        "jobs": integers(1),
        "delay": numbers(0.0),
        "p99_delay": numbers(0.0),
        "longest_delay": numbers(0.0),
        "bounded_slowdown": numbers(1.0),
        "jain_delay": _share(),
        "jain_slowdown": _share(),
        "reward": _finite(),
        "unfinished": integers(0),
    },
    ["scenario", "load", "policy"],
)

# Each group under each policy at each load.
GROUPS_FAIRNESS = table(
    "GroupFairness",
    {
        "scenario": pa.Column(str),
        "load": integers(1),
        "policy": pa.Column(str),
        "group": integers(0),
        "jobs": integers(1),
        "delay": numbers(0.0),
        "slowdown": numbers(1.0),
        "p99_slowdown": numbers(1.0),
    },
    ["scenario", "load", "policy", "group"],
)

# Cost of a controller estimated from logged decisions of others, and by the simulator.
OFF_POLICY = table(
    "OffPolicy",
    {
        "policy": pa.Column(str),
        "n": integers(1),  # states that the value is a mean over
        "decisions": integers(1),  # of the log
        "estimate": _finite(),  # discounted cost from there on
        "low": _finite(),
        "high": _finite(),
        "truth": _finite(),
        "truth_low": _finite(),
        "truth_high": _finite(),
        "error": _finite(),  # of the estimate, relative to the truth
    },
    ["policy"],
)

TABLES = ResultTables(
    JOB_RESULTS,
    JOBSET_RESULTS,
    {"groups": GROUP_RESULTS, "intervals": INTERVALS, "off_policy": OFF_POLICY},
)
