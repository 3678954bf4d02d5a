"""The networks by their name in params.yaml, each in its own file, and policies from stored networks."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch

from pipeline.core.config import Params, PoolAgent, PoolCard, PoolScenario
from pipeline.core.config.pool.learning import PoolNetworkConfig
from pipeline.core.types import FloatArray, Policy
from pipeline.errors import UserError
from pipeline.learning.stored import restore_weights
from pipeline.problems.pool.agents.networks.cnn import Cnn
from pipeline.problems.pool.agents.networks.encodings import Layout
from pipeline.problems.pool.agents.networks.mlp import Mlp
from pipeline.problems.pool.agents.networks.network import PLAY, Network
from pipeline.problems.pool.agents.networks.scores import Scores
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.simulation.rollout import Heuristic

PoolNetwork = Network | Scores


def build(config: PoolNetworkConfig, cluster: Cluster, seed: int) -> PoolNetwork:
    """Return a network with initial weights drawn by a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NETWORKS[config.name](config, cluster)


class Loaded(NamedTuple):
    """A network ready to act."""

    network: PoolNetwork
    cluster: Cluster  # on which it was trained
    policy: Policy
    masked: bool  # does it take only legal actions?


def card_of(params: Params, agent: str) -> PoolCard:
    """Return the card of an agent's network."""
    row, recipe = params.agent_of(PoolAgent, agent), params.pool_recipe(agent)
    scenario = params.pool_scenario(row.scenario)
    return PoolCard(
        agent=agent,
        scenario=row.scenario,
        resources=scenario.resources,
        horizon=scenario.horizon,
        slots=scenario.slots,
        backlog=scenario.backlog,
        place_ahead=bool(scenario.place_ahead),
        stall=scenario.stall,
        objective=row.objective,
        network=row.network,
        masked=recipe.masked,
        play=recipe.play,
    )


def cluster_of(card: PoolCard) -> Cluster:
    """Return the cluster that a network was trained on."""
    units = tuple(card.resources.values())
    return Cluster(units, card.horizon, card.slots, card.backlog, card.place_ahead, card.stall)


def restore(card: PoolCard, weights: Mapping[str, FloatArray], device: torch.device | None = None) -> Loaded:
    """Rebuild a network and its policy, by default on the CPU.

    Raises:
        UserError: the weights do not fit the network on the card.
    """
    network = build(card.network, cluster_of(card), seed=0)
    restore_weights(network, weights, card.agent)
    network = network.placed(device)
    policy = PLAY[card.play](network, card.masked)
    if isinstance(network, Scores) and card.play == "greedy":
        policy = Heuristic(policy, network.rule)
    return Loaded(network, cluster_of(card), policy, card.masked)


def must_match(card: PoolCard, scenario: PoolScenario) -> None:
    """Refuse a network that was trained on another cluster than the scenario's, unless its weights fit any cluster.

    Raises:
        UserError: the cluster differs in any way.
    """
    if card.network.name == "scores":
        return
    scenario = scenario.model_copy(update={"place_ahead": bool(scenario.place_ahead)})
    for name in ("resources", "horizon", "slots", "backlog", "place_ahead"):
        trained, asked = getattr(card, name), getattr(scenario, name)
        same = list(trained.items()) == list(asked.items()) if isinstance(trained, dict) else trained == asked
        if not same:  # the order of resources counts, too
            raise UserError(f"model of agent '{card.agent}': trained with {name} {trained}, the scenario has {asked}")


NETWORKS: dict[str, Callable[..., PoolNetwork]] = {
    "mlp": lambda config, cluster: Mlp(Layout.of(cluster, config.clock), config.hidden),
    "cnn": lambda config, cluster: Cnn(Layout.of(cluster, config.clock), config.channels, config.hidden),
    "scores": lambda config, cluster: Scores(config.hidden),
}
