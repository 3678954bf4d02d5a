"""A policy from a stored network's card and weights."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from pipeline.config import ModelCard, Params, Scenario, Sets, described, difference
from pipeline.core import Cluster, FloatArray, Policy
from pipeline.errors import UserError
from pipeline.policies.acting import PLAY
from pipeline.policies.network import Scorer
from pipeline.policies.networks import build
from pipeline.policies.sets import Sets as SetsNetwork


class Loaded(NamedTuple):
    """A network ready to act."""

    network: Scorer[Any]
    cluster: Cluster  # that it was trained on
    policy: Policy
    masked: bool  # does it keep to the legal actions?


def card_of(params: Params, agent: str) -> ModelCard:
    """Return the card of an agent's network."""
    row, recipe = params.agent(agent), params.recipe(agent)
    scenario = params.scenario(row.scenario)
    return ModelCard(
        agent=agent,
        scenario=row.scenario,
        resources=scenario.resources,
        horizon=scenario.horizon,
        slots=scenario.slots,
        backlog=scenario.backlog,
        place_ahead=scenario.place_ahead,
        objective=row.objective,
        network=row.network,
        masked=recipe.masked,
        play=recipe.play,
        ageing=getattr(row.finetune, "ageing", 0.0),
    )


def cluster_of(card: ModelCard) -> Cluster:
    """Return the cluster that a network was trained on."""
    units = tuple(card.resources.values())
    return Cluster(units, card.horizon, card.slots, card.backlog, card.place_ahead, card.horizon)


def restore(card: ModelCard, weights: Mapping[str, FloatArray], device: torch.device | None = None) -> Loaded:
    """Rebuild a network and its policy, on the CPU unless told otherwise.

    Raises:
        UserError: the weights are not those of the network on the card.
    """
    network = build(card.network, cluster_of(card), seed=0)
    differing = difference(described(weights_of(network)), described(weights))
    if differing:
        raise UserError(f"model of agent '{card.agent}': {differing}")
    network.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in weights.items()})
    network = network.placed(device)
    acting = network.aged(card.ageing) if isinstance(network, SetsNetwork) and card.ageing else network
    return Loaded(network, cluster_of(card), PLAY[card.play](acting, card.masked), card.masked)


def must_match(card: ModelCard, scenario: Scenario) -> None:
    """Refuse a network that was trained on another cluster than the scenario's, unless its weights serve any.

    Raises:
        UserError: the cluster differs in any way.
    """
    if isinstance(card.network, Sets):
        return
    for name in ("resources", "horizon", "slots", "backlog", "place_ahead"):
        trained, asked = getattr(card, name), getattr(scenario, name)
        same = list(trained.items()) == list(asked.items()) if isinstance(trained, dict) else trained == asked
        if not same:  # of resources, the order counts too
            raise UserError(f"model of agent '{card.agent}': trained with {name} {trained}, the scenario has {asked}")


def weights_of(network: torch.nn.Module) -> dict[str, FloatArray]:
    """Return a network's weights by name, to be stored."""
    return {name: value.detach().cpu().contiguous().numpy() for name, value in network.state_dict().items()}
