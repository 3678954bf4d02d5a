"""A row of `plans` as a policy: its base by name, and how much is tried."""

from pipeline import storage
from pipeline.config import MachinesCard, MachinesPlan, Params
from pipeline.core import Policy
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.heuristics.tuning import heuristics_with
from pipeline.problems.machines.lookahead.asking import Asked
from pipeline.problems.machines.lookahead.naming import network_base, past_of, planned
from pipeline.problems.machines.lookahead.planner import Planner, Reach
from pipeline.problems.machines.networks.matching import must_fit
from pipeline.problems.machines.storage import read_park


def planning(params: Params, plan: str) -> Planner:
    """Return the policy of a row.

    Raises:
        UserError: its agent is not trained yet, or was trained on other machines than the scenario's.
    """
    row = params.plan_of(MachinesPlan, plan)
    reach = Reach(row.candidates, row.futures, row.jobs, row.decisions, row.sure)
    return planned(_base(params, row), row.base, past_of(params, row.scenario), reach)


def _base(params: Params, row: MachinesPlan) -> Policy | Asked:
    if row.base in HEURISTICS:
        return heuristics_with(storage.read_chosen(row.scenario).knobs)[row.base]
    place = storage.model_folder(row.base, "policy")
    model, park = storage.read_model(place, MachinesCard), read_park(storage.jobsets_folder(row.scenario))
    must_fit(str(place), model.card, params.machines_scenario(row.scenario), park)
    return network_base(model.card, model.weights)
