"""Controllers' networks, restored from a card and weights."""

from collections.abc import Mapping

import numpy as np
import torch

from pipeline.config import GroupCard, described, difference
from pipeline.config import GroupQ as GroupQConfig
from pipeline.core import FloatArray
from pipeline.errors import UserError
from pipeline.policies.group_features import GroupShape
from pipeline.policies.group_q import GroupQ


def restore(card: GroupCard, weights: Mapping[str, FloatArray]) -> GroupQ:
    """Rebuild a controller's network.

    Raises:
        UserError: the weights are not those of the network on the card.
    """
    if not isinstance(card.network, GroupQConfig):
        raise UserError(f"model of agent '{card.agent}': expected network group_q, found {card.network.name}")
    shape = GroupShape(len(card.queues), len(card.orders), len(card.resources))
    past = np.zeros((card.groups, shape.past), dtype=np.float32)
    with torch.random.fork_rng(devices=[]):
        network = GroupQ(shape, card.network, past, np.ones(shape.resources))
    differing = difference(described(weights_of(network)), described(weights))
    if differing:
        raise UserError(f"model of agent '{card.agent}': {differing}")
    network.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in weights.items()})
    return network


def weights_of(network: GroupQ) -> dict[str, FloatArray]:
    """Return a network's weights by name, to be stored."""
    return {name: value.detach().contiguous().numpy() for name, value in network.state_dict().items()}
