"""An order that is drawn, and how probable it was: what estimates of other policies are made of.

Who goes first is drawn with probabilities in proportion to exp(score / temperature), then who goes next among the
others, and so on (Plackett and Luce). It is drawn by adding a Gumbel variable to each, and sorting.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core import FloatArray


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
