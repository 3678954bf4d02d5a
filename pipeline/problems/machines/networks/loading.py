"""Networks of many machines: built, and restored as policies from a card and weights."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from pipeline.config import MachinesCard, MachinesNetworkConfig
from pipeline.core import FloatArray, IntArray, Observation, Policy
from pipeline.learning.sampling import best, sample
from pipeline.learning.stored import restore_weights
from pipeline.problems.machines.networks.actor_critic import ActorCritic, DeepSets, Inputs, Linear, Vector
from pipeline.problems.machines.networks.compiled_deepsets import logits, weights_of
from pipeline.problems.machines.networks.features import Features, Shape, features

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


class Loaded(NamedTuple):
    """A network ready to act."""

    network: ActorCritic
    policy: Policy


def build(config: MachinesNetworkConfig, shape: Shape, seed: int) -> ActorCritic:
    """Return a network with the initial weights that `seed` gives."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NETWORKS[config.name](config, shape)


def shape_of(card: MachinesCard) -> Shape:
    """Return what a network knows of the problem that it was trained on."""
    return Shape(card.slots, card.machines, len(card.resources), card.unit, card.dispatch == "greedy")


def restore(card: MachinesCard, weights: Mapping[str, FloatArray]) -> Loaded:
    """Rebuild a network and its policy.

    Raises:
        UserError: the weights are not those of the network on the card.
    """
    network = build(card.network, shape_of(card), seed=0)
    restore_weights(network, weights, card.agent)
    return Loaded(network, PLAY[card.play](network))


NETWORKS: dict[str, Callable[..., ActorCritic]] = {
    "vector": lambda config, shape: Vector(shape, config.hidden),
    "deepsets": lambda config, shape: DeepSets(shape, config.hidden, config.begins),
    "linear": lambda config, shape: Linear(shape, config.begins),
}
