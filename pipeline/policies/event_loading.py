"""Networks of the event-driven problem: built, and restored as policies from a card and weights."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch

from pipeline.config import DeepSets as DeepSetsConfig
from pipeline.config import EventCard, NetworkConfig, described, difference
from pipeline.config import Linear as LinearConfig
from pipeline.config import Vector as VectorConfig
from pipeline.core import FloatArray, Policy
from pipeline.errors import UserError
from pipeline.policies.actor_critic import ActorCritic, DeepSets, Linear, Vector
from pipeline.policies.event_acting import EVENT_PLAY
from pipeline.policies.features import Shape


class EventLoaded(NamedTuple):
    """A network ready to act."""

    network: ActorCritic
    policy: Policy


def _vector(config: VectorConfig, shape: Shape) -> ActorCritic:
    return Vector(shape, config.hidden)


def _deepsets(config: DeepSetsConfig, shape: Shape) -> ActorCritic:
    return DeepSets(shape, config.hidden)


def _linear(config: LinearConfig, shape: Shape) -> ActorCritic:
    return Linear(shape, config.begins)


def build(config: NetworkConfig, shape: Shape, seed: int) -> ActorCritic:
    """Return a network with the initial weights that `seed` gives."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return EVENT_NETWORKS[config.name](config, shape)


def shape_of(card: EventCard) -> Shape:
    """Return what a network knows of the problem that it was trained on."""
    return Shape(card.slots, card.machines, len(card.resources), card.unit, card.dispatch == "greedy")


def restore(card: EventCard, weights: Mapping[str, FloatArray]) -> EventLoaded:
    """Rebuild a network and its policy.

    Raises:
        UserError: the weights are not those of the network on the card.
    """
    network = build(card.network, shape_of(card), seed=0)
    differing = difference(described(weights_of(network)), described(weights))
    if differing:
        raise UserError(f"model of agent '{card.agent}': {differing}")
    network.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in weights.items()})
    return EventLoaded(network, EVENT_PLAY[card.play](network))


def weights_of(network: ActorCritic) -> dict[str, FloatArray]:
    """Return a network's weights by name, to be stored."""
    return {name: value.detach().contiguous().numpy() for name, value in network.state_dict().items()}


EVENT_NETWORKS: dict[str, Callable[..., ActorCritic]] = {"vector": _vector, "deepsets": _deepsets, "linear": _linear}
