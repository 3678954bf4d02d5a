"""pandera models of every table that crosses a stage: strict, checked when written and when read.

A table whose columns depend on the scenario (one per resource) has a function that builds its schema.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
import pandera.pandas as pa

LAST_ARRIVAL = 10**12  # step of a user's job; sums of more could overflow
KEYS = ["policy", "load", "jobset"]


def jobs_schema(resources: Iterable[str]) -> pa.DataFrameSchema:
    """Return the schema of jobsets: sorted by (load, jobset), jobs numbered from 0 in order of arrival."""
    whole = {"load": (1, None), "jobset": (0, None), "job": (0, None), "arrival": (0, None), "duration": (1, None)}
    columns = {name: _integers(*bounds) for name, bounds in whole.items()}
    columns |= {name: _integers(0, None) for name in resources}
    checks = [
        pa.Check(_jobs_are_numbered, error="jobs of a jobset are numbered 0, 1, 2, ..."),
        pa.Check(_arrivals_never_fall, error="arrivals of a jobset never fall"),
    ]
    return pa.DataFrameSchema(columns, checks=checks, strict=True, ordered=True, name="Jobs")


def _integers(low: int, high: int | None) -> pa.Column:
    checks = [pa.Check.ge(low, error=f"at least {low}")]
    checks += [pa.Check.le(high, error=f"at most {high}")] if high is not None else []
    return pa.Column("int64", checks)


def _numbers(low: float) -> pa.Column:
    return pa.Column("float64", [pa.Check.ge(low, error=f"at least {low:g}"), pa.Check(np.isfinite, error="finite")])


def _same_jobset(frame: pd.DataFrame) -> pd.Series:
    return (frame["load"].diff() == 0) & (frame["jobset"].diff() == 0)


def _jobs_are_numbered(frame: pd.DataFrame) -> pd.Series:
    return frame["job"].diff().where(_same_jobset(frame), frame["job"] + 1) == 1


def _arrivals_never_fall(frame: pd.DataFrame) -> pd.Series:
    return frame["arrival"].diff().where(_same_jobset(frame), 0) >= 0


# What became of each job under each policy; finish and slowdown of an unfinished job are the cap's lower bound.
JOB_RESULTS = pa.DataFrameSchema(
    {
        "policy": pa.Column(str),
        "load": _integers(1, None),
        "jobset": _integers(0, None),
        "job": _integers(0, None),
        "duration": _integers(1, None),
        "start": _integers(-1, None),
        "finish": _integers(1, None),
        "withheld": _integers(0, None),
        "slowdown": _numbers(1.0),
        "unfinished": pa.Column(bool),
    },
    strict=True,
    ordered=True,
    unique=[*KEYS, "job"],
    name="JobResults",
)

# Each policy on each jobset; the unit of every comparison.
JOBSET_RESULTS = pa.DataFrameSchema(
    {
        "policy": pa.Column(str),
        "load": _integers(1, None),
        "jobset": _integers(0, None),
        "jobs": _integers(1, None),
        "mean_slowdown": _numbers(1.0),
        "p50_slowdown": _numbers(1.0),
        "p99_slowdown": _numbers(1.0),
        "worst_slowdown": _numbers(1.0),
        "completion_time": _numbers(1.0),
        "makespan": _integers(1, None),
        "utilisation": _numbers(0.0),
        "not_work_conserving": _numbers(0.0),
        "unfinished": _integers(0, None),
    },
    strict=True,
    ordered=True,
    unique=KEYS,
    name="JobsetResults",
)

# A learning curve: one row per (update, metric).
CURVE = pa.DataFrameSchema(
    {
        "update": _integers(0, None),
        "metric": pa.Column(str),
        "value": pa.Column("float64", pa.Check(np.isfinite, error="finite")),
    },
    strict=True,
    ordered=True,
    unique=["update", "metric"],
    name="Curve",
)

# Paired comparison of a policy with another one; load "all" is the mean over loads. Differences are relative.
COMPARISON = pa.DataFrameSchema(
    {
        "scenario": pa.Column(str),
        "load": pa.Column(str),
        "policy": pa.Column(str),
        "against": pa.Column(str),
        "n": _integers(1, None),
        "mean": _numbers(1.0),
        "low": _numbers(0.0),
        "high": _numbers(0.0),
        "mean_against": _numbers(1.0),
        "difference": pa.Column("float64"),
        "difference_low": pa.Column("float64"),
        "difference_high": pa.Column("float64"),
        "unfinished": _integers(0, None),
    },
    strict=True,
    ordered=True,
    unique=["scenario", "load", "policy", "against"],
    name="Comparison",
)

# Metrics of each policy at each load, beside its slowdown.
SUMMARY = pa.DataFrameSchema(
    {
        "scenario": pa.Column(str),
        "load": _integers(1, None),
        "policy": pa.Column(str),
        "n": _integers(1, None),
        "jobs": _integers(1, None),
        "slowdown": _numbers(1.0),
        "slowdown_low": _numbers(0.0),
        "slowdown_high": _numbers(0.0),
        "p50_slowdown": _numbers(1.0),
        "p99_slowdown": _numbers(1.0),
        "worst_slowdown": _numbers(1.0),
        "completion_time": _numbers(1.0),
        "makespan": _numbers(1.0),
        "utilisation": _numbers(0.0),
        "not_work_conserving": _numbers(0.0),
        "unfinished": _integers(0, None),
    },
    strict=True,
    ordered=True,
    unique=["scenario", "load", "policy"],
    name="Summary",
)

# What the papers claim beside what our results say; a figure that could not be drawn has rows all the same.
AGREES = ("yes", "no", "partly", "cannot be told")
PAPERS = pa.DataFrameSchema(
    {
        "figure": pa.Column(str, pa.Check.str_matches(r"^[a-z0-9_]+$", error="a file's stem")),
        "title": pa.Column(str),
        "paper": pa.Column(str),
        "claim": pa.Column(str),
        "found": pa.Column(str),
        "agrees": pa.Column(str, pa.Check.isin(AGREES, error=f"one of {', '.join(AGREES)}")),
    },
    strict=True,
    ordered=True,
    unique=["figure", "paper", "claim"],
    name="Papers",
)


def user_jobs_schema(resources: Mapping[str, int], horizon: int) -> pa.DataFrameSchema:
    """Return the schema of a user's own job table: demands within `resources`, durations within the horizon."""
    columns = {"jobset": pa.Column(nullable=False), "job": pa.Column(nullable=False)}
    columns |= {"arrival": _integers(0, LAST_ARRIVAL), "duration": _integers(1, horizon)}
    columns |= {name: _integers(0, units) for name, units in resources.items()}
    return pa.DataFrameSchema(columns, strict=True, unique=["jobset", "job"], name="UserJobs")


# What `schedule` writes.
SCHEDULE = pa.DataFrameSchema(
    {
        "jobset": pa.Column(),
        "job": pa.Column(),
        "start": _integers(0, None),
        "finish": _integers(1, None),
        "slowdown": _numbers(1.0),
    },
    strict=True,
    ordered=True,
    unique=["jobset", "job"],
    name="Schedule",
)
