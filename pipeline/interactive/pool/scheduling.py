"""Schedule a user's own jobs on one pooled cluster: by a policy as they arrive, or planned with all of them known.

A plan is made in hindsight: it is the best of several complete schedules, and the search may start any job that has
arrived, whether a slot shows it or not. A search runs in pieces, each from the best order so far, so that progress is
visible. For 50, 1,000 and 15,000 jobs, pieces of 200 schedules or more found as much as one search.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.core.config import Params, PoolLog, PoolScenario
from pipeline.core.logs.predictions import with_predictions
from pipeline.core.logs.registry import distinct, read
from pipeline.core.logs.windows import periods
from pipeline.core.storage.files import DIGITS
from pipeline.core.types import IntArray, KeyArray, Policy, keys
from pipeline.errors import UserError
from pipeline.interactive.pool.policies import cluster_for, drawn_by_name, policy_for, uses_end
from pipeline.interactive.scheduling.schedule import Column, Ready, Scheduled, ScheduleRequest, Scheduling, played
from pipeline.interactive.scheduling.user_jobs import AT_ONCE, JobColumns, Part, UserJobs, of_log
from pipeline.problems.pool.env.evaluation.searching import best_of_k, order_of, search
from pipeline.problems.pool.env.nouns import Cluster, JobBatch, JobSet
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.rules import players
from pipeline.problems.pool.env.tables import SCHEDULE, user_job_columns
from pipeline.problems.pool.env.workload.windows import describe, discretise
from pipeline.progress import ProgressCallback, progress, say
from pipeline.simulation.rollout import compiled_rule_of, play_compiled, play_together

PATIENCE = 20  # times the steps that one job after another would take
ABREAST = 4096  # jobsets in lock step, if the horizon is short
STEPS_ABREAST = 1 << 22  # steps of the horizons of all these jobsets together
MOST_TRIED = 1_000_000_000  # jobs times schedules of a search: 20 to 150 s for 1,000 jobs, 500 s for a log of 15,000
MOST_STEPS = 200_000  # of a jobset, to its last arrival plus of work: what a schedule may have to look at for one job
TOGETHER = 1_000  # jobs whose jobsets are searched together
PIECE, FEWEST = 5_000_000, 200  # of one piece of a search: jobs times schedules, and schedules at least


def schedule(
    mine: UserJobs[JobSet],
    cluster: Cluster,
    policy: Policy,
    masked: bool,
    seed: int,
    on_progress: ProgressCallback,
    at_once: int = AT_ONCE,
) -> IntArray:
    """Return the start of each job [J], in the order of the file; each jobset has the cluster to itself.

    The policy keeps to the legal actions if `masked`; `at_once` jobs are played in lock step.

    Raises:
        UserError: the policy leaves jobs undone, as one without masks may.
    """
    longest = int(mine.jobs.duration.sum(dtype=np.int64))
    limit = int(mine.jobs.arrival.max()) + (1 if masked else PATIENCE) * longest + cluster.horizon
    start, rule = np.empty(len(mine.number), dtype=np.int64), compiled_rule_of(policy)

    def begin(part: Part[JobSet], key: KeyArray) -> tuple[Batched, Iterator[int]]:
        simulator = Batched(JobBatch(part.first, *part.jobs[:-1]), cluster, limit, skip_forced=masked)
        if rule is None:
            return simulator, play_together(simulator, [policy], np.zeros(len(key), dtype=np.int64), key)
        return simulator, play_compiled(simulator, players([rule] * len(key), key))

    for part, simulator in played(mine, abreast(cluster.horizon), begin, seed, on_progress, at_once):
        end = simulator.schedule()
        if undone := int((end.finish < 0).sum()):
            raise UserError(f"the policy leaves {undone} of {len(end.start)} jobs undone after {limit} steps")
        start[part.rows] = end.start
    return start


def abreast(horizon: int) -> int:
    """Return how many jobsets may be played in lock step."""
    return max(1, min(ABREAST, STEPS_ABREAST // horizon))


def mean_slowdown(table: UserJobs[JobSet], start: IntArray) -> float:
    """Return the mean slowdown of all jobs."""
    return float(1 + ((start - table.jobs.arrival) / table.jobs.duration).mean())


def means(table: UserJobs[JobSet], start: IntArray, measured: tuple[int, int] | None) -> str:
    """Return the mean slowdown of all jobs, and the one in tables of results: over jobsets, of their measured jobs."""
    kept: IntArray | slice = slice(None)
    if measured is not None:
        kept = np.flatnonzero((table.jobs.arrival >= measured[0]) & (table.jobs.arrival < measured[1]))
    jobset, slowdown = table.number[kept], 1 + ((start - table.jobs.arrival) / table.jobs.duration)[kept]
    count = np.bincount(jobset, minlength=int(table.number.max()) + 1)
    said = f"{mean_slowdown(table, start):.4g}"
    if not count.all() or (len(count) == 1 and measured is None):
        return said
    mean = (np.bincount(jobset, weights=slowdown) / count).mean()
    return f"{said} ({mean:.4g} as tables of results have it, over jobsets)"


def must_end(arrival: IntArray, cluster: Cluster, where: str) -> None:
    """Raise a UserError if jobs arrive at or after the end of arrivals."""
    end, last = cluster.arrivals_end, int(arrival.max())
    if end is not None and end <= last:
        raise UserError(f"{where}: --arrivals-end: expected a step after the last arrival, in step {last}, got {end}")


def must_be_searchable(table: UserJobs[JobSet], horizon: int, evaluations: int, where: str) -> None:
    """Raise a UserError for too many jobs times schedules, or for a jobset with too many steps."""
    count = len(table.number)
    if count * evaluations > MOST_TRIED:
        raise UserError(
            f"{where}: --search: expected at most {MOST_TRIED:,} jobs times schedules, "
            f"found {count:,} jobs times {evaluations:,}"
        )
    for part in table.parts(abreast(horizon)):
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
    """Return the starts [J] of the best of a known schedule and `samples` schedules that a policy draws."""
    count, jobs = len(table.number), table.jobs
    together = max(1, at_once // count)
    for first in range(0, samples, together):
        some = min(together, samples - first)
        # Copies of all jobs, each in jobsets of its own.
        number = np.tile(table.number.astype(np.int64), (some, 1))
        number += np.arange(some)[:, None] * (table.number.max() + 1)
        several = JobSet._make(None if one is None else np.concatenate([one] * some) for one in jobs)
        note = f"mean slowdown {mean_slowdown(table, start):.4g}"

        def advance(percent: float, jobs: str, first: int = first, some: int = some, note: str = note) -> None:
            on_progress((100 * first + percent * some) / samples, note)

        copies = table._replace(number=number.ravel(), jobs=several)
        drawn = schedule(copies, cluster, policy, masked, _seed(seed, first, 0), advance, at_once)
        starts, start = np.concatenate([start[None], drawn.reshape(some, count)]), np.empty_like(start)
        for part in table.parts(abreast(cluster.horizon)):
            start[part.rows] = best_of_k(JobBatch(part.first, *part.jobs[:-1]), starts[:, part.rows])
    return start


def searched(
    table: UserJobs[JobSet],
    cluster: Cluster,
    start: IntArray,
    evaluations: int,
    seed: int,
    on_progress: ProgressCallback,
) -> IntArray:
    """Return starts [J] no worse than those of a schedule, after `evaluations` schedules of each jobset."""
    best, done = start.copy(), 0
    on_progress(0, f"mean slowdown {mean_slowdown(table, best):.4g}")
    for part in table.parts(abreast(cluster.horizon), TOGETHER):
        jobs = JobBatch(part.first, *part.jobs[:-1])
        zero = jobs.arrival[jobs.first[:-1]][jobs.episode]  # of each job: the step at which its jobset begins
        jobs = jobs._replace(arrival=jobs.arrival - zero)
        size = max(FEWEST, PIECE // len(zero))
        for tried in range(0, evaluations, size):
            some = min(size, evaluations - tried)
            mine, own = best[part.rows] - zero, _seed(seed, part.number[0], 1 + tried)
            found = search(jobs, cluster.capacity, order_of(jobs, mine), some, own)
            best[part.rows] = best_of_k(jobs, np.stack([mine, found])) + zero
            done += some * len(zero)
            on_progress(100 * done / (evaluations * len(start)), f"mean slowdown {mean_slowdown(table, best):.4g}")
    return best


def _seed(seed: int, number: int, purpose: int) -> int:
    """Return a seed for a number and purpose."""
    return int(keys(seed, np.array([number]), np.array([purpose]))[0])


def job_columns(params: Params, scenario: PoolScenario) -> JobColumns[JobSet]:
    """Return the reader of a user's jobs; a log is read by the settings of params.yaml's own log, if any."""

    def jobs(frame: pd.DataFrame, where: str) -> JobSet:
        short = frame.drop(columns=["jobset", "job", "arrival"]).astype("int16")  # at most 10,000, like units
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
            notes = [f"run times are predicted from the first {learned:,} jobs: judge by the later jobs"]
        steps = discretise(trace, own, scenario.resources, scenario.horizon, scenario.policies_know != "durations")
        found = JobSet(steps.arrival, steps.duration, steps.demand, steps.estimate)
        return of_log(steps.id, found, [*describe(trace, steps), *notes])

    columns = user_job_columns(scenario.resources, scenario.horizon)
    return JobColumns(scenario.policies_know, columns, jobs, log)


def ready(params: Params, asked: ScheduleRequest) -> Ready[JobSet]:
    """Return a policy that is ready for a user's jobs, on the scenario's cluster or one of another size."""
    policy, samples, tries = asked.policy, asked.samples, asked.tries
    scenario = params.pool_scenario(asked.scenario).changed(asked.capacity, asked.slots, asked.horizon)
    cluster = cluster_for(policy, scenario)._replace(arrivals_end=asked.arrivals_end, load=asked.load, measured=None)
    chosen, masked = policy_for(params, policy, scenario, asked.scenario, cluster)
    drawn = drawn_by_name(policy, scenario) if samples else None

    def run(mine: UserJobs[JobSet]) -> Scheduled:
        must_end(mine.jobs.arrival, cluster, str(asked.jobs))
        if uses_end(policy):
            lacking = {
                "arrivals-end": asked.arrivals_end is None and scenario.arrivals_end is not None,
                "load": asked.load is None and scenario.known_load(scenario.loads[0]) is not None,
            }
            for option in (name for name, lacks in lacking.items() if lacks):
                say(f"{policy} may decide by --{option}, which it is given in scenario '{asked.scenario}' and not here")
        if tries:
            must_be_searchable(mine, cluster.horizon, tries, str(asked.jobs))
        with progress(f"schedule by {policy}, percent", 100, brief=True) as advance:
            start = schedule(mine, cluster, chosen, masked, params.seed, advance)
        if samples or tries:
            start = planned(mine, cluster, start, drawn, samples, tries, params.seed)
        who = f"a plan in hindsight from {policy}" if samples or tries else policy
        return scheduled(mine.jobs, start, f", mean slowdown {means(mine, start, scenario.measured)} under {who}")

    return job_columns(params, scenario), run


def scheduled(jobs: JobSet, start: IntArray, said: str = "") -> Scheduled:
    """Return the schedule of the starts [J]."""

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
    """Return starts [J] no worse than those of a schedule, and print their slowdown."""
    said = [f"{mean_slowdown(table, start):.4g} as scheduled"]
    if drawn is not None:
        with progress(f"draw {samples:,} schedules, percent", 100, brief=True) as advance:
            start = best_drawn(table, cluster, *drawn, start, samples, seed, advance)
        said.append(f"{mean_slowdown(table, start):.4g} the best with {samples:,} drawn")
    if tries:
        with progress(f"search {tries:,} schedules, percent", 100, brief=True) as advance:
            start = searched(table, cluster, start, tries, seed, advance)
        said.append(f"{mean_slowdown(table, start):.4g} after a search of {tries:,}")
    say(f"a plan in hindsight, all jobs known beforehand: mean slowdown {', '.join(said)}")
    return start


SCHEDULING = Scheduling(ready, SCHEDULE, DIGITS, {})
