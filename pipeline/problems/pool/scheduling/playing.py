"""Run one policy over a user's jobs."""

import time
from collections.abc import Iterator

import numpy as np

from pipeline.core import IntArray, KeyArray, Policy, keys
from pipeline.errors import UserError
from pipeline.problems.pool.nouns import Cluster
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.rules import players
from pipeline.problems.pool.workload.job_table import AT_ONCE, JobTable, parts
from pipeline.progress import ProgressCallback
from pipeline.simulation.choosing import compiled_rule_of
from pipeline.simulation.rollout import play_compiled, play_together

PATIENCE = 20  # times the steps that one job after another would take
LOOK_EVERY_S = 0.5


def schedule(
    table: JobTable,
    cluster: Cluster,
    policy: Policy,
    masked: bool,
    seed: int,
    on_progress: ProgressCallback,
    at_once: int = AT_ONCE,
) -> IntArray:
    """Return when each job [J] of a table starts, in the table's order.

    Args:
        table: the jobs.
        cluster: that runs each jobset by itself.
        policy: keeps to the legal actions if `masked`.
        masked: see `policy`.
        seed: of the policy's draws, if it makes any.
        on_progress: told how far it is.
        at_once: jobs whose jobsets are played side by side.

    Raises:
        UserError: the policy leaves jobs undone (one without masks may stand still for ever).
    """
    longest = int(table.duration.sum(dtype=np.int64))
    limit = int(table.arrival.max()) + (1 if masked else PATIENCE) * longest + cluster.horizon
    start = np.empty(len(table.arrival), dtype=np.int64)
    played = 0
    for part in parts(table, cluster.horizon, at_once):
        simulator = Batched(part.jobs, cluster, limit, skip_forced=masked)
        for _ in _seldom(_going(simulator, policy, keys(seed, part.number, np.zeros_like(part.number)))):
            begun = played + simulator.placed
            on_progress(100 * begun / len(start), f"{begun:,} jobs")
        end = simulator.schedule()
        undone = int((end.finish < 0).sum())
        if undone:
            raise UserError(f"the policy leaves {undone} of {len(end.start)} jobs undone after {limit} steps")
        start[part.rows] = end.start
        played += len(end.start)
    on_progress(100, f"{played:,} jobs")
    return start


def mean_slowdown(table: JobTable, start: IntArray) -> float:
    """Return the mean slowdown of all jobs."""
    return float(1 + ((start - table.arrival) / table.duration).mean())


def means(table: JobTable, start: IntArray, measured: tuple[int, int] | None) -> str:
    """Return the mean slowdown of all jobs, and that of tables of results: over jobsets, of their measured jobs."""
    kept: IntArray | slice = slice(None)
    if measured is not None:
        kept = np.flatnonzero((table.arrival >= measured[0]) & (table.arrival < measured[1]))
    jobset, slowdown = table.jobset[kept], 1 + ((start - table.arrival) / table.duration)[kept]
    count = np.bincount(jobset, minlength=int(table.jobset.max()) + 1)
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


def _going(simulator: Batched, policy: Policy, key: KeyArray) -> Iterator[int]:
    """Return what plays a policy to the end, compiled if it can be."""
    rule, episodes = compiled_rule_of(policy), len(key)
    if rule is not None:
        return play_compiled(simulator, players([rule] * episodes, key))
    return play_together(simulator, [policy], np.zeros(episodes, dtype=np.int64), key)


def _seldom(going: Iterator[int]) -> Iterator[int]:
    """Pass on, now and then, that play goes on."""
    due = time.monotonic() + LOOK_EVERY_S
    for left in going:
        if time.monotonic() >= due:
            yield left
            due = time.monotonic() + LOOK_EVERY_S
