"""Networks of many machines: built, and restored as policies from a card and weights."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch

from pipeline.config import DeepSets as DeepSetsConfig
from pipeline.config import Linear as LinearConfig
from pipeline.config import MachinesCard, MachinesNetworkConfig
from pipeline.config import Vector as VectorConfig
from pipeline.core import FloatArray, Policy
from pipeline.learning.stored import put_back
from pipeline.problems.machines.networks.acting import PLAY
from pipeline.problems.machines.networks.actor_critic import ActorCritic, DeepSets, Linear, Vector
from pipeline.problems.machines.networks.features import Shape


class Loaded(NamedTuple):
    """A network ready to act."""

    network: ActorCritic
    policy: Policy


def _vector(config: VectorConfig, shape: Shape) -> ActorCritic:
    return Vector(shape, config.hidden)


def _deepsets(config: DeepSetsConfig, shape: Shape) -> ActorCritic:
    return DeepSets(shape, config.hidden)


def _linear(config: LinearConfig, shape: Shape) -> ActorCritic:
    return Linear(shape, config.begins)


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
    put_back(network, weights, card.agent)
    return Loaded(network, PLAY[card.play](network))


NETWORKS: dict[str, Callable[..., ActorCritic]] = {"vector": _vector, "deepsets": _deepsets, "linear": _linear}
