"""Policies by name, on a user's own jobs: start times of all jobs, and shares and use of every group over time."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.core import storage
from pipeline.core.config import GroupsCard, GroupsLog, GroupsScenario, Params
from pipeline.core.config.groups.learning import MUST_MATCH
from pipeline.core.logs.registry import distinct, read
from pipeline.core.types import FloatArray
from pipeline.errors import UserError
from pipeline.external.loading import external, is_external
from pipeline.interactive.scheduling.schedule import Column, Ready, Scheduled, ScheduleRequest, Scheduling
from pipeline.interactive.scheduling.user_jobs import JobColumns, UserJobs, of_log
from pipeline.problems.groups.env.evaluation.controllers import Act
from pipeline.problems.groups.env.evaluation.play import Trajectory, controlled, trajectory
from pipeline.problems.groups.env.nouns import Jobs
from pipeline.problems.groups.env.tables import SCHEDULE, shares_schema, user_job_columns
from pipeline.problems.groups.env.workload.log import describe, gathered
from pipeline.problems.groups.env.workload.source import cluster_of, configurations_of
from pipeline.problems.groups.heuristics.names import RULES
from pipeline.problems.groups.heuristics.tuning import rules_with, untuned
from pipeline.progress import ProgressCallback, progress

UNIT_S = 60.0  # seconds of a time unit if the scenario's jobs are drawn, so that no log defines the unit
DIGITS = 12  # of times in text, which may be clock times
REFUSED = {
    "capacity": "queues, levels and shares of groups go with the scenario's resources: change those in params.yaml",
    "slots": "a controller sees all queues of its groups, which have no slots",
    "horizon": "jobs of groups start at once or wait, without a horizon",
    "samples": "a controller draws nothing: it sets the same shares every time",
    **dict.fromkeys(("arrivals-end", "load"), "only policies of pooled clusters use it"),
    "search": "shares are set interval by interval, and no schedule with all jobs known is made",
}


def policy_by_name(name: str, params: Params, scenario: str, knobs: Mapping[str, float] | None = None) -> Act:
    """Return a policy of a scenario's cluster; rules use `knobs` (None: as tuned there), and defaults for missing ones.

    Raises:
        UserError: there is no such policy, or it is a model of another cluster.
    """
    row = params.groups_scenario(scenario)
    cluster, configurations = cluster_of(row), configurations_of(row)
    if is_external(name):
        return controlled(external(name, row))
    if name in RULES:
        tuned = storage.knobs_for(name, scenario) if knobs is None else knobs
        return rules_with(untuned(row.groups) | dict(tuned), cluster, configurations)[name].act
    if not Path(name).is_dir():
        raise storage.unknown_policy(name, RULES)
    from pipeline.problems.groups.agents.networks import q_network  # torch: 2 s and 250 MB that rules do not need

    model = storage.read_model(Path(name), GroupsCard)
    for field in MUST_MATCH:
        trained, asked = getattr(model.card, field), getattr(row, field)
        same = list(trained.items()) == list(asked.items()) if isinstance(trained, dict) else trained == asked
        if not same:  # of resources, the order counts too
            agent = model.card.agent
            raise UserError(f"model of agent '{agent}': trained with {field} {trained}, the scenario has {asked}")
    return controlled(q_network.controller(q_network.restore(model.card, model.weights), cluster, configurations))


def from_whole_interval(jobs: Jobs, interval: float) -> tuple[Jobs, float]:
    """Return the jobs with times counted from the beginning of the first arrival's interval, and that beginning."""
    since = float(jobs.arrival[0] // interval * interval)
    return jobs._replace(arrival=jobs.arrival - since), since


def job_columns(scenario: GroupsScenario) -> JobColumns[Jobs]:
    """Return how a user's jobs are read; the users of a log are assigned to groups."""
    queues = {str(place): place for place in range(len(scenario.queues))}
    queues |= {name: place for place, name in enumerate(scenario.queues)}

    def jobs(frame: pd.DataFrame, where: str) -> Jobs:
        arrival, duration, group = (frame[name].to_numpy() for name in ("arrival", "duration", "group"))
        estimate = frame["estimate"].to_numpy() if "estimate" in frame else duration
        demand = np.ascontiguousarray(frame[list(scenario.resources)].to_numpy())
        return Jobs(arrival, duration, estimate, demand, group, frame["queue"].map(queues).to_numpy(dtype=np.int64))

    def log(path: Path, format: str, on_progress: ProgressCallback) -> UserJobs[Jobs]:
        settings, unit_s = log_settings(path, scenario)
        trace = distinct(read(path, format, on_progress))
        try:
            found = gathered(trace, settings, scenario)
        except UserError as error:
            raise UserError(f"{path}: {error}") from error
        own = found.jobs
        scaled = own._replace(
            arrival=own.arrival / unit_s, duration=own.duration / unit_s, estimate=own.estimate / unit_s
        )
        unit = "times are in seconds" if unit_s == 1 else f"times are in units of {unit_s:g} s"
        return of_log(found.id, scaled, (*describe(trace, found, scenario), unit))

    return JobColumns(scenario.policies_know, user_job_columns(scenario), jobs, log)


def log_settings(path: Path, scenario: GroupsScenario) -> tuple[GroupsLog, float]:
    """Return the settings for reading a log, and the seconds of a time unit: the scenario's own if it has a log.

    Otherwise a time unit is UNIT_S, and a job belongs to the queue with the nearest median run time (as a ratio).

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


def ready(params: Params, asked: ScheduleRequest) -> Ready[Jobs]:
    """Return a policy, ready for a user's jobs on the scenario's cluster."""
    row = params.groups_scenario(asked.scenario)
    act = policy_by_name(asked.policy, params, asked.scenario)
    cluster = cluster_of(row)._replace(time_limit=np.inf)  # the limit is for drawn jobs; a user's jobs all run

    def run(mine: UserJobs[Jobs]) -> Scheduled:
        names, resources, given = mine.jobsets, list(row.resources), list[pd.DataFrame]()
        table = {name: np.full(len(mine.number), np.nan) for name in ("start", "finish", "slowdown", "wait")}
        with progress(f"schedule by {asked.policy}, percent", 100, brief=True) as advance:
            for k, part in enumerate(mine.parts(most=1)):

                def on_progress(share: float, done: int = k) -> None:
                    advance(100 * (done + share) / len(names))

                jobs, since = from_whole_interval(part.jobs, row.interval)
                found = trajectory(act, jobs, cluster, on_progress)
                table["start"][part.rows], table["finish"][part.rows] = found.start + since, found.finish + since
                table["slowdown"][part.rows], table["wait"][part.rows] = found.slowdown(jobs), found.wait(jobs)
                given.append(shares(names[k], since, found, resources))
            advance(100)
        queues = np.array(row.queues, dtype=object)
        words = f"each group's share and use in every interval of {row.interval:g}"
        extra = {"shares": (pd.concat(given, ignore_index=True), shares_schema(resources), words)}

        def columns(some: slice) -> dict[str, Column]:
            times: dict[str, Column] = {name: column[some] for name, column in table.items()}
            return times | {
                "group": mine.jobs.group[some],
                "queue": pd.Series(queues[mine.jobs.queue[some]], dtype="str"),
            }

        return Scheduled(columns, f"{means(table)} under {asked.policy}", extra)

    return job_columns(row), run


def shares(jobset: str, since: float, found: Trajectory, resources: Sequence[str]) -> pd.DataFrame:
    """Return the shares of a jobset whose times count from `since`, one row per interval and group."""
    intervals, groups = found.waiting.shape
    columns = {
        "jobset": jobset,
        "begin": np.repeat(found.begin + since, groups),
        "group": np.tile(np.arange(groups), intervals),
        "waiting": found.waiting.ravel().astype(np.int64),
    }
    columns |= {f"share_{name}": found.share[:, :, r].ravel().astype(np.int64) for r, name in enumerate(resources)}
    columns |= {f"used_{name}": found.used[:, :, r].ravel() for r, name in enumerate(resources)}
    return pd.DataFrame(columns)


def means(table: Mapping[str, FloatArray]) -> str:
    """Return a schedule's means as text."""
    never = int(np.isnan(table["start"]).sum())
    left = f", {never} of them never started, because their groups are given too little" if never else ""
    return f"{left}, " + " and ".join(f"mean {name} {np.nanmean(table[name]):.4g}" for name in ("slowdown", "wait"))


SCHEDULING = Scheduling(ready, SCHEDULE, DIGITS, REFUSED, ("shares",))
