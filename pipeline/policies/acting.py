"""Turn a network into a policy: which actions may be chosen, and how one of them is."""

import numpy as np
import torch
from torch import Tensor

from pipeline.core import BoolArray, FloatArray, IntArray, Observation, Policy, legal_actions
from pipeline.policies.networks import Network


def allowed(view: Observation, masked: bool) -> BoolArray:
    """Return the actions [B, A] that may be chosen: the legal ones, or with no mask all."""
    legal = legal_actions(view)
    return legal if masked else np.ones_like(legal)


def log_probabilities(logits: Tensor, may: BoolArray) -> Tensor:
    """Return the log-probabilities [B, A]; those of forbidden actions are very low, not infinite, to keep gradients."""
    return torch.log_softmax(logits.masked_fill(~torch.from_numpy(may), -1e9), dim=1)


def logits_of(network: Network, view: Observation) -> Tensor:
    """Return the logits [B, A] without a gradient, in chunks that fit the cache."""
    with torch.no_grad():
        parts = range(0, len(view.now), network.chunk)
        return torch.cat([network(view.take(slice(k, k + network.chunk))) for k in parts])


def sampled(network: Network, masked: bool) -> Policy:
    """Return the policy that draws each action with the network's probability."""

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        may = allowed(view, masked)
        chances = log_probabilities(logits_of(network, view), may).double().exp().numpy()
        return inverse_cdf(chances, draws)

    return policy


def greedy(network: Network, masked: bool) -> Policy:
    """Return the policy that takes the most probable action; ties go to the lowest."""

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        logits = logits_of(network, view).numpy()
        return np.asarray(np.where(allowed(view, masked), logits, -np.inf).argmax(axis=1))

    return policy


def inverse_cdf(chances: FloatArray, draws: FloatArray) -> IntArray:
    """Return the action whose share of [0, total) the draw falls into; never one of chance 0.

    >>> inverse_cdf(np.array([[0.25, 0.0, 0.75]] * 2), np.array([0.2, 0.25]))
    array([0, 2])
    """
    cumulative = chances.cumsum(axis=1)
    return np.asarray((cumulative > draws[:, None] * cumulative[:, -1:]).argmax(axis=1))


PLAY = {"greedy": greedy, "sampled": sampled}
