"""A confidence sequence: a limit of a mean that holds at all times together, so that it may be looked at every day.

Values lie between -bound and bound and come one after another. If no value is expected to be above m, given those
before it, then whoever bets on the next one being above m does not expect to win: his capital is a supermartingale that
begins at 1, and reaches 1 / level at any time with a chance of at most `level` (Ville). So a mean under which he did is
refused. The bets are those of Waudby-Smith and Ramdas (2024, Estimating means of bounded random variables by betting,
section 4), a fixed part of what can be lost. Departures: many parts are bet side by side, each with its share of the
capital, in place of one that is predicted from the past; and the capital goes to work in parts, 1 / (j (j + 1)) of it
at value j. Mixtures of supermartingales are supermartingales, and so a change that comes late is not outweighed by all
that was before it.
"""

import numpy as np

from pipeline.core import FloatArray

PARTS = np.array([0.8, 0.4, 0.2, 0.1, 0.05, 0.025])  # of what can be lost of the capital at the next value
GRID = 400  # means that are tried
ENOUGH = 1e12  # capital that nobody needs more than; beyond it he gives it away


def capital(values: FloatArray, means: FloatArray, bound: float) -> FloatArray:
    """Return what bets against each mean have made of 1, behind each value [V, G].

    Args:
        values: [V] in order of time; those beyond the bound are cut to it.
        means: [G] above -bound, of which each is said not to be exceeded.
        bound: of a value, above and below 0.

    >>> capital(np.array([1.0, 1.0]), np.array([1.0]), bound=1.0).ravel().round(6).tolist()
    [1.0, 1.0]
    """
    cut = np.clip(values, -bound, bound)
    bets = PARTS[:, None] / (bound + means)  # [P, G]
    at_work, found = np.zeros_like(bets), np.empty((len(cut), len(means)))
    for j, value in enumerate(cut, start=1):
        at_work = np.minimum((at_work + 1 / (j * (j + 1))) * (1 + bets * (value - means)), ENOUGH)
        found[j - 1] = at_work.mean(axis=0) + 1 / (j + 1)  # the rest still waits for later values
    return found


def shared(streams: FloatArray, shares: FloatArray, means: FloatArray, bound: float) -> FloatArray:
    """Return the same of bets on several streams at once [V, G], each [V] of them with its share of the capital [H].

    It holds of all streams together: no value of any is expected above m.
    """
    found = [share * capital(values, means, bound) for values, share in zip(streams, shares, strict=True)]
    return np.asarray(np.sum(found, axis=0))


def lower_limits(streams: FloatArray, shares: FloatArray, level: float, bound: float) -> FloatArray:
    """Return, behind each value, the mean that some stream exceeded so far; -bound where nothing can be said.

    All of them hold together with a chance of 1 - level.
    """
    means = np.linspace(-bound, bound, GRID + 1)[1:]
    refused = np.maximum.accumulate(shared(streams, shares, means, bound), axis=0) >= 1 / level
    # Capital falls with the mean, so that those refused are the first ones of the grid.
    return np.asarray(np.concatenate([[-bound], means])[refused.sum(axis=1)])


def seen_at(streams: FloatArray, shares: FloatArray, mean: float, level: float, bound: float) -> int | None:
    """Return after how many values a mean is refused as too low for the first time; None: it is not.

    >>> seen_at(np.full((1, 50), 0.5), np.ones(1), mean=0.0, level=0.05, bound=1.0)
    15
    """
    reached = np.flatnonzero(shared(streams, shares, np.array([mean]), bound)[:, 0] >= 1 / level)
    return int(reached[0]) + 1 if len(reached) else None
