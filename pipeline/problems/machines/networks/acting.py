"""Turn a network of many machines into a policy."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from pipeline.core import FloatArray, IntArray, Observation, Policy
from pipeline.learning.sampling import best, sample
from pipeline.problems.machines.networks.actor_critic import ActorCritic, DeepSets, Inputs
from pipeline.problems.machines.networks.compiled_deepsets import logits, weights_of
from pipeline.problems.machines.networks.features import Features, features

Scorer = Callable[[Features], FloatArray]  # (D states) -> logits [D, A]


def forward(network: ActorCritic, observed: Features) -> FloatArray:
    """Return the logits [D, A], without gradients."""
    with torch.no_grad():
        logits, _ = network(Inputs(observed))
    values: FloatArray = logits.numpy()
    return values


def compiled(network: DeepSets) -> Scorer:
    """Return what gives the logits of the network as it is now, compiled: those of a state whoever else is asked of."""
    return partial(logits, weights_of(network))


def greedy(network: ActorCritic, scores: Scorer | None = None) -> Policy:
    """Return the policy that takes the legal action most probable to the network; ties go to the lowest.

    Args:
        network: as it is at each call.
        scores: gives its logits; None: torch does.
    """
    said = partial(forward, network) if scores is None else scores

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        observed = features(view, network.shape)
        actions: IntArray = best(said(observed), observed.may, True)
        return actions

    return policy


def sampled(network: ActorCritic, scores: Scorer | None = None) -> Policy:
    """Return the policy that draws each legal action with the chances that the network gives it; see `greedy`."""
    said = partial(forward, network) if scores is None else scores

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        observed = features(view, network.shape)
        actions: IntArray = sample(said(observed), observed.may, True, np.ascontiguousarray(draws))
        return actions

    return policy


PLAY = {"greedy": greedy, "sampled": sampled}
