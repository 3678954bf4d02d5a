"""How unsure a network is of a decision, and which of its actions are worth trying.

Actions that are as good as another one stand for it: `like` says, for every action [D, A], which the first of them is.
"""

import numpy as np

from pipeline.core import BoolArray, FloatArray, IntArray


def likeliest(logits: FloatArray, like: IntArray, may: BoolArray, most: int) -> BoolArray:
    """Return the legal actions [D, A] that are as good as one of the `most` likeliest.

    >>> likeliest(np.array([[3.0, 1.0, 2.0, 9.0]]), np.array([[0, 0, 2, 3]]), np.array([[True, True, True, False]]), 1)
    array([[ True,  True, False, False]])
    """
    first = may & (like == np.arange(may.shape[1]))
    order = np.where(first, -logits, np.inf).argsort(axis=1, kind="stable")
    kept = first & (order.argsort(axis=1, kind="stable") < most)
    return np.asarray(may & np.take_along_axis(kept, like, axis=1))


def chances(logits: FloatArray, tried: BoolArray) -> FloatArray:
    """Return the chance [D, A] of each action among those that are tried; 0 of others."""
    shown = np.where(tried, logits, -np.inf)
    chance: FloatArray = np.exp(shown - shown.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    return chance


def doubt(chance: FloatArray, like: IntArray, least: float = 0.0) -> FloatArray:
    """Return how likely two draws differ [D], actions that are as good counted as one.

    It is 0 where only one has a chance above `least`.

    >>> doubt(np.array([[0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]), np.array([[0, 1, 2], [0, 0, 2]]))
    array([0.5, 0. ])
    """
    together = np.zeros_like(chance)
    np.add.at(together, (np.arange(len(like))[:, None], like), chance)
    spread: FloatArray = np.maximum(1.0 - (together**2).sum(axis=1), 0.0)
    return np.where((together > least).sum(axis=1) > 1, spread, 0.0)
