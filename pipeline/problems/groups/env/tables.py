"""Tables of user groups that share a cluster; times have the unit of the jobs, amounts are whole units."""

from collections.abc import Iterable

import pandera.pandas as pa

from pipeline.core.config import GroupsScenario
from pipeline.core.schemas import ResultTables
from pipeline.core.schemas.columns import (
    KEYS,
    above_zero,
    finite,
    integers,
    numbers,
    share,
    table,
    timed_job_results,
    timed_jobs,
    timed_jobset_results,
)


def jobs_schema(resources: Iterable[str]) -> pa.DataFrameSchema:
    """Return the schema of jobsets."""
    return timed_jobs({"group": integers(0), "queue": integers(0)}, resources, "Jobs")


def user_job_columns(scenario: GroupsScenario) -> dict[str, pa.Column]:
    """Return the columns of a user's own job table; queues are named, or numbered from 0."""
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
    """Return the schema of each group's share and use of each resource, in units, interval by interval."""
    columns = {"jobset": pa.Column(str), "begin": numbers(0.0), "group": integers(0), "waiting": integers(0)}
    columns |= {f"share_{name}": integers(0) for name in resources}
    columns |= {f"used_{name}": numbers(0.0) for name in resources}  # mean over the interval
    return table("Shares", columns, ["jobset", "begin", "group"])


POLICY = {"policy": pa.Column(str), "load": integers(1), "jobset": integers(0)}
SCENARIO = {"scenario": pa.Column(str), "load": integers(1), "policy": pa.Column(str)}


# Results of each job under each policy; unfinished jobs have lower bounds. A job that never started has no start.
JOB_RESULTS = table(
    "GroupJobResults", timed_job_results({"group": integers(0), "queue": integers(0)}, {}), [*KEYS, "job"]
)

# Results of each policy on each jobset, the unit of every comparison.
JOBSET_RESULTS = table(
    "GroupJobsetResults",
    timed_jobset_results(
        makespan=above_zero(),
        utilisation=numbers(0.0),
        jain_wait=share(),
        jain_slowdown=share(),
        reward=finite(),  # of the cluster, mean over intervals
    ),
    KEYS,
)

# Results of each group that has jobs, in each jobset.
GROUP_RESULTS = table(
    "GroupResults",
    POLICY
    | {
        "group": integers(0),
        "jobs": integers(1),
        "mean_wait": numbers(0.0),
        **{name: numbers(1.0) for name in ("mean_slowdown", "p99_slowdown", "mean_bounded_slowdown")},
        "p99_wait": numbers(0.0),
        "unfinished": integers(0),
    },
    [*KEYS, "group"],
)

# The share of each group, interval by interval, and its consequences.
INTERVALS = table(
    "GroupIntervals",
    POLICY
    | {
        "interval": integers(0),
        "group": integers(0),
        "share": numbers(0.0),
        "used": share(),
        "waiting": integers(0),
        "cost": numbers(0.0),
        "reward": finite(),
        "q": finite(nullable=True),  # expectation of the controller; rules have none
        "realised": finite(nullable=True),
    },
    [*KEYS, "interval", "group"],
)

# Metrics of each policy at each load that only scenarios of groups have.
GROUPS_SUMMARY = table(
    "GroupSummary",
    SCENARIO
    | {
        "n": integers(1),
        "jobs": integers(1),
        **{name: numbers(0.0) for name in ("delay", "p99_delay", "longest_delay")},
        "bounded_slowdown": numbers(1.0),
        "jain_delay": share(),
        "jain_slowdown": share(),
        "reward": finite(),
        "unfinished": integers(0),
    },
    ["scenario", "load", "policy"],
)

# Results of each group under each policy at each load.
GROUPS_FAIRNESS = table(
    "GroupFairness",
    SCENARIO
    | {
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
        "n": integers(1),  # states
        "decisions": integers(1),  # of the log
        # Discounted cost after the takeover, estimated and true; relative error of the estimate.
        **{name: finite() for name in ("estimate", "low", "high", "truth", "truth_low", "truth_high", "error")},
    },
    ["policy"],
)

TABLES = ResultTables(
    JOB_RESULTS,
    JOBSET_RESULTS,
    {"groups": GROUP_RESULTS, "intervals": INTERVALS, "off_policy": OFF_POLICY},
)
