"""How long jobs may really run, as far as a policy can know: as jobs of the past did of which about as much was told.

A job's run time is drawn as a share of what is told of it, from the past jobs that come nearest in that; of one that
runs already, among the shares that it has not outlived, all alike. Where the past ran as it was told, so do all.
"""

import numpy as np

from pipeline.core import FloatArray
from pipeline.simulation.compiled import inlined
from pipeline.simulation.draws import uniform

NEAREST = 100  # past jobs that a share is drawn from, at least if there are as many; all that were told the same


def shares(estimate: FloatArray, duration: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what past jobs were told, ascending [J], and the share of it that each ran [J].

    >>> shares(np.array([9.0, 4.0]), np.array([3.0, 4.0]))
    (array([4., 9.]), array([1.        , 0.33333333]))
    """
    order = np.argsort(estimate, kind="stable")
    return estimate[order], duration[order] / estimate[order]


@inlined
def _behind(told: FloatArray, value: float, equal: bool) -> int:
    """Return how many of ascending numbers lie below a value, or are equal to it as well."""
    low, high = 0, told.shape[0]
    while low < high:
        middle = (low + high) // 2
        if told[middle] < value or (equal and told[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def run_time(
    told: FloatArray, share: FloatArray, estimate: float, begun: float, now: float, key: np.uint64, place: int
) -> float:
    """Return a draw of how long a job runs in all, that does not end before now.

    Where no past job ran so long a share, it is what is told, and told anew, twice as much, until it does.

    Args:
        told: [J], see `shares`.
        share: [J], of the same jobs.
        estimate: what is told of the job.
        begun: when it was started; of one that waits, now.
        now: the time of the decision.
        key: of the draws.
        place: of the job among those that share the key.
    """
    low, high, most = _behind(told, estimate, False), _behind(told, estimate, True), told.shape[0]
    width = max(high - low, min(NEAREST, most))
    first = min(max(low - (width - high + low + 1) // 2, 0), most - width)
    alive = 0
    for k in range(first, first + width):
        alive += begun + share[k] * estimate >= now
    if alive == 0:
        anew = estimate
        while begun + anew < now:
            anew *= 2.0
        return float(anew)
    left, found = int(uniform(key, place) * alive), first
    for k in range(first, first + width):
        if begun + share[k] * estimate >= now:
            if left == 0:
                found = k
            left -= 1
    return float(share[found] * estimate)
