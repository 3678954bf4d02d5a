"""What a tick comes to: which jobs are left alone, and which factors change."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pipeline.core import Json
from pipeline.steering.book import Book
from pipeline.steering.competing import FROZEN, OTHERS, Pool
from pipeline.steering.factors import arranged
from pipeline.steering.rows import PENDING, JobRow, Reading
from pipeline.steering.states import Start


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
