"""Controllers' networks, restored from a card and weights."""

from collections.abc import Mapping

import numpy as np
import torch

from pipeline.config import GroupsCard, QNetworkConfig
from pipeline.core import FloatArray
from pipeline.errors import UserError
from pipeline.learning.stored import put_back
from pipeline.problems.groups.evaluation.controlling import Choose, decided, setting_of
from pipeline.problems.groups.networks.features import Shape, states
from pipeline.problems.groups.networks.q_network import QNetwork, values_of
from pipeline.problems.groups.nouns import Configurations, Controller, Observation, Setting, SharedCluster
from pipeline.problems.groups.simulator.knapsack.several import plan


def controller(
    network: QNetwork, cluster: SharedCluster, configurations: Configurations, choose: Choose = plan
) -> Controller:
    """Return the controller that sets what a network values most."""

    def control(view: Observation, draws: FloatArray) -> Setting:
        values = values_of(network, states(view, cluster), configurations.units)
        chosen = decided(values, configurations, cluster.capacity, choose)
        return setting_of(chosen, view, configurations, cluster.capacity)

    return control


def restore(card: GroupsCard, weights: Mapping[str, FloatArray]) -> QNetwork:
    """Rebuild a controller's network.

    Raises:
        UserError: the weights are not those of the network on the card.
    """
    if not isinstance(card.network, QNetworkConfig):
        raise UserError(f"model of agent '{card.agent}': expected network q_network, found {card.network.name}")
    shape = Shape(len(card.queues), len(card.orders), len(card.resources))
    past = np.zeros((card.groups, shape.past), dtype=np.float32)
    with torch.random.fork_rng(devices=[]):
        network = QNetwork(shape, card.network, past, np.ones(shape.resources))
    put_back(network, weights, card.agent)
    return network
