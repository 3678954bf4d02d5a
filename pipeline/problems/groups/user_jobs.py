"""A user's own job table or log, as jobs of a scenario's groups."""

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.config import GroupsLog, GroupsScenario
from pipeline.core import FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.logs.registry import read
from pipeline.logs.user_files import distinct, log_format
from pipeline.problems.groups.nouns import Jobs
from pipeline.problems.groups.tables import user_jobs_schema
from pipeline.problems.groups.workload.log import describe, gathered
from pipeline.problems.one_jobset import place_of
from pipeline.progress import ProgressCallback
from pipeline.storage.files import check_columns, check_table, line_of
from pipeline.storage.user_tables import as_told, user_table

IDS = ("jobset", "job")
TIMES = ("arrival", "duration", "estimate")
UNIT_S = 60.0  # seconds of a time unit, where the scenario's jobs are drawn and no log says what their unit is


class UserJobset(NamedTuple):
    """One jobset of a user."""

    name: str
    rows: IntArray  # [J]  of the file, in order of arrival
    jobs: Jobs  # at times from `since` on
    since: float  # a whole number of intervals


class UserJobs(NamedTuple):
    """All jobs of a user, in the order of the file."""

    ids: pd.DataFrame  # [J]  jobset and job, as they are written
    jobs: Jobs
    notes: Sequence[str]  # for people

    def jobsets(self, interval: float) -> list[UserJobset]:
        """Return the jobsets in the order in which the file names them."""
        found, place = [], pd.factorize(self.ids["jobset"])[0]
        for number, name in enumerate(self.ids["jobset"].unique()):
            some = np.flatnonzero(place == number)
            rows = some[np.argsort(self.jobs.arrival[some], kind="stable")]
            jobs = Jobs._make(column[rows] for column in self.jobs)
            since = float(jobs.arrival[0] // interval * interval)
            found.append(UserJobset(str(name), rows, jobs._replace(arrival=jobs.arrival - since), since))
        return found


def read_jobs(path: Path, scenario: GroupsScenario, on_progress: ProgressCallback) -> UserJobs:
    """Read a user's job table, or a log whose users are gathered into groups.

    Raises:
        UserError: the file cannot be read, or a row is not a job that the scenario's cluster can run.
    """
    format = log_format(path)
    if format is None:
        return _table(path, scenario)
    settings, unit_s = log_settings(path, scenario)
    trace = distinct(read(path, format, on_progress))
    try:
        log = gathered(trace, settings, scenario)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    times = (log.jobs.arrival / unit_s, log.jobs.duration / unit_s, log.jobs.estimate / unit_s)
    unit = "times are in seconds" if unit_s == 1 else f"times are in units of {unit_s:g} s"
    ids = pd.DataFrame({"jobset": "0", "job": log.id.astype(str)})
    return UserJobs(ids, Jobs(*times, *log.jobs[3:]), (*describe(trace, log, scenario), unit))


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


def chosen(jobsets: Sequence[UserJobset], where: Path, name: str | None) -> UserJobset:
    """Return the named jobset, or the only one.

    Raises:
        UserError: there is no such jobset, or several and none is named.
    """
    return jobsets[place_of([one.name for one in jobsets], where, name)]


def _table(path: Path, scenario: GroupsScenario) -> UserJobs:
    where, resources = str(path), list(scenario.resources)
    whole = pd.concat([some for some, _ in user_table(path, (*IDS, "queue"))])
    frame, notes = as_told(whole, scenario.policies_know, where)
    frame = frame if "jobset" in frame else frame.assign(jobset="0")
    schema = user_jobs_schema(scenario, estimated="estimate" in frame)
    check_columns(frame, schema, where)
    if frame.empty:
        raise UserError(f"{path}: expected jobs, found none")
    words = {str(place): name for place, name in enumerate(scenario.queues)}
    changed: dict[str, pd.Series] = {"queue": frame["queue"].astype("str").replace(words)}
    changed |= {name: frame[name].astype("str") for name in IDS}
    changed |= {name: _numbers(frame, name, where).astype("float64") for name in TIMES if name in frame}
    changed |= {name: _whole(frame, name, where) for name in ("group", *resources)}
    frame = check_table(frame.assign(**changed), schema, where)
    arrival, duration = (frame[name].to_numpy() for name in TIMES[:2])
    estimate: FloatArray = frame["estimate"].to_numpy() if "estimate" in frame else duration
    queue = frame["queue"].map({name: place for place, name in enumerate(scenario.queues)}).to_numpy(dtype=np.int64)
    demand = frame[resources].to_numpy(dtype=np.int64)
    jobs = Jobs(arrival, duration, estimate, demand, frame["group"].to_numpy(), queue)
    return UserJobs(frame[list(IDS)].reset_index(drop=True), jobs, notes)


def _numbers(frame: pd.DataFrame, name: str, where: str) -> pd.Series:
    """Return a column as numbers."""
    found = pd.to_numeric(frame[name], errors="coerce")
    wrong = np.flatnonzero(found.isna())
    if len(wrong):
        raise UserError(
            f"{where}: {name}: expected numbers, got {frame[name].iloc[wrong[0]]} in {line_of(where, wrong[0])}"
        )
    return found


def _whole(frame: pd.DataFrame, name: str, where: str) -> pd.Series:
    """Return a column of whole numbers as such."""
    found = _numbers(frame, name, where)
    wrong = np.flatnonzero(found != np.floor(found))
    if len(wrong):
        raise UserError(
            f"{where}: {name}: expected whole numbers, got {found.iloc[wrong[0]]} in {line_of(where, wrong[0])}"
        )
    return found.astype("int64")
