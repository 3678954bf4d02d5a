"""Metrics of schedules as tables: one row for every job, and one for every jobset.

Slowdown is DeepRM's (section 3): time from arrival to completion over duration. A job cut off by the step limit counts
as if it had finished there, a lower bound, and is flagged, so that no policy gains by leaving jobs undone. In streams,
started jobs are known to finish, so only jobs that never started are flagged.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.core.config import PoolScenario
from pipeline.core.types import BoolArray, FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.problems.pool.env.nouns import JobBatch, Schedule
from pipeline.simulation.results import jobset_means, must_be_whole, percentile


class Outcome(NamedTuple):
    """Outcome of every job."""

    finish: IntArray  # [J]  step after the job's last one; the step limit if unfinished
    slowdown: FloatArray  # [J]
    wait: IntArray  # [J]  steps from arrival to start; a lower bound if it never started
    unfinished: BoolArray  # [J]


def outcome(batch: JobBatch, schedule: Schedule, step_limit: int) -> Outcome:
    """Return the outcome of every job; unfinished ones have a lower bound."""
    unfinished = schedule.finish < 0
    cut = np.maximum(step_limit, batch.arrival + 1)  # a job may be due after the cut
    finish = np.where(unfinished, cut, schedule.finish).astype(np.int64)
    slowdown = (finish - batch.arrival) / batch.duration
    wait = np.where(schedule.start >= 0, schedule.start, finish) - batch.arrival
    return Outcome(finish, np.where(unfinished, np.maximum(slowdown, 1.0), slowdown), wait, unfinished)


class Span(NamedTuple):
    """The measured arrivals of a stream, and the capacity of its cluster."""

    first: int
    after: int
    capacity: tuple[int, ...]  # [R]

    def measures(self, batch: JobBatch) -> BoolArray:
        """Return which jobs [J] are measured."""
        return np.asarray((batch.arrival >= self.first) & (batch.arrival < self.after))


def span_of(scenario: PoolScenario) -> Span | None:
    """Return the measured span of a scenario; None: all jobs are measured."""
    measured = scenario.measured
    return None if measured is None else Span(*measured, tuple(scenario.resources.values()))


def job_results(
    policy: str, load: IntArray, jobset: IntArray, batch: JobBatch, schedule: Schedule, step_limit: int
) -> pd.DataFrame:
    """Return the results of each job; load and jobset [B] name the episodes."""
    must_be_whole(load, jobset, batch, len(schedule.steps))
    finish, slowdown, _, unfinished = outcome(batch, schedule, step_limit)
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
    must_be_whole(load, jobset, batch, len(schedule.steps))
    finish, slowdown, wait, unfinished = outcome(batch, schedule, step_limit)
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
        "longest_wait": np.maximum.reduceat(wait, batch.first[:-1]),
        "completion_time": jobset_means(batch, (finish - batch.arrival).astype(float)),
        "makespan": schedule.steps.astype(np.int64),
        "utilisation": schedule.used / (resources * schedule.steps),
        "not_work_conserving": schedule.withheld_steps / schedule.steps,
        "unfinished": np.add.reduceat(unfinished, batch.first[:-1], dtype=np.int64),
    }
    return pd.DataFrame(columns)


def measured_part(
    load: IntArray, jobset: IntArray, batch: JobBatch, schedule: Schedule, span: Span
) -> tuple[JobBatch, Schedule]:
    """Return the measured jobs of each episode and their schedule; raise a UserError if a jobset has none."""
    kept = span.measures(batch)
    count = np.bincount(batch.episode[kept], minlength=batch.episodes)
    if not count.all():
        where = f"jobset {jobset[count.argmin()]} of load {load[count.argmin()]}"
        raise UserError(f"{where}: expected a job that arrives in a step of [{span.first}, {span.after}), found none")
    first = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    part = JobBatch(first, batch.arrival[kept], batch.duration[kept], batch.demand[kept])
    of_jobs = {name: getattr(schedule, name)[kept] for name in ("start", "finish", "withheld")}
    return part, schedule._replace(**of_jobs)
