"""Construction of networks of many machines, and their restoration as policies from a card and weights."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from pipeline.core.config import MachinesCard
from pipeline.core.config.machines.learning import MachinesNetworkConfig
from pipeline.core.types import FloatArray, IntArray, Observation, Policy
from pipeline.learning.sampling import best, sample
from pipeline.learning.stored import restore_weights
from pipeline.problems.machines.agents.networks.actor_critic import ActorCritic, DeepSets, Inputs, Linear, Vector
from pipeline.problems.machines.agents.networks.compiled_deepsets import logits, weights_of
from pipeline.problems.machines.agents.networks.features import Features, Shape, features

Scorer = Callable[[Features], FloatArray]  # (D states) -> logits [D, A]


def forward(network: ActorCritic, observed: Features) -> FloatArray:
    """Return the logits [D, A], without gradients."""
    with torch.no_grad():
        found, _ = network(Inputs(observed))
    values: FloatArray = found.numpy()
    return values


def compiled(network: DeepSets) -> Scorer:
    """Return a compiled scorer with the current weights; the logits of a state do not depend on its batch."""
    return partial(logits, weights_of(network))


def greedy(network: ActorCritic, scores: Scorer | None = None, sampled: bool = False) -> Policy:
    """Return the policy that takes the most probable legal action (of equals, the lowest), or one that samples.

    Logits come from `scores`; None: from torch.
    """
    scorer = partial(forward, network) if scores is None else scores

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        observed = features(view, network.shape)
        found, may = scorer(observed), observed.may
        actions: IntArray = sample(found, may, True, np.ascontiguousarray(draws)) if sampled else best(found, may, True)
        return actions

    return policy


PLAY: dict[str, Callable[..., Policy]] = {"greedy": greedy, "sampled": partial(greedy, sampled=True)}


class Loaded(NamedTuple):
    """A network ready to act."""

    network: ActorCritic
    policy: Policy


def build(config: MachinesNetworkConfig, shape: Shape, seed: int) -> ActorCritic:
    """Return a network with initial weights drawn by a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NETWORKS[config.name](config, shape)


def shape_of(card: MachinesCard) -> Shape:
    """Return the shape of the problem that a network was trained on."""
    return Shape(card.slots, card.machines, len(card.resources), card.unit, card.dispatch == "greedy")


def restore(card: MachinesCard, weights: Mapping[str, FloatArray]) -> Loaded:
    """Rebuild a network and its policy.

    Raises:
        UserError: the weights do not fit the network on the card.
    """
    network = build(card.network, shape_of(card), seed=0)
    restore_weights(network, weights, card.agent)
    return Loaded(network, PLAY[card.play](network))


NETWORKS: dict[str, Callable[..., ActorCritic]] = {
    "vector": lambda config, shape: Vector(shape, config.hidden),
    "deepsets": lambda config, shape: DeepSets(shape, config.hidden, config.begins),
    "linear": lambda config, shape: Linear(shape, config.begins),
}
