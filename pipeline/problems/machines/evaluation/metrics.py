"""What a schedule of many machines was worth, as tables: one row for every job, and one for every jobset.

Slowdown = time from arrival to completion over run time; bounded, no job is taken for shorter than 10 time units
(Feitelson), and the least is 1. Area-weighted response = the mean time from arrival to completion, each job counting by
its area: nodes times share of all machines, mean over resources, times run time (Schwiegelshohn and Yahyapour 1998).

A job that the time limit cut off is counted as if it had ended, or had started, there: a lower bound. It is flagged, so
that no policy gains by leaving jobs undone.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.results import percentile
from pipeline.core import SHORTEST_BOUNDED, BoolArray, FloatArray, IntArray
from pipeline.problems.machines.nouns import JobsBatch, Machines, Placed
from pipeline.problems.machines.tables import SUMMARY
from pipeline.schemas import empty


class Fate(NamedTuple):
    """How every job fared."""

    finish: FloatArray  # [J]
    wait: FloatArray  # [J]
    slowdown: FloatArray  # [J]
    bounded_slowdown: FloatArray  # [J]
    unfinished: BoolArray  # [J]


def fate(jobs: JobsBatch, placed: Placed, machines: Machines) -> Fate:
    """Return how every job fared, unfinished ones by their lower bound."""
    unfinished = np.isnan(placed.finish)
    cut = np.maximum((jobs.arrival[jobs.first[:-1]] + machines.time_limit)[jobs.episode], jobs.arrival)
    finish = np.where(unfinished, cut, placed.finish)
    wait = np.where(np.isnan(placed.start), cut, placed.start) - jobs.arrival
    response = finish - jobs.arrival
    return Fate(
        finish=finish,
        wait=wait,
        slowdown=np.maximum(response / jobs.duration, 1.0),
        bounded_slowdown=np.maximum(response / np.maximum(jobs.duration, SHORTEST_BOUNDED), 1.0),
        unfinished=unfinished,
    )


def job_results(
    policy: str, load: IntArray, jobset: IntArray, jobs: JobsBatch, placed: Placed, machines: Machines
) -> pd.DataFrame:
    """Return what became of each job; load and jobset [B] name the episodes."""
    _check(load, jobset, jobs, placed)
    found, episode = fate(jobs, placed, machines), jobs.episode
    columns = {
        "policy": policy,
        "load": load.astype(np.int64)[episode],
        "jobset": jobset.astype(np.int64)[episode],
        "job": np.arange(len(episode)) - jobs.first[episode],
        "arrival": jobs.arrival,
        "duration": jobs.duration,
        "start": placed.start,
        "finish": found.finish,
        "wait": found.wait,
        "slowdown": found.slowdown,
        "bounded_slowdown": found.bounded_slowdown,
        "machine": placed.machine.astype(np.int64),
        "unfinished": found.unfinished,
    }
    return pd.DataFrame(columns)


def jobset_results(
    policy: str, load: IntArray, jobset: IntArray, jobs: JobsBatch, placed: Placed, machines: Machines
) -> pd.DataFrame:
    """Return the metrics of each jobset; load and jobset [B] name the episodes."""
    _check(load, jobset, jobs, placed)
    found, first = fate(jobs, placed, machines), jobs.first
    slowdown, wait = _rising(jobs, found.slowdown), _rising(jobs, found.wait)
    response, makespan = found.finish - jobs.arrival, placed.end - jobs.arrival[first[:-1]]
    columns = {
        "policy": policy,
        "load": load.astype(np.int64),
        "jobset": jobset.astype(np.int64),
        "jobs": np.diff(first),
        "mean_slowdown": _mean(jobs, found.slowdown),
        "p50_slowdown": percentile(slowdown, first, 0.50),
        "p99_slowdown": percentile(slowdown, first, 0.99),
        "worst_slowdown": slowdown[first[1:] - 1],
        "mean_bounded_slowdown": _mean(jobs, found.bounded_slowdown),
        "mean_wait": _mean(jobs, found.wait),
        "p99_wait": percentile(wait, first, 0.99),
        "longest_wait": wait[first[1:] - 1],
        "completion_time": _mean(jobs, response),
        "area_weighted_response": area_weighted(jobs, response, machines),
        "makespan": makespan,
        "utilisation": placed.busy / makespan,
        "unfinished": np.add.reduceat(found.unfinished, first[:-1], dtype=np.int64),
    }
    return pd.DataFrame(columns)


def summary(frame: pd.DataFrame, scenario: str) -> pd.DataFrame:
    """Return, at each load, the metrics of each policy that only scenarios of many machines have; no rows of others.

    Args:
        frame: jobset results of one scenario.
        scenario: its name.
    """
    if "area_weighted_response" not in frame:
        return empty(SUMMARY)
    scored = frame.groupby(["load", "policy"], sort=False)
    mean = scored.mean(numeric_only=True)
    columns = {
        "n": scored.size(),
        "jobs": scored["jobs"].sum(),
        "bounded_slowdown": mean["mean_bounded_slowdown"],
        "wait": mean["mean_wait"],
        "p99_wait": mean["p99_wait"],
        "longest_wait": scored["longest_wait"].max(),
        "area_weighted_response": mean["area_weighted_response"],
        "unfinished": scored["unfinished"].sum(),
    }
    rows = pd.DataFrame(columns).reset_index().assign(scenario=scenario)[list(SUMMARY.columns)]
    return rows.sort_values("load", kind="stable")


def area_weighted(jobs: JobsBatch, value: FloatArray, machines: Machines) -> FloatArray:
    """Return the mean [B] of a value [J], each job counting by its area; plainly where no job of an episode has one."""
    total = machines.capacity.sum(axis=0).astype(float)
    share = (jobs.demand / np.where(total > 0, total, 1.0)).mean(axis=1)
    area = jobs.nodes * share * jobs.duration
    held = np.bincount(jobs.episode, weights=area, minlength=jobs.episodes)
    weighted = np.bincount(jobs.episode, weights=area * value, minlength=jobs.episodes)
    return np.where(held > 0, weighted / np.where(held > 0, held, 1.0), _mean(jobs, value))


def _mean(jobs: JobsBatch, value: FloatArray) -> FloatArray:
    return np.bincount(jobs.episode, weights=value, minlength=jobs.episodes) / np.diff(jobs.first)


def _rising(jobs: JobsBatch, value: FloatArray) -> FloatArray:
    """Return a value [J], rising within each episode."""
    return np.asarray(value[np.lexsort((value, jobs.episode))])


def _check(load: IntArray, jobset: IntArray, jobs: JobsBatch, placed: Placed) -> None:
    for name, length in {"load": len(load), "jobset": len(jobset), "placed": len(placed.end)}.items():
        if length != jobs.episodes:
            raise ValueError(f"{name} has {length} episodes; the batch has {jobs.episodes}")
    empty = np.flatnonzero(np.diff(jobs.first) == 0)
    if len(empty):
        raise ValueError(f"jobset {jobset[empty[0]]} of load {load[empty[0]]} has no jobs")
