"""The controller that a value function makes."""

from pipeline.core import FloatArray
from pipeline.problems.groups.evaluation.controlling import Choose, decided, setting_of
from pipeline.problems.groups.networks.features import states
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
