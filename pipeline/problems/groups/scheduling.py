"""Run any policy over a user's own jobs; write when each starts, and what each group was given and used over time."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.config import GroupsLog, GroupsScenario, Params
from pipeline.core import FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.logs.registry import distinct, read
from pipeline.problems.groups.evaluation.watching import Course, watch
from pipeline.problems.groups.nouns import Jobs
from pipeline.problems.groups.policies import policy_by_name
from pipeline.problems.groups.tables import SCHEDULE, shares_schema, user_job_columns
from pipeline.problems.groups.workload.log import describe, gathered
from pipeline.problems.groups.workload.source import cluster_of
from pipeline.progress import Advance, ProgressCallback, ShareCallback, progress
from pipeline.scheduling.schedule import Column, Ready, Scheduled, ScheduleRequest, Scheduling
from pipeline.scheduling.user_jobs import JobColumns, UserJobs, of_log

UNIT_S = 60.0  # seconds of a time unit, where the scenario's jobs are drawn and no log says what their unit is


class UserJobset(NamedTuple):
    """One jobset of a user."""

    name: str
    rows: IntArray  # [J]  of the file, in order of arrival
    jobs: Jobs  # at times from `since` on
    since: float  # a whole number of intervals


def jobsets_of(mine: UserJobs[Jobs], interval: float) -> list[UserJobset]:
    """Return the jobsets in the order in which the file names them."""
    named = zip(mine.jobsets, mine.rows(), strict=True)
    return [UserJobset(name, rows, *from_whole_interval(mine.taken(rows), interval)) for name, rows in named]


def from_whole_interval(jobs: Jobs, interval: float) -> tuple[Jobs, float]:
    """Return jobs at times from the interval on in which the first arrives, and when that begins."""
    since = float(jobs.arrival[0] // interval * interval)
    return jobs._replace(arrival=jobs.arrival - since), since


def job_columns(scenario: GroupsScenario) -> JobColumns[Jobs]:
    """Return how a user's jobs are read; the users of a log are gathered into groups."""
    queues = {str(place): place for place in range(len(scenario.queues))}
    queues |= {name: place for place, name in enumerate(scenario.queues)}

    def jobs(frame: pd.DataFrame, where: str) -> Jobs:
        arrival, duration, group = (frame[name].to_numpy() for name in ("arrival", "duration", "group"))
        estimate = frame["estimate"].to_numpy() if "estimate" in frame else duration
        demand = np.ascontiguousarray(frame[list(scenario.resources)].to_numpy())
        return Jobs(arrival, duration, estimate, demand, group, frame["queue"].map(queues).to_numpy(dtype=np.int64))

    return JobColumns(
        scenario.policies_know,
        user_job_columns(scenario),
        jobs,
        lambda path, format, on_progress: _log(path, format, scenario, on_progress),
    )


def _log(path: Path, format: str, scenario: GroupsScenario, on_progress: ProgressCallback) -> UserJobs[Jobs]:
    settings, unit_s = log_settings(path, scenario)
    trace = distinct(read(path, format, on_progress))
    try:
        log = gathered(trace, settings, scenario)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    times = (log.jobs.arrival / unit_s, log.jobs.duration / unit_s, log.jobs.estimate / unit_s)
    unit = "times are in seconds" if unit_s == 1 else f"times are in units of {unit_s:g} s"
    return of_log(log.id, Jobs(*times, *log.jobs[3:]), (*describe(trace, log, scenario), unit))


def log_settings(path: Path, scenario: GroupsScenario) -> tuple[GroupsLog, float]:
    """Return how a log is read, and the seconds of a time unit: as the scenario's own, if its jobs come from one.

    Else a time unit is UNIT_S, and a job belongs to the queue whose median run time is nearest, as a factor.

    Raises:
        UserError: the medians of the queues do not rise.
    """
    if isinstance(scenario.workload, GroupsLog):
        return scenario.workload, 1.0
    medians = [scenario.workload.run[queue] for queue in scenario.queues]
    if any(low >= high for low, high in pairwise(medians)):
        raise UserError(
            f"{path}: a log has no queues, and the median run times of the scenario's do not rise: {medians}"
        )
    bounds = tuple(UNIT_S * sqrt(low * high) for low, high in pairwise(medians))
    return GroupsLog(name="log", format="swf", path=str(path), bounds=bounds, window=1), UNIT_S


DIGITS = 12  # of times in text, which may be those of a clock
REFUSED = {
    "capacity": "queues, levels and shares of groups go with the scenario's resources: change those in params.yaml",
    "slots": "a controller sees all queues of its groups, which have no slots",
    "horizon": "jobs of groups start at once or wait; nothing is placed within a horizon",
    "samples": "a controller draws nothing: it sets the same shares every time",
    **dict.fromkeys(("arrivals-end", "load"), "only policies of pooled clusters use it"),
    "search": "shares are set interval by interval, and no schedule with all jobs known is made",
}


def ready(params: Params, asked: ScheduleRequest) -> Ready[Jobs]:
    """Return a policy, ready for a user's jobs on the scenario's cluster."""
    row = params.groups_scenario(asked.scenario)
    act = policy_by_name(asked.policy, params, asked.scenario)
    cluster = cluster_of(row)._replace(time_limit=np.inf)  # of jobs that are drawn; a user's own are all run

    def run(mine: UserJobs[Jobs]) -> Scheduled:
        jobsets, courses = jobsets_of(mine, row.interval), list[Course]()
        with progress(f"schedule by {asked.policy}, percent", 100, brief=True) as advance:
            for k, one in enumerate(jobsets):
                courses.append(watch(act, one.jobs, cluster, _part(advance, k, len(jobsets))))
            advance(100)
        table, resources = scheduled(mine, jobsets, courses), list(row.resources)
        queues = np.array(row.queues, dtype=object)
        words = f"what each group was given, and what it used, in every interval of {row.interval:g}"
        extra = {"shares": (shares(jobsets, courses, resources), shares_schema(resources), words)}

        def columns(some: slice) -> dict[str, Column]:
            told: dict[str, Column] = {name: column[some] for name, column in table.items()}
            return told | {
                "group": mine.jobs.group[some],
                "queue": pd.Series(queues[mine.jobs.queue[some]], dtype="str"),
            }

        return Scheduled(columns, f"{means(table)} under {asked.policy}", extra)

    return Ready(job_columns(row), run)


def scheduled(mine: UserJobs[Jobs], jobsets: Sequence[UserJobset], courses: Sequence[Course]) -> dict[str, FloatArray]:
    """Return the times of every job, in the order of the file."""
    columns = {name: np.full(len(mine.number), np.nan) for name in ("start", "finish", "slowdown", "wait")}
    for one, course in zip(jobsets, courses, strict=True):
        columns["start"][one.rows] = course.start + one.since
        columns["finish"][one.rows] = course.finish + one.since
        columns["slowdown"][one.rows] = course.slowdown(one.jobs)
        columns["wait"][one.rows] = course.wait(one.jobs)
    return columns


def shares(jobsets: Sequence[UserJobset], courses: Sequence[Course], resources: Sequence[str]) -> pd.DataFrame:
    """Return the shares of every jobset: a row an interval and group."""
    frames = []
    for one, course in zip(jobsets, courses, strict=True):
        intervals, groups = course.waiting.shape
        columns = {
            "jobset": one.name,
            "begin": np.repeat(course.begin + one.since, groups),
            "group": np.tile(np.arange(groups), intervals),
            "waiting": course.waiting.ravel().astype(np.int64),
        }
        columns |= {f"share_{name}": course.share[:, :, r].ravel().astype(np.int64) for r, name in enumerate(resources)}
        columns |= {f"used_{name}": course.used[:, :, r].ravel() for r, name in enumerate(resources)}
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def means(table: Mapping[str, FloatArray]) -> str:
    """Return a schedule in a few words."""
    never = int(np.isnan(table["start"]).sum())
    left = f", {never} of them never started, for their groups are given too little" if never else ""
    return f"{left}, " + " and ".join(f"mean {name} {np.nanmean(table[name]):.4g}" for name in ("slowdown", "wait"))


def _part(advance: Advance, done: int, count: int) -> ShareCallback:
    """Return what is called with the share of one jobset that is done, and shows that of all."""
    return lambda share: advance(100 * (done + share) / count)


SCHEDULING = Scheduling(ready, SCHEDULE, DIGITS, REFUSED, ("shares",))
