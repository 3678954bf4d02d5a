"""The gradient of the policy-gradient loss by the logits, in closed form and compiled.

With p the chances of the actions, a the one taken, g its advantage, H the entropy and c the entropy's weight, the loss
of a decision is -(g log p_a + c H), and its derivative by logit j is -(g ([j = a] - p_j) - c p_j (log p_j + H)).
"""

import numpy as np
from numba import njit, prange

from pipeline.core import BoolArray, FloatArray, IntArray


@njit(cache=True, parallel=True)
def loss_gradient(
    logits: FloatArray,
    may: BoolArray,
    masked: bool,
    action: IntArray,
    gain: FloatArray,
    weight: float,
    gradient: FloatArray,
    entropy: FloatArray,
) -> None:
    """Write the gradient [D, A] of the sum of the decisions' losses, and the entropy [D] of each.

    Args:
        logits: [D, A].
        may: [D, A], the legal actions.
        masked: are the others out of the question?
        action: [D], taken.
        gain: [D], the advantage.
        weight: of the entropy.
        gradient: [D, A], written.
        entropy: [D], written.
    """
    for i in prange(logits.shape[0]):
        highest, total, mean = -np.inf, 0.0, 0.0
        for a in range(logits.shape[1]):
            if may[i, a] or not masked:
                highest = max(highest, np.float64(logits[i, a]))
        for a in range(logits.shape[1]):
            share = np.exp(logits[i, a] - highest) if may[i, a] or not masked else 0.0
            gradient[i, a] = share
            total += share
            mean += share * (logits[i, a] - highest)
        entropy[i] = np.log(total) - mean / total
        for a in range(logits.shape[1]):
            chance = gradient[i, a] / total
            hit = 1.0 if a == action[i] else 0.0
            surprise = highest + np.log(total) - logits[i, a]
            gradient[i, a] = weight * chance * (entropy[i] - surprise) - gain[i] * (hit - chance)
