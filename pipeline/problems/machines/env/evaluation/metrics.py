"""Metrics of schedules on many machines, as tables: one row for every job, and one for every jobset.

Slowdown = time from arrival to completion over run time; for bounded slowdown, no job counts as shorter than 10 time
units (Feitelson), and the minimum is 1. Area-weighted response = mean time from arrival to completion, weighted by
area: nodes times share of all machines (mean over resources) times run time (Schwiegelshohn and Yahyapour 1998).

A job that the time limit cut off counts as if it had ended, or had started, there: a lower bound. It is flagged, so
that no policy gains by leaving jobs undone. Where only some jobs are measured, one that has started counts with its
whole run time, and one that never started is flagged.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from pipeline.core.schemas import empty
from pipeline.core.types import BoolArray, IntArray
from pipeline.problems.machines.env.nouns import JobsBatch, Machines, Placed
from pipeline.problems.machines.env.tables import JOB_RESULTS, JOBSET_RESULTS, SUMMARY
from pipeline.simulation.results import (
    Outcome,
    Results,
    job_table,
    jobset_means,
    jobset_table,
    must_be_whole,
    outcome_of,
    timed_summary,
)

CLEARLY = 0.05  # fraction by which a makespan must be longer to explain a gain


def outcome(jobs: JobsBatch, placed: Placed) -> Outcome:
    """Return the outcome of every job; unfinished jobs end with their episode, a lower bound."""
    return outcome_of(jobs, placed.start, placed.finish, placed.end)


def measured_part(jobs: JobsBatch, placed: Placed, machines: Machines) -> tuple[JobsBatch, Placed]:
    """Return the measured jobs of all episodes, as finished if they have started; or all, if all are measured."""
    if machines.measured is None:
        return jobs, placed
    each = np.arange(*machines.measured)
    kept = (jobs.first[:-1, None] + each).ravel()
    part = JobsBatch(np.arange(jobs.episodes + 1) * len(each), *(column[kept] for column in jobs[1:]))
    start = placed.start[kept]
    return part, placed._replace(start=start, finish=start + part.duration, machine=placed.machine[kept])


def results(
    policy: str, load: IntArray, jobset: IntArray, jobs: JobsBatch, placed: Placed, machines: Machines
) -> Results:
    """Return the outcome of each job and the metrics of each jobset; load and jobset [B] name the episodes."""
    must_be_whole(load, jobset, jobs, len(placed.end))
    makespan = placed.end - jobs.arrival[jobs.first[:-1]]  # of all jobs, even where only some are measured
    jobs, placed = measured_part(jobs, placed, machines)
    found, machine = outcome(jobs, placed), placed.machine.astype(np.int64)
    of_jobs = job_table(policy, load, jobset, jobs, placed.start, found, machine=machine)
    of_jobs["job"] += (machines.measured or (0, 0))[0]
    response, total = found.finish - jobs.arrival, machines.capacity.sum(axis=0).astype(float)
    share = (jobs.demand / np.where(total > 0, total, 1.0)).mean(axis=1)
    area = jobs.nodes * share * jobs.duration
    held, weighted = (
        np.bincount(jobs.episode, weights=each, minlength=jobs.episodes) for each in (area, area * response)
    )  # jobs count equally in episodes whose total area is 0
    means = np.where(held > 0, weighted / np.where(held > 0, held, 1.0), jobset_means(jobs, response))
    of_jobsets = jobset_table(
        *(policy, load, jobset, jobs, found),
        area_weighted_response=means,
        makespan=makespan,
        utilisation=placed.busy / makespan,
    )
    return Results(of_jobs[list(JOB_RESULTS.columns)], of_jobsets[list(JOBSET_RESULTS.columns)])


def summary(frame: pd.DataFrame, scenario: str, best: Mapping[int, str]) -> pd.DataFrame:
    """Return the metrics of each policy at each load; no rows for scenarios of other problems.

    Args:
        frame: rows of JOBSET_RESULTS.
        scenario: name of the scenario.
        best: the best heuristic at each load, the reference of `from_end`.
    """
    if "area_weighted_response" not in frame:
        return empty(SUMMARY)
    own = {name: name for name in ("completion_time", "makespan", "area_weighted_response")}
    rows = timed_summary(frame, scenario, SUMMARY.remove_columns(["from_end"]), "wait", own)
    return rows.assign(from_end=from_end(rows, rows["load"].map(best)))[list(SUMMARY.columns)]


def from_end(rows: pd.DataFrame, against: pd.Series) -> BoolArray:
    """Return which rows gain by late ends of episodes: less slowdown than another policy, clearly longer makespan.

    A policy that lets large jobs wait until the last arrival lowers the mean slowdown, but episodes end later.

    Args:
        rows: one for each load and policy, with `bounded_slowdown` and `makespan`.
        against: the other policy of each row.
    """
    keys = pd.MultiIndex.from_arrays([rows["load"], against])
    other = rows.set_index(["load", "policy"])[["bounded_slowdown", "makespan"]].reindex(keys).to_numpy()
    less = rows["bounded_slowdown"].to_numpy() < other[:, 0]
    return np.asarray(less & (rows["makespan"].to_numpy() > (1.0 + CLEARLY) * other[:, 1]))
