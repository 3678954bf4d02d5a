"""Why a job of a site starts when it does under an order of its queue, and what would have made it start sooner.

The log is replayed from `BEFORE_S` before the job on, and again with one thing changed, so that an answer includes what
all other jobs would do then.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from pipeline.core.logs.trace import DAY_S
from pipeline.core.types import FloatArray
from pipeline.sites import replay as replaying
from pipeline.sites.queue import HOUR_S, Period, jobs_of
from pipeline.sites.replay import LINEAR, Order, replay

BEFORE_S, GONE_S = 30 * DAY_S, 1e-6
LIMITS_H = (1, 2, 4, 8, 12, 24, 48, 96)  # that a job may request
BLOCKERS = 5  # jobs ahead that are removed in turn


class Rank(NamedTuple):
    """A job's rank among the waiting jobs at a moment, and its priority, with its terms if it is a sum."""

    rank: int  # 1 = first
    waiting: int
    priority: float
    terms: dict[str, float]


class Why(NamedTuple):
    """Reasons for a job's start, and its wait in seconds with one thing changed."""

    job: str
    wait: float
    submitted: Rank
    started: Rank
    higher: int  # jobs of higher priority that started while it waited
    lower: int  # other jobs that started while it waited
    passed: int  # jobs of higher priority that still waited when it started
    changed: dict[str, float]


def why(
    log: Period, job: int | None, order: Callable[[Period], Order], named: Callable[[int], str], threads: int
) -> Why:
    """Return why a job of a whole log starts when it does; None stands for the job that waits longest."""
    if job is None:
        job = int(np.argmax(_starts(log, order(log)) - log.queue.submit))
    begin = int(np.searchsorted(log.queue.submit, log.queue.submit[job] - BEFORE_S))
    log, me = jobs_of(log, begin, len(log.queue.submit)), job - begin
    queue, rule, at = log.queue, order(log), log.queue.submit[me]
    own = _starts(log, rule, me + 1)[me]
    known = jobs_of(log, 0, int(np.searchsorted(queue.submit, own, side="right")))  # later jobs cannot delay it
    start, submit = _starts(known, order(known)), known.queue.submit
    meanwhile, left = np.flatnonzero((start >= at) & (start < own)), np.flatnonzero((submit <= own) & (start > own))
    higher = [o for o in meanwhile.tolist() if _before(log, rule, start, (o, me), start[o])]
    passed = [o for o in left.tolist() if _before(log, rule, start, (o, me), own)]
    changes = {"the first place in the queue": _raised(log, me, 1)}
    if queue.bound[me].any():
        first = changes["the first place in the queue"]
        changes["the first place and no quotas"] = _with(first, me, bound=False)
    if queue.tier[queue.partition[me]] < queue.tier.max():
        changes["the highest tier for its partition"] = _raised(log, me, 0)
    for other in sorted(higher + passed, key=lambda o: -queue.limit[o] * queue.cpus[o])[:BLOCKERS]:
        changes[f"no {named(other + begin)}"] = _with(log, other, demand=0, run=GONE_S, limit=GONE_S)
    for hours in LIMITS_H:
        if queue.run[me] <= hours * HOUR_S < queue.limit[me]:
            changes[f"a limit of {hours} h"] = _with(log, me, limit=hours * HOUR_S)
    with ThreadPoolExecutor(threads) as workers:
        waits = workers.map(lambda one: float(_starts(one, order(one), me + 1)[me] - at), changes.values())
        changed = dict(zip(changes, waits, strict=True))
    submitted, started = (_rank(log, rule, start, me, float(now)) for now in (at, own))
    lower = len(meanwhile) - len(higher)
    return Why(named(job), float(own - at), submitted, started, len(higher), lower, len(passed), changed)


def _starts(log: Period, order: Order, wanted: int = 1 << 60) -> FloatArray:
    return replay(log.queue, order, log.backfill, log.queue.submit, np.arange(len(log.queue.submit)), wanted)


def _with(log: Period, job: int, **values: float) -> Period:
    """Return a log with other values of a job."""
    columns: dict[str, Any] = {name: getattr(log.queue, name).copy() for name in values}
    for name, value in values.items():
        columns[name][job] = value
    return log._replace(queue=log.queue._replace(**columns))


def _raised(log: Period, job: int, by: int) -> Period:
    """Return a log with a job in a copy of its partition that has the highest tier, or one above it."""
    queue = _with(log, job, partition=len(log.queue.tier)).queue
    of = np.append(np.arange(len(queue.tier)), log.queue.partition[job])
    tier = np.append(queue.tier, queue.tier.max() + by)
    return log._replace(queue=queue._replace(tier=tier, members=queue.members[of], factor=queue.factor[of]))


def _before(log: Period, order: Order, start: FloatArray, jobs: tuple[int, int], now: float) -> bool:
    """Return whether the first of two jobs comes before the other one."""
    tier = log.queue.tier[log.queue.partition[list(jobs)]]
    one, other = ((-tier[k], -_priority(log, order, start, job, now), job) for k, job in enumerate(jobs))
    return bool(one < other)


def _rank(log: Period, order: Order, start: FloatArray, job: int, now: float) -> Rank:
    """Return a job's rank at a moment, before any job starts then."""
    waiting = np.flatnonzero((log.queue.submit[: len(start)] <= now) & (start >= now))
    rank = 1 + sum(_before(log, order, start, (other, job), now) for other in waiting.tolist())
    whole, age = _priority(log, order, start, job, now), order.slope * float(now - log.queue.submit[job])
    if order.rule != LINEAR or whole == np.inf:
        return Rank(rank, len(waiting), whole, {})
    fixed = float(order.static[job])
    return Rank(rank, len(waiting), whole, {"score": fixed, "wait": age, "fair-share": whole - fixed - age})


def _priority(log: Period, order: Order, start: FloatArray, job: int, now: float) -> float:
    """Return the priority that the replay computes, except that usage is not rounded to events."""
    rule: Any = getattr(replaying._priority, "py_func", replaying._priority)
    factors: Any = getattr(replaying._factors, "py_func", replaying._factors)
    live = SimpleNamespace()
    if order.fair_share:
        queue, half = log.queue, order.half_life
        last = np.floor(now / order.period) * order.period if order.period else now  # the last computation of factors
        begun = np.flatnonzero(start < last)
        ago, until = last - start[begun], np.maximum(last - start[begun] - queue.run[begun], 0.0)
        held = queue.cpus[begun] * half / np.log(2) * (0.5 ** (until / half) - 0.5 ** (ago / half))
        usage = np.bincount(queue.user[begun], held, queue.user.max() + 1).astype(float)
        live.usage, live.fair, live.by_usage = np.append(usage, usage.sum()), np.ones(len(usage)), np.arange(len(usage))
        factors(order, live)
    return float(rule(log.queue, order, live, job, now - log.queue.submit[job]))
