"""Run one policy over a user's jobs."""

import time
from collections.abc import Callable

import numpy as np

from pipeline.core import Cluster, IntArray, JobBatch, Observation, Policy, keys
from pipeline.errors import UserError
from pipeline.simulator.batched import Batched
from pipeline.simulator.rollout import Watch, play
from pipeline.workload.tables import AT_ONCE, JobTable, parts

PATIENCE = 20  # times the steps that one job after another would take
LOOK_EVERY_S = 0.5

Heard = Callable[[float, str], None]  # told the percent of the jobs that have been started, and how many


def schedule(
    table: JobTable,
    cluster: Cluster,
    policy: Policy,
    masked: bool,
    seed: int,
    heard: Heard,
    at_once: int = AT_ONCE,
) -> IntArray:
    """Return when each job [J] of a table starts, in the table's order.

    Args:
        table: the jobs.
        cluster: that runs each jobset by itself.
        policy: keeps to the legal actions if `masked`.
        masked: see `policy`.
        seed: of the policy's draws, if it makes any.
        heard: told how far it is.
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
        watch = _watch(part.jobs, played, len(start), heard)
        play(simulator, policy, keys(seed, part.number, np.zeros_like(part.number)), watch)
        end = simulator.schedule()
        undone = int((end.finish < 0).sum())
        if undone:
            raise UserError(f"the policy leaves {undone} of {len(end.start)} jobs undone after {limit} steps")
        start[part.rows] = end.start
        played += len(end.start)
    heard(100, f"{played:,} jobs")
    return start


def mean_slowdown(table: JobTable, start: IntArray) -> float:
    """Return the mean slowdown of all jobs."""
    return float(1 + ((start - table.arrival) / table.duration).mean())


def _watch(jobs: JobBatch, played: int, total: int, heard: Heard) -> Watch:
    """Return what tells, now and then, how many jobs have been started; `played` were in earlier parts."""
    due = time.monotonic() + LOOK_EVERY_S

    def watch(rows: IntArray, view: Observation, actions: IntArray) -> None:
        nonlocal due
        if time.monotonic() < due:
            return
        due = time.monotonic() + LOOK_EVERY_S
        done = played + int(jobs.first[-1]) - _to_start(jobs, rows, view)
        heard(100 * done / total, f"{done:,} jobs")

    return watch


def _to_start(jobs: JobBatch, rows: IntArray, view: Observation) -> int:
    """Return how many jobs of the episodes that go on have not been started: those that wait, and those to come."""
    waiting = int(view.backlog.sum()) + int((view.duration > 0).sum())
    to_come = 0
    for b, now in zip(rows, view.now, strict=True):
        arrival = jobs.arrival[jobs.first[b] : jobs.first[b + 1]]
        to_come += len(arrival) - int(np.searchsorted(arrival, now, side="right"))
    return waiting + to_come
