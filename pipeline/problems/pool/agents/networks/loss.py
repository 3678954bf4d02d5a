"""The gradient of the policy-gradient loss with respect to the logits, in closed form and compiled.

With p the probabilities of the actions, a the one taken, g its advantage, H the entropy and c its weight, the loss of a
decision is -(g log p_a + c H). Its derivative with respect to logit j is -(g ([j = a] - p_j) - c p_j (log p_j + H)).
"""

from typing import NamedTuple

import numpy as np

from pipeline.core.types import BoolArray, FloatArray, IntArray
from pipeline.simulation.compiled import Span, inlined, threaded


class Loss(NamedTuple):
    """Terms of the loss of D decisions."""

    action: IntArray  # [D]  taken
    gain: FloatArray  # [D]  the advantage
    masked: bool  # are illegal actions excluded?
    weight: float  # of the entropy

    def take(self, rows: slice) -> "Loss":
        """Return the terms of some decisions."""
        return self._replace(action=self.action[rows], gain=self.gain[rows])


@inlined
def loss_of(logits: FloatArray, may: BoolArray, i: int, loss: Loss, gradient: FloatArray) -> float:
    """Write the gradient of one decision's loss with respect to its logits, and return its entropy.

    Args:
        logits: [A] or longer.
        may: [D, A], the legal actions.
        i: the decision.
        loss: of all decisions.
        gradient: output, [A] or longer.
    """
    actions, action, gain = may.shape[1], loss.action[i], loss.gain[i]
    highest, total, mean = -np.inf, 0.0, 0.0
    for a in range(actions):
        if may[i, a] or not loss.masked:
            highest = max(highest, np.float64(logits[a]))
    for a in range(actions):
        share = np.exp(logits[a] - highest) if may[i, a] or not loss.masked else 0.0
        gradient[a] = share
        total += share
        mean += share * (logits[a] - highest)
    log_total = np.log(total)
    entropy: float = log_total - mean / total
    for a in range(actions):
        chance = gradient[a] / total
        hit = 1.0 if a == action else 0.0
        surprise = highest + log_total - logits[a]
        gradient[a] = loss.weight * chance * (entropy - surprise) - gain * (hit - chance)
    return entropy


@threaded(lambda logits, *_: len(logits))
def loss_gradient(
    span: Span, logits: FloatArray, may: BoolArray, loss: Loss, gradient: FloatArray, entropy: FloatArray
) -> None:
    """Write the gradient [D, A] of the decisions' losses by their logits [D, A], and the entropy [D] of each."""
    for i in range(*span):
        entropy[i] = loss_of(logits[i], may, i, loss, gradient[i])
