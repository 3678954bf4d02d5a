"""Results of controllers as tables: one row for every job, for every jobset, and for every group of a jobset.

Delay, or wait = time from arrival to start. Slowdown and the treatment of unfinished jobs: `simulation.results`.
Makespan = time from the first arrival to the episode's end. Fairness = Jain's index of the groups' mean waits, and of
their mean slowdowns: 1 if all are equal, 1 / groups if one group has all of it. Groups without jobs do not count (Jain,
Chiu and Hawe 1984).
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.core.types import FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.problems.groups.env.nouns import JobsBatch, Served, SharedCluster
from pipeline.problems.groups.env.tables import GROUPS_FAIRNESS, GROUPS_SUMMARY, JOB_RESULTS, JOBSET_RESULTS
from pipeline.simulation.results import (
    Outcome,
    job_table,
    jobset_table,
    must_be_whole,
    outcome_of,
    percentile,
    timed_summary,
)


class Parts(NamedTuple):
    """The jobs of each group of each episode; P of these B * G groups have jobs."""

    of_job: IntArray  # [J]     index of the group in B * G: episode * G + group
    jobs: IntArray  # [B * G]  number of jobs
    there: IntArray  # [P]     indices of the groups that have jobs

    def mean(self, value: FloatArray) -> FloatArray:
        """Return the mean [B * G] of a value [J]; nan if there are no jobs."""
        total = np.bincount(self.of_job, weights=value, minlength=len(self.jobs))
        return np.where(self.jobs > 0, total / np.maximum(self.jobs, 1), np.nan)

    def p99(self, value: FloatArray) -> FloatArray:
        """Return the 99th percentile [P] of a value [J]."""
        first = np.concatenate([[0], np.cumsum(self.jobs[self.there])])
        return percentile(value[np.lexsort((value, self.of_job))], first, 0.99)


def jain(value: FloatArray) -> FloatArray:
    """Return Jain's index of fairness along the last axis, without nan; 1 if all are 0.

    >>> jain(np.array([[1.0, 3.0, np.nan], [2.0, 2.0, 2.0], [0.0, 0.0, np.nan]])).tolist()
    [0.8, 1.0, 1.0]
    """
    count = (~np.isnan(value)).sum(axis=-1)
    total, squares = np.nansum(value, axis=-1), np.nansum(value**2, axis=-1)
    index = total**2 / np.where(squares > 0, count * squares, 1.0)
    return np.where(squares > 0, np.minimum(index, 1.0), 1.0)  # rounding may exceed 1


def outcome(jobs: JobsBatch, served: Served) -> Outcome:
    """Return the outcome of every job; unfinished ones have a lower bound."""
    return outcome_of(jobs, served.start, served.finish, served.end)


def job_results(
    policy: str, load: IntArray, jobset: IntArray, jobs: JobsBatch, served: Served, cluster: SharedCluster
) -> pd.DataFrame:
    """Return the table of jobs; load and jobset [B] name the episodes."""
    _check(load, jobset, jobs, served, cluster)
    of_job = {"group": jobs.group.astype(np.int64), "queue": jobs.queue.astype(np.int64)}
    table = job_table(policy, load, jobset, jobs, served.start, outcome(jobs, served), **of_job)
    return table[list(JOB_RESULTS.columns)]


def jobset_results(
    policy: str,
    load: IntArray,
    jobset: IntArray,
    jobs: JobsBatch,
    served: Served,
    cluster: SharedCluster,
    reward: FloatArray,
) -> pd.DataFrame:
    """Return the metrics of each jobset; load and jobset [B] name the episodes, rewards [B] are interval means."""
    _check(load, jobset, jobs, served, cluster)
    found, parts = outcome(jobs, served), _parts(jobs, cluster)
    makespan = served.end - jobs.arrival[jobs.first[:-1]]
    table = jobset_table(
        *(policy, load, jobset, jobs, found),
        makespan=makespan,
        utilisation=served.busy / makespan,
        jain_wait=jain(parts.mean(found.wait).reshape(jobs.episodes, -1)),
        jain_slowdown=jain(parts.mean(found.slowdown).reshape(jobs.episodes, -1)),
        reward=reward,
    )
    return table[list(JOBSET_RESULTS.columns)]


def group_results(
    policy: str, load: IntArray, jobset: IntArray, jobs: JobsBatch, served: Served, cluster: SharedCluster
) -> pd.DataFrame:
    """Return the metrics of each group that has jobs, in each jobset; load and jobset [B] name the episodes."""
    _check(load, jobset, jobs, served, cluster)
    found, parts = outcome(jobs, served), _parts(jobs, cluster)
    episode, group = np.divmod(parts.there, cluster.groups)
    unfinished = np.bincount(parts.of_job, weights=found.unfinished, minlength=len(parts.jobs))
    columns = {
        "policy": policy,
        "load": load.astype(np.int64)[episode],
        "jobset": jobset.astype(np.int64)[episode],
        "group": group,
        "jobs": parts.jobs[parts.there],
        "mean_wait": parts.mean(found.wait)[parts.there],
        "mean_slowdown": parts.mean(found.slowdown)[parts.there],
        "p99_slowdown": parts.p99(found.slowdown),
        "mean_bounded_slowdown": parts.mean(found.bounded_slowdown)[parts.there],
        "p99_wait": parts.p99(found.wait),
        "unfinished": unfinished[parts.there].astype(np.int64),
    }
    return pd.DataFrame(columns)


def summary(frame: pd.DataFrame, scenario: str) -> pd.DataFrame:
    """Return the metrics that only groups have, of each policy at each load; no rows for other problems' scenarios."""
    own = {"jain_delay": "jain_wait", "jain_slowdown": "jain_slowdown", "reward": "reward"}
    return timed_summary(frame, scenario, GROUPS_SUMMARY, "delay", own)


def fairness(frame: pd.DataFrame, scenario: str) -> pd.DataFrame:
    """Return the metrics of each group under each policy at each load: means over the jobsets in which it has jobs."""
    scored = frame.groupby(["load", "policy", "group"], sort=False)
    mean = scored[["mean_wait", "mean_slowdown", "p99_slowdown"]].mean()
    named = mean.rename(columns={"mean_wait": "delay", "mean_slowdown": "slowdown"})
    rows = named.assign(jobs=scored["jobs"].sum(), scenario=scenario).reset_index()
    turn = {policy: k for k, policy in enumerate(rows["policy"].unique())}
    rows = rows.sort_values(["load", "policy", "group"], key=lambda one: one.map(turn) if one.name == "policy" else one)
    return rows[list(GROUPS_FAIRNESS.columns)].reset_index(drop=True)


def _parts(jobs: JobsBatch, cluster: SharedCluster) -> Parts:
    of_job = jobs.episode * cluster.groups + jobs.group
    count = np.bincount(of_job, minlength=jobs.episodes * cluster.groups)
    return Parts(of_job, count, np.flatnonzero(count))


def _check(load: IntArray, jobset: IntArray, jobs: JobsBatch, served: Served, cluster: SharedCluster) -> None:
    must_be_whole(load, jobset, jobs, len(served.end))
    if jobs.group.max(initial=0) >= cluster.groups:
        raise ValueError(f"job {jobs.group.argmax()} has group {jobs.group.max()}; there are {cluster.groups}")
    for b in range(jobs.episodes):
        begin, end = jobs.arrival[jobs.first[b]], served.end[b]
        if end <= begin:
            where = f"jobset {jobset[b]} of load {load[b]}"
            raise UserError(f"{where}: expected a time_limit after its first arrival, {begin:g}; got {end:g}")
