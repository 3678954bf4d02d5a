"""Simulated futures of a site's queue, from its state at a moment: when do its waiting jobs start?

In each future, a running or waiting job uses the same share of its limit as a random earlier job, if possible of the
same user, and runs longer than it has already. Arrivals are those of a random earlier week from the same hour on. A
site that is one pool of processors also has a hidden load: processors on which a replay would start a job that still
waits. Work outside the log, drained nodes or limits of users cause it. It changes from its present size to the week's.
"""

from typing import NamedTuple

import numpy as np

from pipeline.core.types import THOUSANDTHS, FloatArray, IntArray
from pipeline.sites.orders import ORDERS, order_of
from pipeline.sites.queue import HOUR_S, PER_JOB, part_of
from pipeline.sites.replay import LINEAR, Backfill, Order, Queue, replay

WEEK_S = 604_800.0
FIRST = 1e18  # priority of jobs that run already
SHORTEST_S = 1e-3  # remaining run time
RECENT, RECENT_OF_ALL, ENOUGH = 100, 1_000, 10  # last jobs to draw from: of the user, of all users; the fewest
STEP_S, MEMORY_S = 3 * HOUR_S, 12 * HOUR_S  # of the hidden load: its resolution, and how slowly it changes
HELD_S = 600.0  # jobs that have waited for less show no hidden load
LEAST_AHEAD_S = 3 * 86_400.0  # span of the arrivals; WEEK_S is the most
PLANNED = Backfill(reservations=1_000_000)


class Past(NamedTuple):
    """A site's log with the starts of its jobs."""

    queue: Queue
    start: FloatArray  # [J]
    order: str  # name of an order that is linear in the wait
    backfill: Backfill
    hidden: FloatArray  # [T]  hidden load, every STEP_S from 0 on; empty: not modelled


class Moment(NamedTuple):
    """State of a site; it depends on no later event."""

    past: Past
    now: float
    finished: IntArray  # jobs in order of their ends
    running: IntArray
    waiting: IntArray  # [W]

    @property
    def open(self) -> IntArray:
        """Return the running jobs and then the waiting ones."""
        return np.concatenate([self.running, self.waiting])

    @property
    def elapsed(self) -> FloatArray:
        """Return how long each running or waiting job has run (0 if waiting)."""
        ran = self.now - self.past.start[self.running]
        return np.concatenate([ran, np.zeros(len(self.waiting))])


def is_linear(order: str, queue: Queue) -> bool:
    """Return whether priorities grow linearly with the wait: only then does the wait so far add a constant."""
    if order not in ORDERS:  # fair-share depends on usage
        return False
    found = order_of(order, queue)
    return found.rule == LINEAR and found.longest == Order(LINEAR, found.static).longest


def past_of(queue: Queue, wait: FloatArray, order: str, backfill: Backfill) -> Past:
    """Return a log with its own starts; a log that records no waits is replayed."""
    backfill = backfill._replace(interval=0.0)  # when passes take place is unknown: jobs start when they can
    if np.isnan(wait).all():
        start = replay(queue, order_of(order, queue), backfill, queue.submit, np.arange(len(queue.submit)))
    else:
        start = queue.submit + np.nan_to_num(wait)
    past = Past(queue, start, order, backfill, np.empty(0))
    if queue.capacity.shape != (1, 1):
        return past
    times = np.arange(0.0, queue.submit[-1], STEP_S)
    return past._replace(hidden=np.array([hidden_load(moment(past, float(time))) for time in times]))


def hidden_load(at: Moment) -> float:
    """Return the processors of a pool that something else must hold, since a job waits that a replay would start."""
    queue = at.past.queue
    if not len(at.waiting):
        return 0.0
    taken = part_of(queue, at.open)._replace(run=np.maximum(queue.limit[at.open], 2 * at.elapsed))
    begins = _starts(at, taken, 0, at.past.backfill) == 0
    held = queue.cpus[at.waiting[begins & (at.now - queue.submit[at.waiting] > HELD_S)]]
    free = queue.capacity[0, 0] / THOUSANDTHS - queue.cpus[at.running].sum()
    return float(max(free - held.min() + 1, 0.0)) if len(held) else 0.0


def moment(past: Past, now: float) -> Moment:
    """Return the state of a site."""
    known = int(np.searchsorted(past.queue.submit, now, side="right"))
    end = past.start[:known] + past.queue.run[:known]
    begun = past.start[:known] <= now
    over = np.flatnonzero(begun & (end <= now))
    return Moment(
        past=past,
        now=now,
        finished=over[np.argsort(end[over], kind="stable")],
        running=np.flatnonzero(begun & (end > now)),
        waiting=np.flatnonzero(~begun),
    )


def plan(at: Moment) -> FloatArray:
    """Return the starts [W] of waiting jobs if all took their limits and no more arrived, as squeue --start plans."""
    limit = at.past.queue.limit[at.open]
    return _starts(at, part_of(at.past.queue, at.open)._replace(run=np.maximum(limit, 2 * at.elapsed)), 0, PLANNED)


def futures(at: Moment, count: int, rng: np.random.Generator) -> FloatArray:
    """Return the starts [E, W] of waiting jobs from now in simulated futures, in ascending order."""
    queue, used = at.past.queue, drawn_runs(at, count, rng)
    ahead = float(np.clip(2 * plan(at).max(initial=0.0), LEAST_AHEAD_S, WEEK_S))
    run, found = queue.run.copy(), []
    for some in used:
        run[at.open] = some
        rows, hidden = part_of(queue._replace(run=run), at.open), 0
        if weeks := int(at.now // WEEK_S):
            back = WEEK_S * rng.integers(1, weeks + 1)
            first, after = np.searchsorted(queue.submit, [at.now - back, at.now - back + ahead], side="right")
            arrivals = part_of(queue._replace(run=run), np.arange(first, after))
            load = _hidden(at, back, ahead)
            hidden = len(load.submit)
            rows = _joined(rows, arrivals._replace(submit=arrivals.submit + back), load)
        found.append(_starts(at, rows, hidden, at.past.backfill))
    return np.sort(np.stack(found), axis=0)


def drawn_runs(at: Moment, count: int, rng: np.random.Generator) -> FloatArray:
    """Return random run times [E, J] of the open jobs, longer than they have run."""
    queue = at.past.queue
    share, user = queue.run[at.finished] / queue.limit[at.finished], queue.user[at.finished]
    own = {u: share[user == u][-RECENT:] for u in np.unique(queue.user[at.open])}
    drawn = np.empty((count, len(at.open)))
    for k, (job, ran) in enumerate(zip(at.open, at.elapsed, strict=True)):
        for pool in (own[queue.user[job]], share[-RECENT_OF_ALL:]):
            possible = pool[pool * queue.limit[job] > ran]
            if len(possible) >= ENOUGH:
                break
        else:  # none of them ran for so long
            possible = possible if len(possible) else np.array([max(1.0, 2 * ran / queue.limit[job])])
        drawn[:, k] = rng.choice(possible, count) * queue.limit[job]
    return drawn


def _hidden(at: Moment, back: float, ahead: float) -> Queue:
    """Return jobs that stand for load outside the log in a simulated future."""
    past, steps = at.past, STEP_S * np.arange(np.ceil(ahead / STEP_S))
    if not len(past.hidden):
        return part_of(past.queue, np.empty(0, dtype=np.int64))
    known = past.hidden[: int(at.now // STEP_S) + 1]
    path = known[np.minimum(((at.now - back + steps) // STEP_S).astype(np.int64), len(known) - 1)]
    path = path + (known[-1] - path[0]) * np.exp(-steps / MEMORY_S)
    size = np.floor(np.clip(path, 0, past.queue.capacity[0, 0] / THOUSANDTHS - 1))
    some = size > 0
    rows = part_of(past.queue, np.zeros(int(some.sum()), dtype=np.int64))
    held, demand = np.full(len(rows.run), STEP_S), (size[some, None] * THOUSANDTHS).astype(np.int64)
    return rows._replace(submit=at.now + steps[some], run=held, limit=held, demand=demand, cpus=size[some])


def _starts(at: Moment, rows: Queue, hidden: int, backfill: Backfill) -> FloatArray:
    """Return the starts [W] of waiting jobs from now.

    Args:
        at: the state.
        rows: the open jobs with their whole run times, then those that arrive later, hidden load last.
        hidden: number of rows that are hidden load.
        backfill: rules for jobs that cannot start.
    """
    order, elapsed = order_of(at.past.order, rows), np.zeros(len(rows.run))
    elapsed[: len(at.open)] = at.elapsed
    static = order.static + order.slope * np.maximum(at.now - rows.submit, 0.0)
    held, partition = np.r_[: len(at.running), len(static) - hidden : len(static)], rows.partition.copy()
    static[held] = FIRST
    partition[held] += len(rows.tier)  # copies of the partitions, above all tiers
    submit = np.maximum(rows.submit - at.now, 0.0)
    rows = rows._replace(
        run=np.maximum(rows.run - elapsed, SHORTEST_S),
        limit=np.where(rows.limit > elapsed, rows.limit - elapsed, elapsed),  # the kernel doubles exceeded limits too
        partition=partition,
        members=np.tile(rows.members, (2, 1)),
        tier=np.concatenate([rows.tier, np.full(len(rows.tier), rows.tier.max() + 1)]),
        factor=np.tile(rows.factor, 2),
        bound=np.zeros_like(rows.bound),  # quotas count as hidden load: the jobs that run may exceed them
    )
    arrivals, wanted = np.argsort(submit, kind="stable"), len(at.open)
    start = replay(rows, order._replace(static=static), backfill, submit, arrivals, wanted)
    return np.asarray(start[len(at.running) : len(at.open)])


def _joined(first: Queue, *more: Queue) -> Queue:
    columns = {name: np.concatenate([getattr(one, name) for one in (first, *more)]) for name in PER_JOB}
    return first._replace(**columns)  # type: ignore[arg-type]
