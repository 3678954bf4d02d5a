"""Policies by name: a rule, a model directory, or an external policy."""

from collections.abc import Mapping
from pathlib import Path

from pipeline.core import storage
from pipeline.core.config import GroupsCard, Params
from pipeline.core.config.groups.learning import MUST_MATCH
from pipeline.errors import UserError
from pipeline.external.loading import external, is_external
from pipeline.problems.groups.env.evaluation.controllers import Act
from pipeline.problems.groups.env.evaluation.play import controlled
from pipeline.problems.groups.env.workload.source import cluster_of, configurations_of
from pipeline.problems.groups.heuristics.names import RULES
from pipeline.problems.groups.heuristics.tuning import rules_with, untuned


def policy_by_name(name: str, params: Params, scenario: str, knobs: Mapping[str, float] | None = None) -> Act:
    """Return a policy of a scenario's cluster; rules use `knobs` (None: as tuned there), and defaults for missing ones.

    Raises:
        UserError: there is no such policy, or it is a model of another cluster.
    """
    row = params.groups_scenario(scenario)
    cluster, configurations = cluster_of(row), configurations_of(row)
    if is_external(name):
        return controlled(external(name, row))
    if name in RULES:
        tuned = storage.knobs_for(name, scenario) if knobs is None else knobs
        return rules_with(untuned(row.groups) | dict(tuned), cluster, configurations)[name].act
    if not Path(name).is_dir():
        raise storage.unknown_policy(name, RULES)
    from pipeline.problems.groups.agents.networks import q_network  # torch: 2 s and 250 MB that rules do not need

    model = storage.read_model(Path(name), GroupsCard)
    for field in MUST_MATCH:
        trained, asked = getattr(model.card, field), getattr(row, field)
        same = list(trained.items()) == list(asked.items()) if isinstance(trained, dict) else trained == asked
        if not same:  # of resources, the order counts too
            agent = model.card.agent
            raise UserError(f"model of agent '{agent}': trained with {field} {trained}, the scenario has {asked}")
    return controlled(q_network.controller(q_network.restore(model.card, model.weights), cluster, configurations))
