"""Columns and checks shared by tables."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
import pandera.pandas as pa

KEYS = ["policy", "load", "jobset"]


def integers(low: int, high: int | None = None) -> pa.Column:
    """Return a column of whole numbers within bounds."""
    checks = [pa.Check.ge(low, error=f"at least {low}")]
    checks += [pa.Check.le(high, error=f"at most {high}")] if high is not None else []
    return pa.Column("int64", checks)


def numbers(low: float, nullable: bool = False) -> pa.Column:
    """Return a column of finite numbers that are at least a bound."""
    checks = [pa.Check.ge(low, error=f"at least {low:g}"), pa.Check(np.isfinite, error="finite")]
    return pa.Column("float64", checks, nullable=nullable)


def finite(nullable: bool = False) -> pa.Column:
    """Return a column of finite numbers."""
    return pa.Column("float64", pa.Check(np.isfinite, error="finite"), nullable=nullable)


def above_zero() -> pa.Column:
    """Return a column of finite numbers above 0."""
    return pa.Column("float64", [pa.Check.gt(0, error="above 0"), pa.Check(np.isfinite, error="finite")])


def timed_jobs(own: Mapping[str, pa.Column], resources: Iterable[str], name: str) -> pa.DataFrameSchema:
    """Return the schema of jobsets in continuous time: sorted by (load, jobset), jobs numbered from 0 by arrival."""
    columns = {"load": integers(1), "jobset": integers(0), "job": integers(0), "arrival": numbers(0.0)}
    columns |= {"duration": above_zero(), "estimate": above_zero(), **own} | {name: integers(0) for name in resources}
    return pa.DataFrameSchema(columns, checks=job_rules(), strict=True, ordered=True, name=name)


def timed_job_results(first: Mapping[str, pa.Column], last: Mapping[str, pa.Column]) -> dict[str, pa.Column]:
    """Return the result columns of jobs in continuous time, between a problem's own first and last columns.

    The values of an unfinished job are lower bounds at the cut; a job that never started has no start.
    """
    numbered = {"policy": pa.Column(str), "load": integers(1), "jobset": integers(0), "job": integers(0)}
    times = {"arrival": numbers(0.0), "duration": above_zero(), "start": numbers(0.0, nullable=True)}
    slowdowns = {"slowdown": numbers(1.0), "bounded_slowdown": numbers(1.0)}
    ends = {"finish": numbers(0.0), "wait": numbers(0.0)}
    return {**numbered, **first, **times, **ends, **slowdowns, **last, "unfinished": pa.Column(bool)}


def timed_jobset_results(**also: pa.Column) -> dict[str, pa.Column]:
    """Return the result columns of jobsets in continuous time, with others inserted before `unfinished`."""
    slowdowns = ("mean_slowdown", "p50_slowdown", "p99_slowdown", "worst_slowdown", "mean_bounded_slowdown")
    times = ("mean_wait", "p99_wait", "longest_wait", "completion_time")
    numbered = {"policy": pa.Column(str), "load": integers(1), "jobset": integers(0), "jobs": integers(1)}
    measured = {name: numbers(1.0) for name in slowdowns} | {name: numbers(0.0) for name in times}
    return {**numbered, **measured, **also, "unfinished": integers(0)}


def share(nullable: bool = False) -> pa.Column:
    """Return a column of shares."""
    return pa.Column("float64", pa.Check.in_range(0.0, 1.0, error="within 0 and 1"), nullable=nullable)


def job_rules() -> list[pa.Check]:
    """Return the checks on the jobs of every jobset."""
    return [
        pa.Check(
            lambda frame: frame["job"].diff().where(_same_jobset(frame), frame["job"] + 1) == 1,
            error="jobs of a jobset are numbered 0, 1, 2, ...",
        ),
        pa.Check(
            lambda frame: frame["arrival"].diff().where(_same_jobset(frame), 0) >= 0,
            error="arrivals of a jobset never fall",
        ),
    ]


def table(
    name: str, columns: dict[str, pa.Column], unique: Collection[str], checks: Sequence[pa.Check] = ()
) -> pa.DataFrameSchema:
    """Return the schema of a table with exactly these columns in this order."""
    return pa.DataFrameSchema(columns, list(checks), strict=True, ordered=True, unique=list(unique) or None, name=name)


def empty(schema: pa.DataFrameSchema) -> pd.DataFrame:
    """Return a table without rows."""
    return pd.DataFrame({name: pd.Series(dtype=str(kind)) for name, kind in schema.dtypes.items()})


def _same_jobset(frame: pd.DataFrame) -> pd.Series:
    return (frame["load"].diff() == 0) & (frame["jobset"].diff() == 0)
