"""The busiest day of a log's test period, as it begins, and its replays.

Days are counted from the log's time 0. The busiest day is the one with the most waiting processor hours in a replay in
order of arrival, of those with up to 400 jobs and an empty queue at their beginning. Nothing else is known at the
choice. The jobs that run at the beginning of the day come first and have the rest of their run times and limits.

Limits are whole minutes, as Slurm's are, and jobs end at their limits.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.slurm.configuration import Cluster
from pipeline.core.config import MachinesScenario, Site, load_params
from pipeline.core.logs.registry import read
from pipeline.core.logs.trace import DAY_S
from pipeline.core.logs.windows import periods
from pipeline.core.types import THOUSANDTHS, FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.problems.machines.env.workload.windows import fitted
from pipeline.sites.orders import order_of
from pipeline.sites.queue import HOUR_S, MOVED_S, REPLAYS, backfill_of, part_of, queue_of
from pipeline.sites.replay import Backfill, Queue, replay
from pipeline.sites.rows import site_rows

MOST_JOBS = 400  # of a day
LATER_DAYS = 6  # whose jobs also arrive, because they delay those of the day
MINUTE_S, FIRST = 60.0, 1e9  # the priority of the jobs that run at the beginning


class BusyDay(NamedTuple):
    """A day's jobs: those that run at its beginning, those submitted on it, and later ones."""

    number: int  # days since the log's time 0
    queue: Queue  # times are seconds from the beginning of the day
    job: IntArray  # [J]  in the log, from 0
    running: int  # jobs that run at the beginning; they come first
    counted: int  # jobs of the day; they come next
    backfill: Backfill

    @property
    def wanted(self) -> int:
        """Return the number of jobs whose starts are needed."""
        return self.running + self.counted

    @property
    def parts(self) -> list[str]:
        """Return the part of each job [J]."""
        later = len(self.job) - self.wanted
        return ["running"] * self.running + ["day"] * self.counted + ["later"] * later


def busiest_day(log: Path) -> BusyDay:
    """Return the busiest day of the test period, by the rule above.

    Raises:
        UserError: the log cannot be advised, or no day is as required.
    """
    trace, params = read(log), load_params()
    rows = site_rows("mine", log, "swf", trace, [], params)
    scenario, site = MachinesScenario.model_validate(rows.scenario), Site.model_validate(rows.site)
    fit = fitted(trace, scenario.workload, scenario)  # type: ignore[arg-type]
    queue = in_minutes(queue_of(fit, site), float(fit.jobs.arrival[0]))
    first = periods(len(queue.run), scenario.workload)["test"][0]  # type: ignore[arg-type]
    return chosen(queue, first, backfill_of(site))


def in_minutes(queue: Queue, begun: float) -> Queue:
    """Return a queue with limits in whole minutes, at which jobs end; its first job is submitted at `begun`."""
    limit = np.ceil(queue.limit / MINUTE_S) * MINUTE_S
    return queue._replace(submit=queue.submit + begun, limit=limit, run=np.minimum(queue.run, limit))


def chosen(queue: Queue, first: int, backfill: Backfill) -> BusyDay:
    """Return the busiest day among those after the day in which job `first` is submitted, by the rule above."""
    start = replay(queue, order_of("fcfs", queue), backfill, queue.submit, np.arange(len(queue.run)))
    found: list[tuple[float, int]] = []
    for day in range(int(queue.submit[first] // DAY_S) + 1, int(queue.submit[-1] // DAY_S)):
        begin, end = day * DAY_S, (day + 1) * DAY_S
        jobs = int(((queue.submit >= begin) & (queue.submit < end)).sum())
        waiting = bool(((queue.submit < begin) & (start >= begin)).any())
        hours = (np.clip(start, begin, end) - np.clip(queue.submit, begin, end)) / HOUR_S
        if 0 < jobs <= MOST_JOBS and not waiting:
            found.append((float(hours @ queue.cpus), day))
    if not found:
        raise UserError(f"expected a day with 1 to {MOST_JOBS} jobs that begins with an empty queue, found none")
    return _day(queue, start, max(found)[1], backfill)


def _day(queue: Queue, start: FloatArray, day: int, backfill: Backfill) -> BusyDay:
    begin, end = day * DAY_S, (day + 1) * DAY_S
    runs = np.flatnonzero((start < begin) & (start + queue.run > begin))
    today = np.flatnonzero((queue.submit >= begin) & (queue.submit < end))
    later = np.flatnonzero((queue.submit >= end) & (queue.submit < end + LATER_DAYS * DAY_S))
    job = np.concatenate((runs, today, later))
    some, ran = part_of(queue, job), np.concatenate((begin - start[runs], np.zeros(len(today) + len(later))))
    some = some._replace(submit=np.maximum(some.submit - begin, 0.0), run=some.run - ran, limit=some.limit - ran)
    return BusyDay(day, some, job, len(runs), len(today), backfill)


def on_nodes(day: BusyDay, cluster: Cluster) -> BusyDay:
    """Return a day for the nodes of a cluster in place of a pool; a job that needs several nodes has all of each."""
    cpus = day.queue.cpus.astype(np.int64)
    queue = day.queue._replace(
        nodes=nodes_of(cpus, cluster),
        demand=np.minimum(cpus, cluster.cpus)[:, None] * THOUSANDTHS,
        capacity=np.full((cluster.nodes, 1), cluster.cpus * THOUSANDTHS),
        members=np.ones((len(day.queue.members), cluster.nodes), dtype=np.bool_),
        whole=True,
    )
    return day._replace(queue=queue)


def nodes_of(cpus: IntArray, cluster: Cluster) -> IntArray:
    """Return the nodes that hold jobs with these processors.

    >>> nodes_of(np.array([1, 2, 16]), Cluster(nodes=120, cpus=2)).tolist()
    [1, 1, 8]
    """
    return np.asarray(-(-cpus // cluster.cpus))


def replayed(day: BusyDay, order: str, seed: int) -> list[tuple[FloatArray, FloatArray]]:
    """Return submissions and starts [W] of the wanted jobs in each replay, submissions moved as in site advice."""
    queue, found = day.queue, []
    rule = order_of(order, queue)
    rule = rule._replace(static=rule.static + FIRST * (np.arange(len(day.job)) < day.running))
    by = np.random.default_rng(seed).uniform(-MOVED_S, MOVED_S, (REPLAYS, len(day.job)))
    for one in by:
        submit = np.maximum(queue.submit + np.where(np.arange(len(day.job)) < day.running, 0.0, one), 0.0)
        start = replay(queue, rule, day.backfill, submit, np.argsort(submit, kind="stable"), day.wanted)
        found.append((submit[: day.wanted], start[: day.wanted]))
    return found
