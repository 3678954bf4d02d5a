"""Schedule a user's own jobs on one pooled cluster: by a policy as they arrive, or planned with all of them known."""

from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.config import Params, PoolLog, PoolScenario
from pipeline.core import IntArray, Policy
from pipeline.logs.predicting.run_times import predicted
from pipeline.logs.registry import read
from pipeline.logs.user_files import distinct
from pipeline.logs.windows import periods
from pipeline.problems.pool.nouns import Cluster, JobSet
from pipeline.problems.pool.policies import drawn_by_name, policy_for, uses_end
from pipeline.problems.pool.scheduling.planning import best_drawn, must_be_searchable, searched
from pipeline.problems.pool.scheduling.playing import mean_slowdown, means, must_end, schedule
from pipeline.problems.pool.tables import SCHEDULE, user_job_columns
from pipeline.problems.pool.workload.windows import describe, discretise
from pipeline.progress import ProgressCallback, progress, say
from pipeline.scheduling.schedule import Column, Ready, Scheduled, ScheduleRequest, Scheduling
from pipeline.scheduling.user_jobs import JobColumns, UserJobs, of_log
from pipeline.storage.files import DIGITS


def job_columns(params: Params, scenario: PoolScenario) -> JobColumns[JobSet]:
    """Return how a user's jobs are read; a log by the settings of params.yaml's own, if there is one."""

    def jobs(frame: pd.DataFrame, where: str) -> JobSet:
        short = frame.drop(columns=["jobset", "job", "arrival"]).astype("int16")  # of at most 10,000, as units are
        return JobSet(
            frame["arrival"].to_numpy(),
            short["duration"].to_numpy(),
            np.ascontiguousarray(short[list(scenario.resources)].to_numpy()),
            short["estimate"].to_numpy() if "estimate" in short else None,
        )

    def log(path: Path, format: str, on_progress: ProgressCallback) -> UserJobs[JobSet]:
        own = params.workload if isinstance(params.workload, PoolLog) else PoolLog(name="swf", path=str(path))
        trace, notes = distinct(read(path, format, on_progress)), []
        if scenario.policies_know == "predictions":
            learned = max(1, periods(len(trace.id), own)["train"][1])
            trace = predicted(trace, np.arange(learned))
            notes = [f"run times are predicted as the first {learned:,} jobs teach: judge by the jobs behind them"]
        steps = discretise(trace, own, scenario.resources, scenario.horizon, scenario.policies_know != "durations")
        found = JobSet(steps.arrival, steps.duration, steps.demand, steps.estimate)
        return of_log(steps.id, found, [*describe(trace, steps), *notes])

    columns = user_job_columns(scenario.resources, scenario.horizon)
    return JobColumns(scenario.policies_know, columns, jobs, log)


def ready(params: Params, asked: ScheduleRequest) -> Ready[JobSet]:
    """Return a policy, ready for a user's jobs on the scenario's cluster, or on one of another size."""
    policy, samples, tries = asked.policy, asked.samples, asked.tries
    scenario = params.pool_scenario(asked.scenario).changed(asked.capacity, asked.slots, asked.horizon)
    cluster = Cluster.of(scenario)._replace(arrivals_end=asked.arrivals_end)
    chosen, masked = policy_for(params, policy, scenario, asked.scenario, cluster)
    drawn = drawn_by_name(policy, scenario) if samples else None

    def run(mine: UserJobs[JobSet]) -> Scheduled:
        must_end(mine.jobs.arrival, cluster, str(asked.jobs))
        if asked.arrivals_end is None and scenario.arrivals_end is not None and uses_end(policy):
            say(f"{policy} is not given when arrivals end, as in scenario '{asked.scenario}': --arrivals-end")
        if tries:
            must_be_searchable(mine, cluster.horizon, tries, str(asked.jobs))
        with progress(f"schedule by {policy}, percent", 100, brief=True) as advance:
            start = schedule(mine, cluster, chosen, masked, params.seed, advance)
        if samples or tries:
            start = planned(mine, cluster, start, drawn, samples, tries, params.seed)
        who = f"a plan in hindsight from {policy}" if samples or tries else policy
        return scheduled(mine.jobs, start, f", mean slowdown {means(mine, start, scenario.measured)} under {who}")

    return Ready(job_columns(params, scenario), run)


def scheduled(jobs: JobSet, start: IntArray, said: str = "") -> Scheduled:
    """Return a schedule by the start of each job [J]."""

    def columns(some: slice) -> dict[str, Column]:
        finish = start[some] + jobs.duration[some]
        return {
            "start": start[some],
            "finish": finish,
            "slowdown": (finish - jobs.arrival[some]) / jobs.duration[some],
        }

    return Scheduled(columns, said)


def planned(
    table: UserJobs[JobSet],
    cluster: Cluster,
    start: IntArray,
    drawn: tuple[Policy, bool] | None,
    samples: int,
    tries: int,
    seed: int,
) -> IntArray:
    """Return starts [J] no worse than those of a schedule, and say what they are."""
    said = [f"{mean_slowdown(table, start):.4g} as scheduled"]
    if drawn is not None:
        with progress(f"draw {samples:,} schedules, percent", 100, brief=True) as advance:
            start = best_drawn(table, cluster, *drawn, start, samples, seed, advance)
        said.append(f"{mean_slowdown(table, start):.4g} the best beside {samples:,} drawn")
    if tries:
        with progress(f"search {tries:,} schedules, percent", 100, brief=True) as advance:
            start = searched(table, cluster, start, tries, seed, advance)
        said.append(f"{mean_slowdown(table, start):.4g} after a search of {tries:,}")
    say(f"a plan in hindsight, all jobs known beforehand: mean slowdown {', '.join(said)}")
    return start


SCHEDULING = Scheduling(ready, SCHEDULE, DIGITS, {})
