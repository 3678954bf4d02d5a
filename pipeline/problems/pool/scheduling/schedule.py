"""Schedule a user's own jobs on one pooled cluster: by a policy as they arrive, or planned with all of them known.

A plan in hindsight, not what a policy can do online: it is the best of whole schedules, and the search starts any job
that has arrived, whether a slot shows it or not. A search is made of several, each from the best order so far, so that
one can tell how far it is; of 50, 1,000 and 15,000 jobs, pieces of 200 schedules and more found as much as one search.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.config import Params, PoolLog, PoolScenario
from pipeline.core import IntArray, Policy, keys
from pipeline.errors import UserError
from pipeline.logs.predictions import with_predictions
from pipeline.logs.registry import distinct, read
from pipeline.logs.windows import periods
from pipeline.problems.pool.evaluation.searching import best_of_k, search_from
from pipeline.problems.pool.nouns import Cluster, JobBatch, JobSet
from pipeline.problems.pool.policies import cluster_for, drawn_by_name, policy_for, uses_end
from pipeline.problems.pool.scheduling.playing import abreast, mean_slowdown, means, must_end, schedule
from pipeline.problems.pool.tables import SCHEDULE, user_job_columns
from pipeline.problems.pool.workload.windows import describe, discretise
from pipeline.progress import ProgressCallback, progress, say
from pipeline.scheduling.schedule import Column, Ready, Scheduled, ScheduleRequest, Scheduling
from pipeline.scheduling.user_jobs import AT_ONCE, JobColumns, UserJobs, of_log, parts
from pipeline.storage.files import DIGITS

MOST_TRIED = 1_000_000_000  # jobs times schedules of a search: 20 to 150 s of 1,000 jobs, 500 s of a log of 15,000
MOST_STEPS = 200_000  # of a jobset, until its last arrival and of work: what a schedule may have to look at for one job
TOGETHER = 1_000  # jobs whose jobsets are searched side by side
PIECE, FEWEST = 5_000_000, 200  # of one search among several: jobs times schedules, and schedules at least


def must_be_searchable(table: UserJobs[JobSet], horizon: int, evaluations: int, where: str) -> None:
    """Refuse, before any work, a table that is too large for a search.

    Raises:
        UserError: it has too many jobs for so many schedules, or a jobset that takes too many steps.
    """
    count = len(table.number)
    if count * evaluations > MOST_TRIED:
        raise UserError(
            f"{where}: --search: expected at most {MOST_TRIED:,} jobs times schedules, "
            f"found {count:,} jobs times {evaluations:,}"
        )
    for part in parts(table, abreast(horizon)):
        jobs, first, last = part.jobs, part.first[:-1], part.first[1:] - 1
        work = np.add.reduceat(jobs.duration, first, dtype=np.int64)
        steps = jobs.arrival[last] - jobs.arrival[first] + work
        if steps.max() > MOST_STEPS:
            row = np.arange(count)[part.rows][first[steps.argmax()]]
            raise UserError(
                f"{where}: --search: expected jobsets of at most {MOST_STEPS:,} steps between arrivals and of work, "
                f"found {steps.max():,} in jobset '{table.ids['jobset'][int(row)].as_py()}'"
            )


def best_drawn(
    table: UserJobs[JobSet],
    cluster: Cluster,
    policy: Policy,
    masked: bool,
    start: IntArray,
    samples: int,
    seed: int,
    on_progress: ProgressCallback,
    at_once: int = AT_ONCE,
) -> IntArray:
    """Return the best start of each job [J]: of the one that is known, and of schedules that a policy draws.

    Args:
        table: the jobs.
        cluster: that runs each jobset by itself.
        policy: draws its actions; keeps to the legal ones if `masked`.
        masked: see `policy`.
        start: of each job [J], in a schedule that is known.
        samples: schedules to draw.
        seed: of the draws; each schedule has its own, by its number.
        on_progress: told how far it is.
        at_once: jobs that are played side by side.
    """
    count = len(table.number)
    together = max(1, at_once // count)
    for first in range(0, samples, together):
        some = min(together, samples - first)
        copies, own = _copied(table, some), _seed(seed, first, 0)
        note = f"mean slowdown {mean_slowdown(table, start):.4g}"
        drawn = schedule(copies, cluster, policy, masked, own, _part(on_progress, first, some, samples, note), at_once)
        start = _best(table, cluster.horizon, np.concatenate([start[None], drawn.reshape(some, count)]))
    return start


def searched(
    table: UserJobs[JobSet],
    cluster: Cluster,
    start: IntArray,
    evaluations: int,
    seed: int,
    on_progress: ProgressCallback,
) -> IntArray:
    """Return starts [J] no worse than those of a schedule, from the order in which its jobs start.

    Args:
        table: the jobs; see `must_be_searchable`.
        cluster: that runs each jobset by itself.
        start: of each job [J], in the schedule.
        evaluations: schedules to try of each jobset.
        seed: of the draws.
        on_progress: told how far it is, and the mean slowdown.
    """
    best, done = start.copy(), 0
    on_progress(0, f"mean slowdown {mean_slowdown(table, best):.4g}")
    for part in parts(table, abreast(cluster.horizon), TOGETHER):
        jobs = JobBatch(part.first, *part.jobs[:-1])
        zero = jobs.arrival[jobs.first[:-1]][jobs.episode]  # of each job: the step at which its jobset begins
        jobs = jobs._replace(arrival=jobs.arrival - zero)
        size = max(FEWEST, PIECE // len(zero))
        for tried in range(0, evaluations, size):
            some = min(size, evaluations - tried)
            mine, own = best[part.rows] - zero, _seed(seed, part.number[0], 1 + tried)
            found = search_from(jobs, cluster.capacity, mine[None], some, own).start
            best[part.rows] = best_of_k(jobs, np.stack([mine, found])) + zero
            done += some * len(zero)
            on_progress(100 * done / (evaluations * len(start)), f"mean slowdown {mean_slowdown(table, best):.4g}")
    return best


def _copied(table: UserJobs[JobSet], count: int) -> UserJobs[JobSet]:
    """Return the jobs several times over, each time in jobsets of their own; ids are those of one copy."""
    number = np.tile(table.number.astype(np.int64), (count, 1)) + np.arange(count)[:, None] * (table.number.max() + 1)
    several = (None if one is None else np.concatenate([one] * count) for one in table.jobs)
    return table._replace(number=number.ravel(), jobs=JobSet._make(several))


def _best(table: UserJobs[JobSet], horizon: int, starts: IntArray) -> IntArray:
    """Return the starts [J] of each jobset's best among k schedules [k, J]."""
    best: IntArray = np.empty_like(starts[0])
    for part in parts(table, abreast(horizon)):
        best[part.rows] = best_of_k(JobBatch(part.first, *part.jobs[:-1]), starts[:, part.rows])
    return best


def _part(on_progress: ProgressCallback, first: int, some: int, samples: int, note: str) -> ProgressCallback:
    """Return who is told the percent of some schedules, and tells that of all."""
    return lambda percent, jobs: on_progress((100 * first + percent * some) / samples, note)


def _seed(seed: int, number: int, purpose: int) -> int:
    """Return a seed of its own for each number and purpose."""
    return int(keys(seed, np.array([number]), np.array([purpose]))[0])


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
            trace = with_predictions(trace, np.arange(learned))
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
    cluster = cluster_for(policy, scenario)._replace(arrivals_end=asked.arrivals_end, load=asked.load, measured=None)
    chosen, masked = policy_for(params, policy, scenario, asked.scenario, cluster)
    drawn = drawn_by_name(policy, scenario) if samples else None

    def run(mine: UserJobs[JobSet]) -> Scheduled:
        must_end(mine.jobs.arrival, cluster, str(asked.jobs))
        for option in missing(asked, scenario) if uses_end(policy) else ():
            say(f"{policy} may decide by --{option}, which it is given in scenario '{asked.scenario}' and not here")
        if tries:
            must_be_searchable(mine, cluster.horizon, tries, str(asked.jobs))
        with progress(f"schedule by {policy}, percent", 100, brief=True) as advance:
            start = schedule(mine, cluster, chosen, masked, params.seed, advance)
        if samples or tries:
            start = planned(mine, cluster, start, drawn, samples, tries, params.seed)
        who = f"a plan in hindsight from {policy}" if samples or tries else policy
        return scheduled(mine.jobs, start, f", mean slowdown {means(mine, start, scenario.measured)} under {who}")

    return Ready(job_columns(params, scenario), run)


def missing(asked: ScheduleRequest, scenario: PoolScenario) -> list[str]:
    """Return the options that would say what policies know in the scenario and are not given here."""
    ends = asked.arrivals_end is None and scenario.arrivals_end is not None
    known = asked.load is None and scenario.known_load(scenario.loads[0]) is not None
    return ["arrivals-end"] * ends + ["load"] * known


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
