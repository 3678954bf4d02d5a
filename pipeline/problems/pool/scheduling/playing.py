"""Run one policy over a user's jobs."""

from collections.abc import Callable, Iterator

import numpy as np

from pipeline.core import IntArray, KeyArray, Policy
from pipeline.errors import UserError
from pipeline.problems.pool.nouns import Cluster, JobBatch, JobSet
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.rules import players
from pipeline.progress import ProgressCallback
from pipeline.scheduling.schedule import played
from pipeline.scheduling.user_jobs import AT_ONCE, Part, UserJobs
from pipeline.simulation.rollout import compiled_rule_of, play_compiled, play_together

PATIENCE = 20  # times the steps that one job after another would take
ABREAST = 4096  # jobsets side by side, of a short horizon
STEPS_ABREAST = 1 << 22  # steps of the horizons of all of them


def schedule(
    mine: UserJobs[JobSet],
    cluster: Cluster,
    policy: Policy,
    masked: bool,
    seed: int,
    on_progress: ProgressCallback,
    at_once: int = AT_ONCE,
) -> IntArray:
    """Return when each job [J] starts, in the order of the file; each jobset has the cluster to itself.

    Args:
        mine: the jobs.
        cluster: that runs each jobset by itself.
        policy: keeps to the legal actions if `masked`.
        masked: see `policy`.
        seed: of the policy's draws, if it makes any.
        on_progress: told how far it is.
        at_once: jobs whose jobsets are played side by side.

    Raises:
        UserError: the policy leaves jobs undone (one without masks may stand still for ever).
    """
    longest = int(mine.jobs.duration.sum(dtype=np.int64))
    limit = int(mine.jobs.arrival.max()) + (1 if masked else PATIENCE) * longest + cluster.horizon
    start, rule = np.empty(len(mine.number), dtype=np.int64), compiled_rule_of(policy)

    def begin(part: Part[JobSet], key: KeyArray) -> tuple[Batched, Iterator[int], Callable[[], int]]:
        simulator = Batched(JobBatch(part.first, *part.jobs[:-1]), cluster, limit, skip_forced=masked)
        if rule is not None:
            left = play_compiled(simulator, players([rule] * len(key), key))
        else:
            left = play_together(simulator, [policy], np.zeros(len(key), dtype=np.int64), key)
        return simulator, left, lambda: simulator.started

    for part, simulator in played(mine, abreast(cluster.horizon), begin, seed, on_progress, at_once):
        end = simulator.schedule()
        if undone := int((end.finish < 0).sum()):
            raise UserError(f"the policy leaves {undone} of {len(end.start)} jobs undone after {limit} steps")
        start[part.rows] = end.start
    return start


def abreast(horizon: int) -> int:
    """Return how many jobsets may go side by side."""
    return max(1, min(ABREAST, STEPS_ABREAST // horizon))


def mean_slowdown(table: UserJobs[JobSet], start: IntArray) -> float:
    """Return the mean slowdown of all jobs."""
    return float(1 + ((start - table.jobs.arrival) / table.jobs.duration).mean())


def means(table: UserJobs[JobSet], start: IntArray, measured: tuple[int, int] | None) -> str:
    """Return the mean slowdown of all jobs, and that of tables of results: over jobsets, of their measured jobs."""
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
    """Refuse an end of arrivals before the last one.

    Raises:
        UserError: a job arrives then, or later.
    """
    end, last = cluster.arrivals_end, int(arrival.max())
    if end is not None and end <= last:
        raise UserError(f"{where}: --arrivals-end: expected a step after the last arrival, in step {last}, got {end}")
