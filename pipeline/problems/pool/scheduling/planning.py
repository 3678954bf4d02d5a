"""Plan a user's jobs with all of them known beforehand: many schedules drawn from a policy, and a search from the best.

A plan in hindsight, not what a policy can do online: it is the best of whole schedules, and the search starts any job
that has arrived, whether a slot shows it or not. A search is made of several, each from the best order so far, so that
one can tell how far it is; of 50, 1,000 and 15,000 jobs, pieces of 200 schedules and more found as much as one search.
"""

import numpy as np

from pipeline.core import IntArray, Policy, keys
from pipeline.errors import UserError
from pipeline.problems.pool.evaluation.searching import best_of_k, search_from
from pipeline.problems.pool.nouns import Cluster, JobBatch, JobSet
from pipeline.problems.pool.scheduling.playing import abreast, mean_slowdown, schedule
from pipeline.progress import ProgressCallback
from pipeline.scheduling.user_jobs import AT_ONCE, UserJobs, parts

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
        jobs, zero = _from_zero(JobBatch(part.first, *part.jobs))
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
        best[part.rows] = best_of_k(JobBatch(part.first, *part.jobs), starts[:, part.rows])
    return best


def _from_zero(jobs: JobBatch) -> tuple[JobBatch, IntArray]:
    """Return jobs whose jobsets begin at step 0, and the step [J] at which each job's did."""
    zero = jobs.arrival[jobs.first[:-1]][jobs.episode]
    return jobs._replace(arrival=jobs.arrival - zero), zero


def _part(on_progress: ProgressCallback, first: int, some: int, samples: int, note: str) -> ProgressCallback:
    """Return who is told the percent of some schedules, and tells that of all."""
    return lambda percent, jobs: on_progress((100 * first + percent * some) / samples, note)


def _seed(seed: int, number: int, purpose: int) -> int:
    """Return a seed of its own for each number and purpose."""
    return int(keys(seed, np.array([number]), np.array([purpose]))[0])
