"""How jobs fared that run in real time, and what that is of each jobset: the same for every problem that has them.

Slowdown = time from arrival to completion over run time; bounded, no job is taken for shorter than 10 time units
(Feitelson), and the least is 1. A job that was cut off is counted as if it had ended, or had started, at the cut: a
lower bound. It is flagged, so that no policy gains by leaving jobs undone. Percentiles and the worst of a jobset are of
bounded slowdown.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.core import SHORTEST_BOUNDED, BoolArray, FloatArray, IntArray, TimeArray
from pipeline.schemas import empty
from pipeline.simulation.results import percentile


class Jobs(Protocol):
    """The jobs of B episodes end to end."""

    @property
    def first(self) -> IntArray:
        """Return the first job of each episode, and the number of jobs [B + 1]."""

    @property
    def episode(self) -> IntArray:
        """Return the episode [J] that owns each job."""

    @property
    def arrival(self) -> TimeArray:
        """Return the time [J]."""

    @property
    def duration(self) -> TimeArray:
        """Return the run time [J]."""


class Outcome(NamedTuple):
    """How every job fared."""

    finish: FloatArray  # [J]
    wait: FloatArray  # [J]
    slowdown: FloatArray  # [J]
    bounded_slowdown: FloatArray  # [J]
    unfinished: BoolArray  # [J]


def outcome_of(jobs: Jobs, start: FloatArray, finish: FloatArray, cut: FloatArray) -> Outcome:
    """Return how every job fared, unfinished ones by their lower bound.

    Args:
        jobs: all of them.
        start: [J]; nan where a job never started.
        finish: [J]; nan where it did not end.
        cut: [B] when each episode was cut.
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
    """Return what became of each job; load and jobset [B] name the episodes, `also` are columns [J] more."""
    names = {"load": load.astype(np.int64)[jobs.episode], "jobset": jobset.astype(np.int64)[jobs.episode]}
    job = np.arange(len(jobs.episode)) - jobs.first[jobs.episode]
    times = {"arrival": jobs.arrival, "duration": jobs.duration, "start": start}
    return pd.DataFrame({"policy": policy, **names, "job": job, **times, **found._asdict(), **also})


def jobset_table(
    policy: str, load: IntArray, jobset: IntArray, jobs: Jobs, found: Outcome, **also: FloatArray
) -> pd.DataFrame:
    """Return the metrics of each jobset; load and jobset [B] name the episodes, `also` are columns [B] more."""
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
    """Return what the jobsets of each policy had at each load; no rows where these are of another problem.

    Args:
        frame: a row a jobset, with the columns of `jobset_table`.
        scenario: its name.
        schema: of what is returned.
        wait: what waiting is called there.
        also: columns more that are means: the problem's own ones of jobsets.
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
    """Refuse what names or describes other episodes than there are, and a jobset without jobs.

    Raises:
        ValueError: says which.
    """
    episodes = len(jobs.first) - 1
    for name, length in {"load": len(load), "jobset": len(jobset), "outcome": ends}.items():
        if length != episodes:
            raise ValueError(f"{name} has {length} episodes; the batch has {episodes}")
    empty = np.flatnonzero(np.diff(jobs.first) == 0)
    if len(empty):
        raise ValueError(f"jobset {jobset[empty[0]]} of load {load[empty[0]]} has no jobs")
