"""Plan one tick: the jobs to skip, and the factors that change.

Factors fall along the order and lie between 1 and the strength. A job whose factor fits already keeps it: a longest
falling subsequence of the present factors stays, and the other jobs are spread between their neighbours. If two
neighbours leave no room, the jobs after them are moved until there is room; if there is none, all jobs are moved.

The order may be drawn at random; its probability is the basis of estimates for other policies. The first job is drawn
with probabilities in proportion to exp(score / temperature), then the next among the others, and so on (Plackett and
Luce): a Gumbel variable is added to each score, and the sums are sorted.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core.types import FloatArray, Json
from pipeline.steering.ledger import Ledger
from pipeline.steering.rows import PENDING, JobRow, Reading
from pipeline.steering.states import FROZEN, OTHERS, Pool

ROOM = 8  # factors per job once jobs are moved, so that the next changes find room


def assign_factors(order: Sequence[int], now: Mapping[int, int], strength: int) -> dict[int, int]:
    """Return the factors that must change so that they fall along the order; a present factor of 0 is none.

    >>> assign_factors([7, 8, 9], {}, strength=100)
    {7: 75, 8: 50, 9: 25}
    >>> assign_factors([7, 10, 8, 9], {7: 75, 8: 50, 9: 25}, strength=100)
    {10: 63}
    >>> assign_factors([9, 7, 8], {7: 75, 8: 50, 9: 25}, strength=100)
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
    """Return the jobs of a longest subsequence whose factors fall along the order."""
    ends: list[int] = []  # the negative factor at the end of the best subsequence of each length,
    last: list[int] = []  # its job,
    before: dict[int, int | None] = {}  # and the job before that one
    for job in order:
        factor = now.get(job, 0)
        if not 0 < factor <= strength:
            continue
        at = bisect_left(ends, -factor)
        before[job] = last[at - 1] if at else None
        ends[at : at + 1], last[at : at + 1] = [-factor], [job]
    found: set[int] = set()
    one = last[-1] if last else None
    while one is not None:
        found.add(one)
        one = before[one]
    return found


class DrawnOrder(NamedTuple):
    """An order and its probability."""

    order: Sequence[int]
    head: float  # probability of the first job
    log: float  # natural logarithm of the probability of the whole order


def draw_order(
    order: Sequence[int], scores: Sequence[float | None], temperature: float, rng: np.random.Generator
) -> DrawnOrder:
    """Draw an order of jobs sorted by score, at a temperature in units of scores; jobs without a score stay last."""
    known = np.array([score for score in scores if score is not None])
    if not len(known):
        return DrawnOrder(list(order), 1.0, 0.0)
    scaled = known / temperature
    places = np.argsort(-(scaled + rng.gumbel(size=len(scaled))), kind="stable")
    logs = _log_probabilities(scaled[places])
    first = [order[k] for k in places]
    return DrawnOrder([*first, *order[len(known) :]], float(np.exp(logs[0])), float(logs.sum()))


def _log_probabilities(scores: FloatArray) -> FloatArray:
    """Return the log probability that each one is chosen among itself and its successors.

    >>> np.exp(_log_probabilities(np.log([1.0, 2.0, 1.0]))).round(3).tolist()
    [0.25, 0.667, 1.0]
    """
    return np.asarray(scores - np.logaddexp.accumulate(scores[::-1])[::-1])


class PoolDecision(NamedTuple):
    """A policy's answer for one pool."""

    pool: Pool
    order: Sequence[int] | None  # none: the policy did not answer, so Slurm's own order applies
    policy: str
    digest: str
    why: str  # reason for the lack of an order
    starts: Mapping[int, tuple[str, ...]] = {}  # jobs to start now, and their nodes; by arrival without an answer
    never: Sequence[int] = ()  # jobs that fit on no nodes of the queue
    drawn: Mapping[str, float] | None = None  # temperature, and the probability of the order

    def row(self, changed: bool) -> dict[str, Json]:
        """Return the journal's entry, with the order if it has changed since the last tick."""
        found: dict[str, Json] = {
            "partitions": list(self.pool.partitions),
            "nodes": len(self.pool.nodes),
            "waiting": len(self.pool.waiting),
            "policy": self.policy,
            "digest": self.digest,
        }
        if self.order is None:
            return found | {"fell_back": True, "why": self.why}
        if not changed:
            return found | {"same": True}
        return found | {"order": list(self.order)} | ({"drawn": dict(self.drawn)} if self.drawn else {})


def update_ledger(ledger: Ledger, reading: Reading) -> list[int]:
    """Update the ledger with a reading; return the jobs found frozen, by number.

    A job whose factor is not the one that was set is tried again, and counts as frozen if that has no effect either: it
    has a priority of its own, which multifactor does not change.
    """
    ledger.update_present({number for job in reading.jobs for number in (job.number, job.array)}, reading.now)
    found = []
    for job in _eligible(reading):
        entry = ledger.jobs.get(job.array)
        if entry is None or job.number != job.array:
            continue
        if entry.submitted != job.submitted:  # a reused number, or a requeued job
            entry.misses, entry.submitted = 0, job.submitted
        elif entry.frozen:
            continue
        if reading.factors[job.number] == entry.factor:
            entry.misses = 0
        elif entry.confirmed:
            entry.misses += 1
        entry.confirmed = False
        if entry.frozen:
            found.append(job.array)
    return found


def skipped_jobs(ledger: Ledger, reading: Reading) -> dict[int, str]:
    """Return the jobs that are not to be ordered, by number, and why."""
    found = {number: FROZEN for number, entry in ledger.jobs.items() if entry.frozen}
    for job in _eligible(reading):
        if job.array not in found and not ledger.owns(job.array, reading.factors[job.number]):
            found[job.array] = OTHERS
    return found


def _eligible(reading: Reading) -> Iterator[JobRow]:
    return (job for job in reading.jobs if job.state == PENDING and job.number in reading.factors)


def changed_factors(decided: PoolDecision, factors: Mapping[int, int], strength: int) -> dict[int, int]:
    """Return the factors that must change, the head of the queue first; without an order, all are reset."""
    now = {job.array: factors[job.number] for job in decided.pool.waiting}
    order = decided.order or []
    found = assign_factors(order, now, strength) if order else {}
    return found | {number: 0 for number in sorted(now.keys() - set(order)) if now[number] != 0}
