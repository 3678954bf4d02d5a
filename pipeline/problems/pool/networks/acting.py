"""Turn a network into a policy: which actions may be chosen, and how one of them is."""

import numpy as np
import torch
from torch import Tensor

from pipeline.core import BoolArray, FloatArray, IntArray, Observation, Policy
from pipeline.learning.sampling import best, sample
from pipeline.problems.pool.networks.network import Encoded, Scorer
from pipeline.problems.pool.nouns import CompactObservation


def allowed(observed: CompactObservation, masked: bool) -> BoolArray:
    """Return the actions [D, A] that may be chosen: the legal ones, or with no mask all."""
    return observed.may if masked else np.ones_like(observed.may)


def log_probabilities(logits: Tensor, may: BoolArray) -> Tensor:
    """Return the log-probabilities [D, A]; those of forbidden actions are very low, not infinite, to keep gradients."""
    return torch.log_softmax(logits.masked_fill(~torch.from_numpy(may).to(logits.device), -1e9), dim=1)


def sampled(network: Scorer[Encoded], masked: bool) -> Policy:
    """Return the policy that draws each action with the chances that the network gives it now."""
    forward = network.frozen()

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        observed = network.encode(view)
        actions: IntArray = sample(forward(observed), observed.may, masked, draws)
        return actions

    return policy


def greedy(network: Scorer[Encoded], masked: bool) -> Policy:
    """Return the policy that takes what is the most probable action to the network now; ties go to the lowest."""
    forward = network.frozen()

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        observed = network.encode(view)
        actions: IntArray = best(forward(observed), observed.may, masked)
        return actions

    return policy


PLAY = {"greedy": greedy, "sampled": sampled}
