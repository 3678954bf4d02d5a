"""A confidence sequence: a limit of a mean that is valid at all times simultaneously, so that it may be checked daily.

Values between -bound and bound arrive one after another. If no value has an expectation above m, given the previous
ones, then a player who bets that the next value is above m has no expected gain: the capital is a supermartingale that
begins at 1, and ever reaches 1 / level with a probability of at most `level` (Ville). So a mean is rejected when the
capital reaches it. The bets are those of Waudby-Smith and Ramdas (2024, Estimating means of bounded random variables
by betting, section 4), a fixed part of the possible loss. Departures: a mixture of many parts, each with its share of
the capital, replaces one part that is predicted from the past; and the capital enters gradually, 1 / (j (j + 1)) of it
at value j. Mixtures of supermartingales are supermartingales; this way, earlier values do not mask a late change.
"""

import numpy as np

from pipeline.core.types import FloatArray

PARTS = np.array([0.8, 0.4, 0.2, 0.1, 0.05, 0.025])  # of the possible loss at the next value
GRID = 400  # tested means
ENOUGH = 1e12  # limit of the capital


def capital(values: FloatArray, means: FloatArray, bound: float) -> FloatArray:
    """Return the capital of bets against each mean, after each value [V, G].

    Values [V] in order of time are cut to the bound, the largest absolute value. The means [G] are hypothetical upper
    limits, above -bound.

    >>> capital(np.array([1.0, 1.0]), np.array([1.0]), bound=1.0).ravel().round(6).tolist()
    [1.0, 1.0]
    """
    cut = np.clip(values, -bound, bound)
    bets = PARTS[:, None] / (bound + means)  # [P, G]
    at_work, found = np.zeros_like(bets), np.empty((len(cut), len(means)))
    for j, value in enumerate(cut, start=1):
        at_work = np.minimum((at_work + 1 / (j * (j + 1))) * (1 + bets * (value - means)), ENOUGH)
        found[j - 1] = at_work.mean(axis=0) + 1 / (j + 1)  # the rest enters at later values
    return found


def shared(streams: FloatArray, shares: FloatArray, means: FloatArray, bound: float) -> FloatArray:
    """Return the capital [V, G] of bets on several streams [H, V], each with its share of the capital [H].

    The hypothesis concerns all streams together: no value of any has an expectation above m.
    """
    found = [share * capital(values, means, bound) for values, share in zip(streams, shares, strict=True)]
    return np.asarray(np.sum(found, axis=0))


def lower_limits(streams: FloatArray, shares: FloatArray, level: float, bound: float) -> FloatArray:
    """Return, after each value, the mean that some stream exceeded so far; -bound if none is certain.

    All limits hold simultaneously with a probability of 1 - level.
    """
    means = np.linspace(-bound, bound, GRID + 1)[1:]
    rejected = np.maximum.accumulate(shared(streams, shares, means, bound), axis=0) >= 1 / level
    # Capital falls with the mean, so the rejected means are the first ones of the grid.
    return np.asarray(np.concatenate([[-bound], means])[rejected.sum(axis=1)])


def seen_at(streams: FloatArray, shares: FloatArray, mean: float, level: float, bound: float) -> int | None:
    """Return the number of values after which a mean is first rejected as too low; None: never.

    >>> seen_at(np.full((1, 50), 0.5), np.ones(1), mean=0.0, level=0.05, bound=1.0)
    15
    """
    reached = np.flatnonzero(shared(streams, shares, np.array([mean]), bound)[:, 0] >= 1 / level)
    return int(reached[0]) + 1 if len(reached) else None
