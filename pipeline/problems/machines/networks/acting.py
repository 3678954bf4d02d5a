"""Turn a network of many machines into a policy."""

import numpy as np
import torch

from pipeline.core import FloatArray, IntArray, Observation, Policy
from pipeline.learning.sampling import best, sample
from pipeline.problems.machines.networks.actor_critic import ActorCritic, Inputs
from pipeline.problems.machines.networks.features import Features, features


def forward(network: ActorCritic, observed: Features) -> FloatArray:
    """Return the logits [D, A], without gradients."""
    with torch.no_grad():
        logits, _ = network(Inputs(observed))
    values: FloatArray = logits.numpy()
    return values


def greedy(network: ActorCritic) -> Policy:
    """Return the policy that takes the legal action most probable to the network now; ties go to the lowest."""

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        observed = features(view, network.shape)
        actions: IntArray = best(forward(network, observed), observed.may, True)
        return actions

    return policy


def sampled(network: ActorCritic) -> Policy:
    """Return the policy that draws each legal action with the chances that the network gives it now."""

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        observed = features(view, network.shape)
        actions: IntArray = sample(forward(network, observed), observed.may, True, np.ascontiguousarray(draws))
        return actions

    return policy


PLAY = {"greedy": greedy, "sampled": sampled}
