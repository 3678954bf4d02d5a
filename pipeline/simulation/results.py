"""Results of policies on jobsets, their cost by an objective, job outcomes in continuous time; for all problems.

Slowdown = time from arrival to completion over run time. For bounded slowdown, no job counts as shorter than 10 time
units (Feitelson), and the minimum is 1. A job that was cut off counts as if it had ended, or had started, at the cut:
a lower bound. It is flagged, so that no policy gains by leaving jobs undone. Percentiles and the worst job of a jobset
refer to bounded slowdown.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.core.schemas import empty
from pipeline.core.types import SHORTEST_BOUNDED, BoolArray, FloatArray, IntArray, Policy, TimeArray

PLAIN, BOUNDED = "mean_slowdown", "mean_bounded_slowdown"  # columns of jobset results
MOST_JOBSETS = 1_000_000  # per load; keeps the keys of (load, jobset) apart


# Column of the jobset table for each objective, and the sign that makes lower values better.
COST_COLUMNS = {
    "slowdown": ("mean_slowdown", 1),
    "bounded_slowdown": ("mean_bounded_slowdown", 1),
    "completion_time": ("completion_time", 1),
    "makespan": ("makespan", 1),
    "utilisation": ("utilisation", -1),
    "delay": ("mean_wait", 1),
}


class Results(NamedTuple):
    """Tables of all jobs and of all jobsets."""

    jobs: pd.DataFrame
    jobsets: pd.DataFrame
    others: Mapping[str, pd.DataFrame] = {}  # tables that only some problems have, by name

    @property
    def by_load(self) -> dict[int, float]:
        """Return the slowdown at each load: the mean over jobsets of the jobset's mean."""
        return self.mean_by_load(slowdown_column(self.jobsets))

    def mean_by_load(self, column: str) -> dict[int, float]:
        """Return the mean over jobsets of a column of their table, at each load."""
        means = self.jobsets.groupby("load")[column].mean()
        return {int(load): float(mean) for load, mean in zip(means.index, means, strict=True)}

    @property
    def curves(self) -> dict[str, dict[int, float]]:
        """Return the curves over loads that figures show: mean slowdown and, in continuous time, mean waiting time."""
        drawn = {"slowdown": self.by_load}
        return drawn | {"delay": self.mean_by_load("mean_wait")} if BOUNDED in self.jobsets else drawn

    @property
    def mean(self) -> float:
        """Return the mean slowdown over loads."""
        return float(np.mean(list(self.by_load.values())))


def tables_of(results: Mapping[str, Results]) -> dict[str, pd.DataFrame]:
    """Return the tables that only some problems have, by name; each holds the rows of all policies."""
    names = dict.fromkeys(name for done in results.values() for name in done.others)
    return {name: pd.concat([done.others[name] for done in results.values()], ignore_index=True) for name in names}


def mean_cost(results: Results, objective: str) -> float:
    """Return the cost of results by an objective (less is better): the mean over loads of the mean over jobsets."""
    column, sign = COST_COLUMNS[objective]
    return sign * float(results.jobsets.groupby("load")[column].mean().mean())


Play = Callable[[Mapping[str, Policy]], dict[str, Results]]  # plays all policies at once on validation jobsets


def slowdown_column(jobsets: pd.DataFrame) -> str:
    """Return the column of jobset results for comparing slowdown: the bounded one in continuous time.

    Otherwise jobs of one second would dominate. In steps no job is shorter than one.
    """
    return BOUNDED if BOUNDED in jobsets else PLAIN


def best_of(results: Mapping[str, Results], column: str | None = None) -> dict[int, str]:
    """Return the policy with the least mean of a column of jobset results at each load; None: of slowdown."""
    means = {name: done.mean_by_load(column or slowdown_column(done.jobsets)) for name, done in results.items()}
    loads = next(iter(means.values()))
    return {load: min(means, key=lambda name: means[name][load]) for load in loads}


def best_single(results: Mapping[str, Results]) -> dict[int, str]:
    """Return the policy with the least mean slowdown over all loads, repeated for each load."""
    best = min(results, key=lambda name: results[name].mean)
    return dict.fromkeys(results[best].by_load, best)


def percentile(ordered: FloatArray, first: IntArray, share: float) -> FloatArray:
    """Return the linear percentile of each segment first[b] : first[b + 1] of values that ascend within it.

    >>> percentile(np.array([1.0, 2.0, 4.0, 7.0]), np.array([0, 3, 4]), 0.75)
    array([3., 7.])
    """
    last = first[1:] - 1
    place = share * (last - first[:-1])
    below = np.floor(place).astype(np.int64)
    low = first[:-1] + below
    left, right = ordered[low], ordered[np.minimum(low + 1, last)]
    return np.asarray(left + (right - left) * (place - below))


class Jobs(Protocol):
    """The jobs of B episodes end to end."""

    @property
    def first(self) -> IntArray:
        """First job of each episode, and the number of jobs [B + 1]."""

    @property
    def episode(self) -> IntArray:
        """Episode [J] of each job."""

    @property
    def arrival(self) -> TimeArray:
        """Time [J]."""

    @property
    def duration(self) -> TimeArray:
        """Run time [J]."""


class Outcome(NamedTuple):
    """Outcome of every job."""

    finish: FloatArray  # [J]
    wait: FloatArray  # [J]
    slowdown: FloatArray  # [J]
    bounded_slowdown: FloatArray  # [J]
    unfinished: BoolArray  # [J]


def outcome_of(jobs: Jobs, start: FloatArray, finish: FloatArray, cut: FloatArray) -> Outcome:
    """Return the outcome of every job; unfinished ones have a lower bound.

    Args:
        jobs: of all episodes.
        start: [J]; nan where a job never started.
        finish: [J]; nan where it did not end.
        cut: [B] time at which each episode was cut.
    """
    unfinished = np.isnan(finish)
    last = np.maximum(cut[jobs.episode], jobs.arrival)
    ended = np.where(unfinished, last, finish)
    response = ended - jobs.arrival
    return Outcome(
        finish=ended,
        wait=np.where(np.isnan(start), last, start) - jobs.arrival,
        slowdown=np.maximum(response / jobs.duration, 1.0),
        bounded_slowdown=np.maximum(response / np.maximum(jobs.duration, SHORTEST_BOUNDED), 1.0),
        unfinished=unfinished,
    )


def jobset_means(jobs: Jobs, value: FloatArray) -> FloatArray:
    """Return the mean [B] over each episode's jobs of a value [J]."""
    return np.bincount(jobs.episode, weights=value, minlength=len(jobs.first) - 1) / np.diff(jobs.first)


def job_table(
    policy: str, load: IntArray, jobset: IntArray, jobs: Jobs, start: FloatArray, found: Outcome, **also: IntArray
) -> pd.DataFrame:
    """Return the table of jobs; load and jobset [B] name the episodes, `also` are additional columns [J]."""
    names = {"load": load.astype(np.int64)[jobs.episode], "jobset": jobset.astype(np.int64)[jobs.episode]}
    job = np.arange(len(jobs.episode)) - jobs.first[jobs.episode]
    times = {"arrival": jobs.arrival, "duration": jobs.duration, "start": start}
    return pd.DataFrame({"policy": policy, **names, "job": job, **times, **found._asdict(), **also})


def jobset_table(
    policy: str, load: IntArray, jobset: IntArray, jobs: Jobs, found: Outcome, **also: FloatArray
) -> pd.DataFrame:
    """Return the metrics of each jobset; load and jobset [B] name the episodes, `also` are additional columns [B]."""
    first, episode = jobs.first, jobs.episode
    slowdown, wait = (value[np.lexsort((value, episode))] for value in (found.bounded_slowdown, found.wait))
    columns = {
        "load": load.astype(np.int64),
        "jobset": jobset.astype(np.int64),
        "jobs": np.diff(first),
        "mean_slowdown": jobset_means(jobs, found.slowdown),
        "p50_slowdown": percentile(slowdown, first, 0.50),
        "p99_slowdown": percentile(slowdown, first, 0.99),
        "worst_slowdown": slowdown[first[1:] - 1],
        "mean_bounded_slowdown": jobset_means(jobs, found.bounded_slowdown),
        "mean_wait": jobset_means(jobs, found.wait),
        "p99_wait": percentile(wait, first, 0.99),
        "longest_wait": wait[first[1:] - 1],
        "completion_time": jobset_means(jobs, found.finish - jobs.arrival),
        "unfinished": np.add.reduceat(found.unfinished, first[:-1], dtype=np.int64),
    }
    return pd.DataFrame({"policy": policy, **columns, **also})


def timed_summary(
    frame: pd.DataFrame, scenario: str, schema: pa.DataFrameSchema, wait: str, also: Mapping[str, str]
) -> pd.DataFrame:
    """Return the means over jobsets of each policy at each load; no rows for jobsets of another problem.

    Args:
        frame: one row per jobset, with the columns of `jobset_table`.
        scenario: name of the scenario.
        schema: schema of the result.
        wait: name of the waiting time in the schema.
        also: additional means: name -> column of the frame.
    """
    if not frame.columns.isin(list(also.values())).any():
        return empty(schema)
    scored = frame.groupby(["load", "policy"], sort=False)
    mean = scored.mean(numeric_only=True)
    means = {"bounded_slowdown": "mean_bounded_slowdown", wait: "mean_wait", f"p99_{wait}": "p99_wait", **also}
    columns = {name: mean[own] for name, own in means.items()}
    sums = {name: scored[name].sum() for name in ("jobs", "unfinished")}
    rows = pd.DataFrame({"n": scored.size(), f"longest_{wait}": scored["longest_wait"].max(), **columns, **sums})
    return rows.reset_index().assign(scenario=scenario)[list(schema.columns)].sort_values("load", kind="stable")


def must_be_whole(load: IntArray, jobset: IntArray, jobs: Jobs, ends: int) -> None:
    """Raise ValueError if loads, jobset numbers or outcomes do not match the episodes, or a jobset has no jobs."""
    episodes = len(jobs.first) - 1
    for name, length in {"load": len(load), "jobset": len(jobset), "outcome": ends}.items():
        if length != episodes:
            raise ValueError(f"{name} has {length} episodes; the batch has {episodes}")
    empty = np.flatnonzero(np.diff(jobs.first) == 0)
    if len(empty):
        raise ValueError(f"jobset {jobset[empty[0]]} of load {load[empty[0]]} has no jobs")
