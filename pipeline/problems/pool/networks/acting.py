"""Turn a network into a policy: which actions may be chosen, and how one of them is."""

import numpy as np
import torch
from torch import Tensor

from pipeline.core import BoolArray, FloatArray, IntArray, Observation, Policy
from pipeline.learning.sampling import best, sample
from pipeline.problems.pool.networks.network import Scorer, Seeing
from pipeline.problems.pool.nouns import Seen


def allowed(seen: Seen, masked: bool) -> BoolArray:
    """Return the actions [D, A] that may be chosen: the legal ones, or with no mask all."""
    return seen.may if masked else np.ones_like(seen.may)


def log_probabilities(logits: Tensor, may: BoolArray) -> Tensor:
    """Return the log-probabilities [D, A]; those of forbidden actions are very low, not infinite, to keep gradients."""
    return torch.log_softmax(logits.masked_fill(~torch.from_numpy(may).to(logits.device), -1e9), dim=1)


def sampled(network: Scorer[Seeing], masked: bool) -> Policy:
    """Return the policy that draws each action with the chances that the network gives it now."""
    judge = network.frozen()

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        seen = network.see(view)
        actions: IntArray = sample(judge(seen), seen.may, masked, draws)
        return actions

    return policy


def greedy(network: Scorer[Seeing], masked: bool) -> Policy:
    """Return the policy that takes what is the most probable action to the network now; ties go to the lowest."""
    judge = network.frozen()

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        seen = network.see(view)
        actions: IntArray = best(judge(seen), seen.may, masked)
        return actions

    return policy


PLAY = {"greedy": greedy, "sampled": sampled}
