"""What a schedule was worth, as tables: one row for every job, and one for every jobset."""

import numpy as np
import pandas as pd

from pipeline.core import FloatArray, IntArray, JobBatch, Schedule
from pipeline.simulator.outcomes import jobset_means, outcome


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
        "duration": batch.duration.astype(np.int64),
        "start": schedule.start.astype(np.int64),
        "finish": finish,
        "withheld": schedule.withheld.astype(np.int64),
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
        "mean_slowdown": jobset_means(batch, slowdown),
        "p50_slowdown": percentile(ordered, batch.first, 0.50),
        "p99_slowdown": percentile(ordered, batch.first, 0.99),
        "worst_slowdown": ordered[batch.first[1:] - 1],
        "completion_time": jobset_means(batch, (finish - batch.arrival).astype(float)),
        "makespan": schedule.steps.astype(np.int64),
        "utilisation": schedule.used / (resources * schedule.steps),
        "not_work_conserving": schedule.withheld_steps / schedule.steps,
        "unfinished": np.add.reduceat(unfinished, batch.first[:-1], dtype=np.int64),
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


def _check(load: IntArray, jobset: IntArray, batch: JobBatch, schedule: Schedule) -> None:
    lengths = {"load": len(load), "jobset": len(jobset), "schedule": len(schedule.steps)}
    for name, length in lengths.items():
        if length != batch.episodes:
            raise ValueError(f"{name} has {length} episodes; the batch has {batch.episodes}")
    empty = np.flatnonzero(np.diff(batch.first) == 0)
    if len(empty):
        raise ValueError(f"jobset {jobset[empty[0]]} of load {load[empty[0]]} has no jobs")
