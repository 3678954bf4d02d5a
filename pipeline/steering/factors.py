"""From an order to factors, with as few changes as do.

Factors fall along the order and lie between 1 and the strength. A job whose factor stands right already keeps it: what
stays is a longest falling run of the factors that are there, and the others are spread between their neighbours. Where
there is no room left between two, those behind them are moved until there is; at the end of the queue, all are.

The order may be drawn, and how probable it was is what estimates of other policies are made of. The first job is drawn
with probabilities in proportion to exp(score / temperature), then the next among the others, and so on (Plackett and
Luce): a Gumbel variable is added to each, and they are sorted.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core import FloatArray

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
