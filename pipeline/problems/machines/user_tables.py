"""Tables of a user's own jobs on many machines: what they are read from, and the schedule that is written."""

from collections.abc import Collection, Iterable

import pandera.pandas as pa

from pipeline.schemas.columns import above_zero, integers, numbers

LATEST, MOST_NODES, MOST_UNITS = 1e12, 1_000_000, 1e9
OPTIONAL = ("jobset", "estimate", "nodes")


def _up_to(most: float, above: bool = False) -> pa.Column:
    column = above_zero() if above else numbers(0.0)
    column.checks = [*column.checks, pa.Check.le(most, error=f"at most {most:g}")]
    return column


def user_jobs_schema(resources: Iterable[str], optional: Collection[str]) -> pa.DataFrameSchema:
    """Return the schema of a job table; amounts are units, on each of a job's nodes.

    Args:
        resources: that the machines have.
        optional: those columns of OPTIONAL that the table has.
    """
    columns = {"jobset": pa.Column(nullable=False), "job": pa.Column(nullable=False)}
    columns |= {"arrival": _up_to(LATEST), "duration": _up_to(LATEST, above=True)}
    columns |= {"estimate": _up_to(LATEST, above=True), "nodes": integers(1, MOST_NODES)}
    columns |= {name: _up_to(MOST_UNITS) for name in resources}
    there = {name: column for name, column in columns.items() if name not in OPTIONAL or name in optional}
    unique = [name for name in ("jobset", "job") if name in there]
    return pa.DataFrameSchema(there, strict=True, unique=unique, name="UserJobs")


# What `schedule` writes, in the order of the job table; times are those of the jobs.
SCHEDULE = pa.DataFrameSchema(
    {
        "jobset": pa.Column(),
        "job": pa.Column(),
        "start": numbers(0.0),
        "finish": numbers(0.0),
        "wait": numbers(0.0),
        "slowdown": numbers(1.0),
        "bounded_slowdown": numbers(1.0),
        "machine": integers(0),  # the first that it runs on, as the scenario counts them, from 0
        "nodes": integers(1),  # how many it runs on
    },
    strict=True,
    ordered=True,
    unique=["jobset", "job"],
    name="Schedule",
)
