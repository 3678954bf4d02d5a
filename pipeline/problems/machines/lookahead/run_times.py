"""How long jobs may really run, as far as a policy can know: as jobs of the past did of which about as much was told.

A job's run time is drawn as a share of what is told of it, from the past jobs that come nearest in that; of one that
runs already, among the shares that it has not outlived. Where the past ran as it was told, so do all.
"""

import numpy as np

from pipeline.core import FloatArray
from pipeline.simulation.compiled import inlined
from pipeline.simulation.draws import uniform

NEAREST = 100  # past jobs that a share is drawn from, at least if there are as many; all that were told the same
TRIES = 16  # draws for a job that runs, until one lies ahead


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
def run_time(told: FloatArray, share: FloatArray, estimate: float, elapsed: float, key: np.uint64, place: int) -> float:
    """Return a draw of how long a job runs in all, of which `elapsed` is over; what is told if no draw goes beyond.

    Args:
        told: [J], see `shares`.
        share: [J], of the same jobs.
        estimate: what is told of the job.
        elapsed: how long it runs already; below 0, it has not begun.
        key: of the draws.
        place: of the job among those that share the key.
    """
    low, high = _behind(told, estimate, False), _behind(told, estimate, True)
    more = max(min(NEAREST, told.shape[0]) - (high - low), 0)
    low, high = max(low - (more + 1) // 2, 0), min(high + (more + 1) // 2, told.shape[0])
    for k in range(TRIES):
        draw = uniform(key, place * TRIES + k)
        drawn = share[low + int(draw * (high - low))] * estimate
        if drawn > elapsed:
            return float(drawn)
    return float(estimate)
