"""A policy by the name that a user gives: a heuristic, a model directory, or an external policy."""

from pathlib import Path

from pipeline.core import storage
from pipeline.core.config import MachinePark, MachinesCard, MachinesScenario
from pipeline.core.types import Policy
from pipeline.external.loading import external, is_external
from pipeline.problems.machines.env.storage import time_scale
from pipeline.problems.machines.heuristics.rules import HEURISTICS, TETRIS, heuristics_with
from pipeline.problems.machines.lookahead.plans import must_fit


def policy_by_name(name: str, scenario: MachinesScenario, park: MachinePark, of: str) -> Policy:
    """Return a policy for the machines of the scenario named `of`; heuristics with knobs are as tuned there.

    Raises:
        UserError: the policy is unknown, or a model that was trained for other machines.
    """
    if is_external(name):
        return external(name, scenario, time_scale(scenario, park))
    if name == TETRIS and (knobs := storage.knobs_for(name, of)):
        return heuristics_with(knobs)[name]
    if name in HEURISTICS:
        return HEURISTICS[name]
    if not Path(name).is_dir():
        raise storage.unknown_policy(name, HEURISTICS)
    from pipeline.problems.machines.agents.networks.loading import (
        restore,  # torch takes 2 s and 250 MB; heuristics do not need it
    )

    model = storage.read_model(Path(name), MachinesCard)
    must_fit(name, model.card, scenario, park)
    return restore(model.card, model.weights).policy
