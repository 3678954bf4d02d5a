"""A policy by the name that a user gives: a rule, a model directory, or one made elsewhere."""

from collections.abc import Mapping
from pathlib import Path

from pipeline import storage
from pipeline.config import GroupsCard, GroupsScenario, Params
from pipeline.config.groups.learning import MUST_MATCH
from pipeline.errors import UserError
from pipeline.external.loading import external, is_external
from pipeline.problems.groups.evaluation.foresight import Act
from pipeline.problems.groups.evaluation.play import controlled
from pipeline.problems.groups.heuristics.names import RULES
from pipeline.problems.groups.heuristics.tuning import rules_with, untuned
from pipeline.problems.groups.workload.source import cluster_of, configurations_of


def policy_by_name(name: str, params: Params, scenario: str, knobs: Mapping[str, float] | None = None) -> Act:
    """Return a policy of a scenario's cluster; a rule with knobs (None: as tuned there), or untuned without.

    Raises:
        UserError: there is no such policy, or it is a model of another cluster.
    """
    row = params.groups_scenario(scenario)
    if is_external(name):
        return controlled(external(name, row))
    if name in RULES:
        return _rule(name, storage.knobs_for(name, scenario) if knobs is None else knobs, row)
    if not Path(name).is_dir():
        raise storage.unknown_policy(name, RULES)
    return _model(Path(name), row)


def must_match(card: GroupsCard, scenario: GroupsScenario) -> None:
    """Refuse a network that was trained on another cluster than the scenario's.

    Raises:
        UserError: the cluster differs in any way that a controller sees.
    """
    for name in MUST_MATCH:
        trained, asked = getattr(card, name), getattr(scenario, name)
        same = list(trained.items()) == list(asked.items()) if isinstance(trained, dict) else trained == asked
        if not same:  # of resources, the order counts too
            raise UserError(f"model of agent '{card.agent}': trained with {name} {trained}, the scenario has {asked}")


def _rule(name: str, knobs: Mapping[str, float], row: GroupsScenario) -> Act:
    return rules_with(untuned(row.groups) | dict(knobs), cluster_of(row), configurations_of(row))[name].act


def _model(folder: Path, row: GroupsScenario) -> Act:
    from pipeline.problems.groups.networks.q_network import (
        controller,  # torch: 2 s and 250 MB that rules do without
        restore,
    )

    model = storage.read_model(folder, GroupsCard)
    must_match(model.card, row)
    return controlled(controller(restore(model.card, model.weights), cluster_of(row), configurations_of(row)))
