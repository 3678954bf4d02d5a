"""Policies by name: a heuristic, model directory, agent tree, or external one; the prefix `plan_` adds look-ahead."""

from collections.abc import Mapping
from pathlib import Path

from pipeline.core import storage
from pipeline.core.config import Params, PoolCard, PoolScenario
from pipeline.core.types import Policy
from pipeline.errors import UserError
from pipeline.external.loading import external, is_external
from pipeline.interactive.explaining.tree import TREE, tree_by_name
from pipeline.lookahead.planner import PREFIX, Base
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.problems.pool.heuristics.scores import HEURISTICS, KNOBS, heuristics_with
from pipeline.problems.pool.lookahead.naming import network_base, plain_base, planned
from pipeline.problems.pool.lookahead.search import Player


def policy_for(params: Params, name: str, scenario: PoolScenario, of: str, cluster: Cluster) -> tuple[Policy, bool]:
    """Return a policy for a cluster as `policy_by_name` does, with look-ahead if its name begins with `plan_`."""
    if is_external(name):
        return external(name, scenario), True
    if not name.startswith(PREFIX) or Path(name).is_dir():
        return policy_by_name(name, scenario, of)
    base = base_by_name(name.removeprefix(PREFIX), scenario, of)
    return planned(params, of, cluster, base), base.masked


def cluster_for(name: str, scenario: PoolScenario) -> Cluster:
    """Return the cluster of a scenario for a named policy: models may place jobs ahead where rules may not."""
    return Cluster.of(
        scenario, trained=is_external(name) or Path(name).is_dir() or Path(name.removeprefix(PREFIX)).is_dir()
    )


def uses_end(name: str) -> bool:
    """Return whether a policy uses the end of arrivals, where it is known."""
    if Path(name).is_dir():
        return storage.read_model(Path(name), PoolCard).card.network.name == "scores"
    return name == "linear" or (name.startswith(PREFIX) and not is_external(name))


def base_by_name(name: str, scenario: PoolScenario, of: str) -> Base[Player]:
    """Return a policy as the base of a look-ahead."""
    if not Path(name).is_dir():
        return plain_base(*policy_by_name(name, scenario, of))
    model = storage.read_model(Path(name), PoolCard)
    return network_base(model.card, model.weights, scenario)


def policy_by_name(name: str, scenario: PoolScenario, of: str) -> tuple[Policy, bool]:
    """Return a policy, and whether it is masked; a heuristic uses its knobs as tuned for scenario `of`."""
    if name in HEURISTICS:
        return heuristics_with(storage.knobs_for(name, of) if name in KNOBS else {})[name], True
    if name.endswith(TREE) and not Path(name).is_dir():
        return tree_by_name(name), True
    if not Path(name).is_dir():
        raise storage.unknown_policy(name, HEURISTICS)
    return _model(name, scenario)


def drawn_by_name(name: str, scenario: PoolScenario) -> tuple[Policy, bool]:
    """Return a model's policy that samples its actions, and whether it is masked.

    Raises:
        UserError: it is not a model.
    """
    if name in HEURISTICS or not Path(name).is_dir():
        raise UserError(
            f"--samples: expected a model directory, got '{name}', which makes the same schedule every time"
        )
    return _model(name, scenario, {"play": "sampled"})


def _model(name: str, scenario: PoolScenario, changes: Mapping[str, str] = {}) -> tuple[Policy, bool]:
    from pipeline.problems.pool.agents.networks.networks import must_match, restore  # torch: 2 s and 250 MB

    model = storage.read_model(Path(name), PoolCard)
    must_match(model.card, scenario)
    loaded = restore(model.card.model_copy(update=changes), model.weights)
    return loaded.policy, loaded.masked
