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
    Results,
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


def results(
    policy: str,
    load: IntArray,
    jobset: IntArray,
    jobs: JobsBatch,
    served: Served,
    cluster: SharedCluster,
    reward: FloatArray,
) -> Results:
    """Return the tables of jobs, of jobsets, and of the groups that have jobs.

    Load and jobset [B] name the episodes, rewards [B] are interval means.
    """
    _check(load, jobset, jobs, served, cluster)
    load, jobset = load.astype(np.int64), jobset.astype(np.int64)
    found = outcome_of(jobs, served.start, served.finish, served.end)
    of_job = {"group": jobs.group.astype(np.int64), "queue": jobs.queue.astype(np.int64)}
    of_jobs = job_table(policy, load, jobset, jobs, served.start, found, **of_job)
    place = jobs.episode * cluster.groups + jobs.group
    count = np.bincount(place, minlength=jobs.episodes * cluster.groups)
    parts, makespan = Parts(place, count, np.flatnonzero(count)), served.end - jobs.arrival[jobs.first[:-1]]
    of_jobsets = jobset_table(
        *(policy, load, jobset, jobs, found),
        makespan=makespan,
        utilisation=served.busy / makespan,
        jain_wait=jain(parts.mean(found.wait).reshape(jobs.episodes, -1)),
        jain_slowdown=jain(parts.mean(found.slowdown).reshape(jobs.episodes, -1)),
        reward=reward,
    )
    episode, group = np.divmod(parts.there, cluster.groups)
    names = {"policy": policy, "load": load[episode], "jobset": jobset[episode], "group": group}
    of_groups = pd.DataFrame(names | _of_groups(parts, found))
    return Results(of_jobs[list(JOB_RESULTS.columns)], of_jobsets[list(JOBSET_RESULTS.columns)], {"groups": of_groups})


def _of_groups(parts: Parts, found: Outcome) -> dict[str, FloatArray | IntArray]:
    unfinished = np.bincount(parts.of_job, weights=found.unfinished, minlength=len(parts.jobs))
    return {
        "jobs": parts.jobs[parts.there],
        "mean_wait": parts.mean(found.wait)[parts.there],
        "mean_slowdown": parts.mean(found.slowdown)[parts.there],
        "p99_slowdown": parts.p99(found.slowdown),
        "mean_bounded_slowdown": parts.mean(found.bounded_slowdown)[parts.there],
        "p99_wait": parts.p99(found.wait),
        "unfinished": unfinished[parts.there].astype(np.int64),
    }


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


def _check(load: IntArray, jobset: IntArray, jobs: JobsBatch, served: Served, cluster: SharedCluster) -> None:
    must_be_whole(load, jobset, jobs, len(served.end))
    if jobs.group.max(initial=0) >= cluster.groups:
        raise ValueError(f"job {jobs.group.argmax()} has group {jobs.group.max()}; there are {cluster.groups}")
    for b in range(jobs.episodes):
        begin, end = jobs.arrival[jobs.first[b]], served.end[b]
        if end <= begin:
            where = f"jobset {jobset[b]} of load {load[b]}"
            raise UserError(f"{where}: expected a time_limit after its first arrival, {begin:g}; got {end:g}")
