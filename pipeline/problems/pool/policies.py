"""A policy by the name that a user gives: a heuristic, a model directory, or the tree that explains an agent."""

from collections.abc import Mapping
from pathlib import Path

from pipeline import storage
from pipeline.config import PoolCard, PoolScenario, there_are
from pipeline.core import Policy
from pipeline.errors import UserError
from pipeline.problems.pool.explaining.stored import TREE, tree_by_name
from pipeline.problems.pool.heuristics.scores import HEURISTICS


def policy_by_name(name: str, scenario: PoolScenario) -> tuple[Policy, bool]:
    """Return a policy, and whether it keeps to the legal actions."""
    if name in HEURISTICS:
        return HEURISTICS[name], True
    if name.endswith(TREE) and not Path(name).is_dir():
        return tree_by_name(name), True
    if not Path(name).is_dir():
        near = f"; did you mean '{storage.MODELS / name}'?" if (storage.MODELS / name).is_dir() else ""
        raise UserError(
            f"unknown policy '{name}': expected a model directory or a heuristic; {there_are(HEURISTICS, name)}{near}"
        )
    return _model(name, scenario)


def drawn_by_name(name: str, scenario: PoolScenario) -> tuple[Policy, bool]:
    """Return a model's policy that draws its actions, however it plays else, and whether it keeps to the legal ones.

    Raises:
        UserError: it is no model.
    """
    if name in HEURISTICS or not Path(name).is_dir():
        raise UserError(
            f"--samples: expected a model directory, got '{name}', which makes the same schedule every time"
        )
    return _model(name, scenario, {"play": "sampled"})


def _model(name: str, scenario: PoolScenario, changes: Mapping[str, str] = {}) -> tuple[Policy, bool]:
    from pipeline.problems.pool.networks.loading import (  # torch: 2 s and 250 MB that heuristics do without
        must_match,
        restore,
    )

    model = storage.read_model(Path(name), PoolCard)
    must_match(model.card, scenario)
    loaded = restore(model.card.model_copy(update=changes), model.weights)
    return loaded.policy, loaded.masked
