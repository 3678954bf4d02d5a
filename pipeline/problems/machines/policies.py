"""A policy by the name that a user gives: a heuristic, a model directory, or one made elsewhere.

`plan_` before either makes it look ahead.
"""

from pathlib import Path

from pipeline import storage
from pipeline.config import MachinePark, MachinesCard, MachinesScenario, Params
from pipeline.core import Policy
from pipeline.external.loading import external, is_external
from pipeline.lookahead.planner import PREFIX, Planner
from pipeline.problems.machines.heuristics.rules import HEURISTICS, TETRIS, heuristics_with
from pipeline.problems.machines.lookahead.plans import must_fit, network_base, past_of, planned
from pipeline.problems.machines.workload.park import time_scale


def policy_for(params: Params, name: str, scenario: MachinesScenario, park: MachinePark, of: str) -> Policy | Planner:
    """Return what `policy_by_name` does; with `plan_` before its name, a policy that looks ahead."""
    if not name.startswith(PREFIX) or Path(name).is_dir() or is_external(name):
        return policy_by_name(name, scenario, park, of)
    base = name.removeprefix(PREFIX)
    if not Path(base).is_dir():
        return planned(policy_by_name(base, scenario, park, of), base, past_of(params, of))
    model = storage.read_model(Path(base), MachinesCard)
    must_fit(base, model.card, scenario, park)
    return planned(network_base(model.card, model.weights), base, past_of(params, of))


def policy_by_name(name: str, scenario: MachinesScenario, park: MachinePark, of: str) -> Policy:
    """Return a policy for the machines of the scenario that is called `of`; a heuristic with a knob as tuned there.

    Raises:
        UserError: there is none, or it is a model that was trained for others.
    """
    if is_external(name):
        return external(name, scenario, time_scale(scenario, park))
    if name == TETRIS and (knobs := storage.knobs_for(name, of)):
        return heuristics_with(knobs)[name]
    if name in HEURISTICS:
        return HEURISTICS[name]
    if not Path(name).is_dir():
        raise storage.unknown_policy(name, HEURISTICS)
    from pipeline.problems.machines.networks.loading import restore  # torch: 2 s and 250 MB that heuristics do without

    model = storage.read_model(Path(name), MachinesCard)
    must_fit(name, model.card, scenario, park)
    return restore(model.card, model.weights).policy
