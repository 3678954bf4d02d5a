"""Plan one tick: jobs to leave alone, and the factors that change.

Factors fall along the order and lie between 1 and the strength. A job whose factor fits already keeps it: a longest
falling run of the present factors stays, and the other jobs are spread between their neighbours. Where two neighbours
leave no room, the jobs after them are moved until there is some; at the end of the queue, all are.

The order may be drawn, and its probability is what estimates of other policies are based on. The first job is drawn
with probabilities in proportion to exp(score / temperature), then the next among the others, and so on (Plackett and
Luce): a Gumbel variable is added to each score, and the sums are sorted.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core import FloatArray, Json
from pipeline.steering.book import Book
from pipeline.steering.competing import FROZEN, OTHERS, Pool
from pipeline.steering.rows import PENDING, JobRow, Reading
from pipeline.steering.states import Start

ROOM = 8  # factors for each job where some were moved, so that the next ones find room


def arranged(order: Sequence[int], now: Mapping[int, int], strength: int) -> dict[int, int]:
    """Return the factors of jobs that must change so that they fall along the order; now 0 is none.

    >>> arranged([7, 8, 9], {}, strength=100)
    {7: 75, 8: 50, 9: 25}
    >>> arranged([7, 10, 8, 9], {7: 75, 8: 50, 9: 25}, strength=100)
    {10: 63}
    >>> arranged([9, 7, 8], {7: 75, 8: 50, 9: 25}, strength=100)
    {9: 88}
    """
    kept = _falling(order, now, strength)
    found: dict[int, int] = {}
    high, gap, crowded = strength + 1, list[int](), False
    for job in [*order, None]:
        low = 0 if job is None else now.get(job, 0)
        room = (high - low - 1) // (ROOM if crowded else 1)
        if job is not None and (job not in kept or len(gap) > room):
            crowded |= job in kept
            gap.append(job)
            continue
        if len(gap) > high - low - 1:
            found = _even(order, 0, strength)
            break
        found |= _even(gap, low, min(high, strength))
        high, gap, crowded = low, [], False
    return {job: factor for job, factor in found.items() if now.get(job, 0) != factor}


def _even(jobs: Sequence[int], low: int, high: int) -> dict[int, int]:
    """Return factors between two others, evenly spread and falling."""
    return {job: high - (k + 1) * (high - low) // (len(jobs) + 1) for k, job in enumerate(jobs)}


def _falling(order: Sequence[int], now: Mapping[int, int], strength: int) -> set[int]:
    """Return the jobs of a longest run whose factors fall along the order."""
    ends: list[int] = []  # the negative factor that ends the best run of each length,
    whose: list[int] = []  # whose it is,
    before: dict[int, int | None] = {}  # and who is before it
    for job in order:
        factor = now.get(job, 0)
        if not 0 < factor <= strength:
            continue
        at = bisect_left(ends, -factor)
        before[job] = whose[at - 1] if at else None
        ends[at : at + 1], whose[at : at + 1] = [-factor], [job]
    found: set[int] = set()
    last = whose[-1] if whose else None
    while last is not None:
        found.add(last)
        last = before[last]
    return found


class Drawn(NamedTuple):
    """An order, and how probable it was."""

    order: Sequence[int]
    head: float  # of the first job
    log: float  # of the order as a whole, its natural logarithm


def drawn(order: Sequence[int], scores: Sequence[float | None], temperature: float, rng: np.random.Generator) -> Drawn:
    """Return an order of jobs that is drawn; those without a score stay behind the others as they are.

    Args:
        order: jobs by number, the highest score first.
        scores: of each, or none.
        temperature: in units of the scores.
        rng: that draws.
    """
    told = np.array([score for score in scores if score is not None])
    if not len(told):
        return Drawn(list(order), 1.0, 0.0)
    scaled = told / temperature
    places = np.argsort(-(scaled + rng.gumbel(size=len(scaled))), kind="stable")
    logs = _logs(scaled[places])
    first = [order[k] for k in places]
    return Drawn([*first, *order[len(told) :]], float(np.exp(logs[0])), float(logs.sum()))


def _logs(scores: FloatArray) -> FloatArray:
    """Return the logarithm of each one's probability to be chosen among itself and those behind it.

    >>> np.exp(_logs(np.log([1.0, 2.0, 1.0]))).round(3).tolist()
    [0.25, 0.667, 1.0]
    """
    behind = np.logaddexp.accumulate(scores[::-1])[::-1]
    return np.asarray(scores - behind)


class Decided(NamedTuple):
    """A policy's answer for one pool."""

    pool: Pool
    order: Sequence[int] | None  # none: the policy did not answer, so Slurm's own order stands
    policy: str
    digest: str
    why: str  # there is no order
    starts: Sequence[Start] = ()  # who is to start now; where the policy did not answer, as the fallback wants
    never: Sequence[int] = ()  # whom no nodes of the queue could hold
    drawn: Mapping[str, float] | None = None  # temperature, and how probable the order was

    def told(self, anew: bool) -> dict[str, Json]:
        """Return it for a journal; with its order where that is another than at the last tick."""
        found: dict[str, Json] = {
            "partitions": list(self.pool.partitions),
            "nodes": len(self.pool.nodes),
            "waiting": len(self.pool.waiting),
            "policy": self.policy,
            "digest": self.digest,
        }
        if self.order is None:
            return found | {"fell_back": True, "why": self.why}
        if not anew:
            return found | {"same": True}
        return found | {"order": list(self.order)} | ({"drawn": dict(self.drawn)} if self.drawn else {})


def look_after(book: Book, reading: Reading) -> list[int]:
    """Bring the book up to date with a reading; return the jobs found frozen, by number.

    A job whose factor is not what was set is tried again, and is taken to be frozen when that does nothing either: it
    has a priority of its own, which multifactor leaves alone.
    """
    book.seen({number for job in reading.jobs for number in (job.number, job.array)}, reading.now)
    found = []
    for job in _eligible(reading):
        entry = book.jobs.get(job.array)
        if entry is None or job.number != job.array:
            continue
        if entry.submitted != job.submitted:  # an id that is used again, or a job that was requeued
            entry.misses, entry.submitted = 0, job.submitted
        elif entry.frozen:
            continue
        seen = reading.factors[job.number]
        if seen == entry.factor:
            entry.misses = 0
        elif entry.told:
            entry.misses += 1
        entry.told = False
        if entry.frozen:
            found.append(job.array)
    return found


def left_alone(book: Book, reading: Reading) -> dict[int, str]:
    """Return the jobs that are not to be ordered, by number, and why."""
    found = {number: FROZEN for number, entry in book.jobs.items() if entry.frozen}
    for job in _eligible(reading):
        if job.array not in found and not book.owns(job.array, reading.factors[job.number]):
            found[job.array] = OTHERS
    return found


def _eligible(reading: Reading) -> Iterator[JobRow]:
    return (job for job in reading.jobs if job.state == PENDING and job.number in reading.factors)


def changes(decided: Decided, factors: Mapping[int, int], strength: int) -> dict[int, int]:
    """Return the factors that must change, the head of the queue first; without an order, all are taken back."""
    now = {job.array: factors[job.number] for job in decided.pool.waiting}
    order = decided.order or []
    found = arranged(order, now, strength) if order else {}
    behind = now.keys() - set(order)
    return found | {number: 0 for number in sorted(behind) if now[number] != 0}


def some(wanted: Sequence[Mapping[int, int]], most: int) -> dict[int, int]:
    """Return the first changes of several pools; the others follow at later ticks.

    >>> some([{1: 5, 2: 4}, {3: 9}], most=2)
    {1: 5, 2: 4}
    """
    every = [(number, factor) for part in wanted for number, factor in part.items()]
    return dict(every[:most])
