"""From logits to actions, compiled: a sample by probability, or the most probable action."""

import numpy as np
from numba import njit

from pipeline.core.types import BoolArray, FloatArray, IntArray
from pipeline.simulation.compiled import inlined


@inlined
def draw_action(logits: FloatArray, may: BoolArray, i: int, masked: bool, draw: float, share: FloatArray) -> int:
    """Return the sampled action of one observation: the one whose share of [0, 1) contains the draw.

    Args:
        logits: [A] or longer, of this observation.
        may: [D, A], the legal actions of all observations.
        i: index of this observation.
        masked: do only legal actions have a share?
        draw: in [0, 1).
        share: [A] or longer, work array.
    """
    highest = -np.inf
    for a in range(may.shape[1]):
        if may[i, a] or not masked:
            highest = max(highest, np.float64(logits[a]))
    total = 0.0
    for a in range(may.shape[1]):
        if may[i, a] or not masked:
            total += np.exp(np.float64(logits[a]) - highest)
        share[a] = total
    action = 0
    while action < may.shape[1] - 1 and not share[action] > draw * total:  # the last action if logits are nan
        action += 1
    return action


@njit(cache=True)
def sample(logits: FloatArray, may: BoolArray, masked: bool, draws: FloatArray) -> IntArray:
    """Return the action [D] whose share of [0, 1) contains each draw; if masked, only legal ones have a share.

    >>> chances = np.log(np.array([[0.25, 0.5, 0.25]] * 2, dtype=np.float32))
    >>> sample(chances, np.array([[True, False, True]] * 2), True, np.array([0.4, 0.6]))
    array([0, 2])
    """
    actions = np.empty(len(logits), dtype=np.int64)
    share = np.empty(logits.shape[1])
    for i in range(len(logits)):
        actions[i] = draw_action(logits[i], may, i, masked, draws[i], share)
    return actions


@njit(cache=True)
def best(logits: FloatArray, may: BoolArray, masked: bool) -> IntArray:
    """Return the action [D] with the highest logit (if masked, among the legal ones); ties go to the lowest action."""
    actions = np.empty(len(logits), dtype=np.int64)
    for i in range(len(logits)):
        chosen = -1
        for a in range(logits.shape[1]):
            if (may[i, a] or not masked) and (chosen < 0 or logits[i, a] > logits[i, chosen]):
                chosen = a
        actions[i] = chosen
    return actions
