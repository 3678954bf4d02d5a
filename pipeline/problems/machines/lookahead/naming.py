"""`plan_saf` and the like: a heuristic by name, improved by looking ahead."""

from pipeline import storage
from pipeline.config import Params
from pipeline.core import Policy
from pipeline.errors import UserError
from pipeline.problems.machines.lookahead.futures import Outlook, outlook
from pipeline.problems.machines.lookahead.planner import Planner, Reach
from pipeline.problems.machines.workload.source import source
from pipeline.simulation.choosing import compiled_rule_of

PREFIX = "plan_"
FIRST = 1_000_000  # number of the first fresh jobset that futures are taken from; no training draws so many
JOBSETS = 4  # of each load that futures are taken from


def planned(base: Policy, name: str, past: Outlook, reach: Reach) -> Planner:
    """Return a heuristic that looks ahead.

    Args:
        base: the heuristic.
        name: its name, for people.
        past: what futures are taken from.
        reach: how far it looks.

    Raises:
        UserError: it has no compiled rule, or there is too little of a past.
    """
    rule = compiled_rule_of(base)
    if rule is None:
        raise UserError(f"policy '{PREFIX}{name}': expected a heuristic that is compiled behind {PREFIX}, got '{name}'")
    if not past.reaches(reach.jobs):
        raise UserError(f"policy '{PREFIX}{name}': expected more than {reach.jobs} jobs that futures can be taken from")
    return Planner(rule, past, reach)


def past_of(params: Params, scenario: str) -> Outlook:
    """Return what a scenario's training jobsets show, of all loads alike."""
    origin = source(params, scenario, storage.scenario_log(scenario))
    loads = origin.loads(params.machines_scenario(scenario).loads)
    return outlook([origin.fresh(load, FIRST + k) for load in loads for k in range(JOBSETS)])
