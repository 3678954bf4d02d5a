"""What a schedule was worth: one row for every job, and one for every jobset.

Slowdown is DeepRM's (section 3): time from arrival to completion over duration. A job that the step limit cut off is
counted as if it had finished there, a lower bound, and is flagged, so that no policy gains by leaving jobs undone.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.core import BoolArray, FloatArray, IntArray, JobBatch, Schedule


class Outcome(NamedTuple):
    """How every job fared."""

    finish: IntArray  # [J]  step after the last one; of an unfinished job the step limit
    slowdown: FloatArray  # [J]
    unfinished: BoolArray  # [J]


def outcome(batch: JobBatch, schedule: Schedule, step_limit: int) -> Outcome:
    """Return how every job fared, unfinished ones by their lower bound."""
    unfinished = schedule.finish < 0
    cut = np.maximum(step_limit, batch.arrival + 1)  # a job may be due after the cut
    finish = np.where(unfinished, cut, schedule.finish).astype(np.int64)
    slowdown = (finish - batch.arrival) / batch.duration
    return Outcome(finish, np.where(unfinished, np.maximum(slowdown, 1.0), slowdown), unfinished)


def job_results(
    policy: str, load: IntArray, jobset: IntArray, batch: JobBatch, schedule: Schedule, step_limit: int
) -> pd.DataFrame:
    """Return what became of each job; load and jobset [B] name the episodes."""
    _check(load, jobset, batch, schedule)
    finish, slowdown, unfinished = outcome(batch, schedule, step_limit)
    episode = batch.episode
    columns = {
        "policy": policy,
        "load": load.astype(np.int64)[episode],
        "jobset": jobset.astype(np.int64)[episode],
        "job": np.arange(len(episode)) - batch.first[episode],
        "start": schedule.start.astype(np.int64),
        "finish": finish,
        "slowdown": slowdown,
        "unfinished": unfinished,
    }
    return pd.DataFrame(columns)


def jobset_results(
    policy: str, load: IntArray, jobset: IntArray, batch: JobBatch, schedule: Schedule, step_limit: int
) -> pd.DataFrame:
    """Return the metrics of each jobset; load and jobset [B] name the episodes."""
    _check(load, jobset, batch, schedule)
    finish, slowdown, unfinished = outcome(batch, schedule, step_limit)
    jobs, resources = np.diff(batch.first), batch.demand.shape[1]
    ordered = slowdown[np.lexsort((slowdown, batch.episode))]
    columns = {
        "policy": policy,
        "load": load.astype(np.int64),
        "jobset": jobset.astype(np.int64),
        "jobs": jobs.astype(np.int64),
        "mean_slowdown": _total(batch, slowdown) / jobs,
        "p50_slowdown": percentile(ordered, batch.first, 0.50),
        "p99_slowdown": percentile(ordered, batch.first, 0.99),
        "worst_slowdown": ordered[batch.first[1:] - 1],
        "completion_time": _total(batch, (finish - batch.arrival).astype(float)) / jobs,
        "makespan": schedule.steps.astype(np.int64),
        "utilisation": schedule.used / (resources * schedule.steps),
        "not_work_conserving": schedule.withheld_steps / schedule.steps,
        "unfinished": _total(batch, unfinished.astype(float)).astype(np.int64),
    }
    return pd.DataFrame(columns)


def percentile(ordered: FloatArray, first: IntArray, share: float) -> FloatArray:
    """Return the linear percentile of each run first[b] : first[b + 1] of values that rise within it.

    >>> percentile(np.array([1.0, 2.0, 4.0, 7.0]), np.array([0, 3, 4]), 0.75)
    array([3., 7.])
    """
    last = first[1:] - 1
    place = share * (last - first[:-1])
    below = np.floor(place).astype(np.int64)
    low = first[:-1] + below
    left, right = ordered[low], ordered[np.minimum(low + 1, last)]
    return np.asarray(left + (right - left) * (place - below))


def _total(batch: JobBatch, value: FloatArray) -> FloatArray:
    return np.bincount(batch.episode, weights=value, minlength=batch.episodes).astype(float)


def _check(load: IntArray, jobset: IntArray, batch: JobBatch, schedule: Schedule) -> None:
    lengths = {"load": len(load), "jobset": len(jobset), "schedule": len(schedule.steps)}
    for name, length in lengths.items():
        if length != batch.episodes:
            raise ValueError(f"{name} has {length} episodes; the batch has {batch.episodes}")
    empty = np.flatnonzero(np.diff(batch.first) == 0)
    if len(empty):
        raise ValueError(f"jobset {jobset[empty[0]]} of load {load[empty[0]]} has no jobs")
