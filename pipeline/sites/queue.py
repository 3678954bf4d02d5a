"""A site's log as a queue, its periods, and the replays of each with slightly moved submissions.

A single replay is chaotic: on HPC2N, moving each submission by up to a minute changes the mean bounded slowdown of one
order by a tenth (standard deviation). Every figure is therefore a mean over replays with submissions moved at random,
the same moves for every order.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.core.config import MachinesLog, MachinesScenario, Multifactor, Partition, Site
from pipeline.core.logs.slurm import Outage, read_outages
from pipeline.core.logs.trace import DAY_S, Trace
from pipeline.core.logs.windows import periods
from pipeline.core.types import SPLIT_NUMBERS, THOUSANDTHS, FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.problems.machines.env.workload.windows import Fitted
from pipeline.sites.quotas import qos_of, quotas_of
from pipeline.sites.replay import NO_OUTAGES, Backfill, Outages, Queue

HOUR_S = 3_600.0
MOVED_S = 60.0  # the most that a submission is moved, either way
REPLAYS = 12
MOST_TRAINED = 8_000  # last jobs of the training period
MOST_JOBS = 400_000  # in all replays of one order; long logs need fewer replays
PER_JOB = ("submit", "run", "limit", "nodes", "demand", "cpus", "user", "qos", "partition", "counted", "bound")


class Period(NamedTuple):
    """Jobs of a period, preceded by those of a warm-up, which are replayed but not counted."""

    queue: Queue
    first: int  # the first job that counts
    submit: FloatArray  # [E, J]  in each replay
    arrivals: IntArray  # [E, J]  jobs in order of `submit`
    wait: FloatArray  # [J]  in the log's own history; nan = unknown
    user: IntArray  # [J]  in the log; -1 = unknown
    past: FloatArray  # [J]  s, mean run time of the user's last two jobs, at the midnight before; nan = unknown
    slurm: Multifactor | None = None  # weights of the site's Slurm
    backfill: Backfill = Backfill()

    @property
    def run(self) -> FloatArray:
        """Return the run times of the jobs that count."""
        return self.queue.run[self.first :]


def queue_of(fit: Fitted, site: Site) -> Queue:
    """Return a fitted log as a queue.

    Jobs that need other kinds of machines form another partition. A job of several partitions has the highest of their
    tiers and factors, because Slurm tries each of them. If there is one machine of each kind, they are pools.
    """
    jobs, park = fit.jobs, fit.park
    capacity, kind = np.array(park.capacity, dtype=np.int64), np.array(park.kind, dtype=np.uint64)
    kinds, kind_of_job = np.unique(jobs.kinds, return_inverse=True)
    pairs, partition = np.unique(kind_of_job * len(fit.partition_names) + fit.partition, return_inverse=True)
    kind_of, name_of = np.divmod(pairs, len(fit.partition_names))
    named = [[site.partitions.get(part, Partition()) for part in name.split("|")] for name in fit.partition_names]
    tiers, factors = (np.array([max(getattr(one, key) for one in row) for row in named]) for key in ("tier", "factor"))
    part_qos = qos_of(fit.partition_names, site.partitions, fit.partition)
    most = max([one.factor for one in site.partitions.values()] or [1])
    _, user = np.unique(fit.user, return_inverse=True)
    priority = {one.name: one.priority for one in site.qos}
    return Queue(
        submit=np.asarray(jobs.arrival - jobs.arrival[0], dtype=np.float64),
        run=np.asarray(jobs.duration, dtype=np.float64),
        limit=np.asarray(jobs.estimate, dtype=np.float64),
        nodes=np.array(jobs.nodes, dtype=np.int64),  # writable: numba compiles a read-only array a second time
        demand=np.ascontiguousarray(jobs.demand, dtype=np.int64),
        cpus=np.maximum(jobs.nodes * jobs.demand[:, 0] / THOUSANDTHS, 1.0),
        user=user.astype(np.int64),
        qos=np.array([priority.get(qos, 0) for _, qos in fit.group_names])[fit.group] / max([1, *priority.values()]),
        partition=partition.astype(np.int64),
        capacity=capacity,
        members=(kinds[kind_of][:, None] >> kind) & np.uint64(1) > 0,
        tier=tiers[name_of].astype(np.int64),
        factor=factors[name_of] / max(most, 1),
        **quotas_of(site.quotas, fit.user, fit.group, fit.group_names, part_qos)._asdict(),
        whole=len(capacity) > len(np.unique(kind)),
    )


def part_of(queue: Queue, jobs: IntArray | slice) -> Queue:
    """Return some of the jobs."""
    return queue._replace(**{name: getattr(queue, name)[jobs] for name in PER_JOB})


def replays_of(jobs: int) -> int:
    """Return the number of replays of a period.

    >>> replays_of(6_000), replays_of(80_000), replays_of(1_000_000)
    (12, 5, 4)
    """
    return int(np.clip(MOST_JOBS // max(jobs, 1), 4, REPLAYS))


def jobs_of(log: Period, first: int, after: int) -> Period:
    """Return some consecutive jobs of a whole log; `submit` and `arrivals` remain those of all jobs."""
    columns: dict[str, Any] = {name: getattr(log, name)[first:after] for name in ("wait", "user", "past")}
    return log._replace(queue=part_of(log.queue, slice(first, after)), **columns)


def period(log: Period, span: tuple[int, int], warm_up_days: float, key: tuple[int, int]) -> Period:
    """Return a period of a log with its moved submissions.

    Args:
        log: the whole log.
        span: first job of the period, and the one after its last.
        warm_up_days: days before the period that are replayed but not counted.
        key: key of the random moves: seed, number of the period.

    Raises:
        UserError: the period has no job.
    """
    first, after = span
    if after - first < 1:
        raise UserError("workload: a period of the log has no job; read a longer log")
    begin = int(np.searchsorted(log.queue.submit, log.queue.submit[first] - warm_up_days * DAY_S))
    some = jobs_of(log, begin, after)
    begun, out = some.queue.submit[0], some.queue.outages
    rng = np.random.default_rng(list(key))
    by = rng.uniform(-MOVED_S, MOVED_S, (replays_of(after - begin), after - begin))
    submit = some.queue.submit - begun + by
    left = out.end > begun
    outages = Outages(out.machine[left], out.begin[left] - begun, out.end[left] - begun, out.announced[left])
    arrivals = np.argsort(submit, axis=1, kind="stable")
    return some._replace(
        queue=some.queue._replace(outages=outages), first=first - begin, submit=submit, arrivals=arrivals
    )


def backfill_of(site: Site) -> Backfill:
    """Return the rules for jobs that cannot start."""
    rules = site.backfill
    return Backfill(rules.reservations, rules.tested, rules.window_h * HOUR_S, rules.interval_s)


def periods_of(
    fit: Fitted, scenario: MachinesScenario, site: Site, seed: int, outages: Outages = NO_OUTAGES
) -> Mapping[str, Period]:
    """Return the training, validation and test periods of a log."""
    workload: MachinesLog = scenario.workload  # type: ignore[assignment]
    log = log_of(fit, site, outages)
    spans = periods(len(log.run), workload)
    learnable = max(0, spans["train"][1] - MOST_TRAINED), spans["train"][1]
    return {
        name: period(log, span, site.warm_up_days, (seed, SPLIT_NUMBERS[name]))
        for name, span in (spans | {"train": learnable}).items()
    }


def log_of(fit: Fitted, site: Site, outages: Outages = NO_OUTAGES) -> Period:
    """Return a whole log as a single period, whose only replay has the log's own submissions."""
    queue = queue_of(fit, site)._replace(outages=outages)
    submit, run = np.asarray(fit.jobs.arrival, dtype=np.float64), queue.run
    past = last_runs(fit.user, submit, submit + np.nan_to_num(fit.wait) + run, run)
    arrivals = np.arange(len(run))[None]
    return Period(queue, 0, queue.submit[None], arrivals, fit.wait, fit.user, past, site.slurm, backfill_of(site))


def last_runs(user: IntArray, submit: FloatArray, end: FloatArray, run: FloatArray) -> FloatArray:
    """Return the mean of the last two run times of each job's user [J], from a table made every midnight.

    Args:
        user: [J] user of each job; -1 = unknown.
        submit: [J] seconds since a midnight.
        end: [J] in the log's own history.
        run: [J] run times.
    """
    found = np.full(len(user), np.nan)
    for one in np.unique(user[user >= 0]):
        mine = np.flatnonzero(user == one)
        by_end = mine[np.argsort(end[mine], kind="stable")]
        known = np.searchsorted(end[by_end], submit[mine] // DAY_S * DAY_S, side="right")
        last, before = (run[by_end][np.maximum(known - back, 0)] for back in (1, 2))
        found[mine] = np.where(known > 0, (last + before) / 2, np.nan)
    return found


def read_all(files: Iterable[Path], trace: Trace) -> tuple[list[Outage], str]:
    """Return the outages of the log's nodes, and a line about them.

    Raises:
        UserError: a file cannot be read, or names none of the nodes.
    """
    found, others, unknown = list[Outage](), 0, set[str]()
    known = set(trace.machines.names) if trace.machines else set[str]()
    for file in files:
        outages, left = read_outages(file)
        names = {one.node for one in outages}
        if names and not known & names:
            what = "of the log's file of nodes" if known else "of a log with a file of nodes (--nodes)"
            raise UserError(f"{file}: expected outages {what}, found those of {min(names)}")
        found += [one for one in outages if one.node in known]
        unknown |= names - known
        others += left
    announced = sum(one.announced for one in found)
    parts = [
        f"{len(found):,} outages of {len({one.node for one in found}):,} nodes, {announced:,} of them announced",
        *([f"{others:,} reservations without the flag MAINT are not replayed"] if others else []),
        *([f"{len(unknown):,} unknown nodes, such as {min(unknown)}"] if unknown else []),
    ]
    return found, "; ".join(parts)


def outages_of(found: Sequence[Outage], trace: Trace, fit: Fitted) -> Outages:
    """Convert outages of a log's nodes to outages of its scenario's machines, in seconds from the first job on.

    Identical nodes become the scenario's identical machines, in the same order. Outages of a node without a machine are
    left out. An outage without an end lasts until the last job of the log ends.
    """
    machine, jobs = _machines(trace, fit), fit.jobs
    last = float((jobs.arrival + np.nan_to_num(fit.wait) + jobs.duration).max())
    rows = [
        (machine[one.node], one.begin, min(one.end, last), one.announced)
        for one in found
        if one.node in machine and one.begin < last
    ]
    at, begin, end, announced = np.array(rows, dtype=np.float64).reshape(-1, 4).T.copy()
    return Outages(at.astype(np.int64), begin - jobs.arrival[0], end - jobs.arrival[0], announced > 0)


def _machines(trace: Trace, fit: Fitted) -> dict[str, int]:
    """Return the machine of each node."""
    park, known, places = fit.park, trace.machines, dict[tuple[object, ...], list[int]]()
    if known is None or not known.names:
        return {}
    for k, (amounts, kind) in enumerate(zip(park.capacity, park.kind, strict=True)):
        places.setdefault((*amounts, park.kind_names[kind]), []).append(k)
    columns = [known.resources.index(name) for name in park.resources]
    names, found = trace.kind_names if len(trace.kind_names) > 1 else ("",), dict[str, int]()
    for amounts, kind, name in zip(known.capacity[:, columns].tolist(), known.kind, known.names, strict=True):
        if same := places.get((*amounts, names[kind])):
            found[name] = same.pop(0)
    return found
