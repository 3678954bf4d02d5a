"""`plan_saf`, `plan_models/agent`, a row of `plans`: a heuristic or a network, improved by looking ahead."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from pipeline import storage
from pipeline.config import MachinePark, MachinesCard, MachinesPlan, MachinesScenario, Params
from pipeline.core import CompiledRule, FloatArray, Observation, Policy
from pipeline.errors import UserError
from pipeline.lookahead.planner import PREFIX, Base, Planner, SearchBudget
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.heuristics.tuning import heuristics_with
from pipeline.problems.machines.lookahead.futures import ArrivalModel, arrival_model
from pipeline.problems.machines.lookahead.search import Asked, MachinesSearch
from pipeline.problems.machines.storage import read_park
from pipeline.problems.machines.workload.source import source
from pipeline.simulation.rollout import compiled_rule_of


def must_fit(name: str, card: MachinesCard, scenario: MachinesScenario, park: MachinePark) -> None:
    """Refuse a model that was trained for other machines.

    Raises:
        UserError: one line for the first thing that differs.
    """
    resources, here = ", ".join(card.resources), ", ".join(park.resources)
    for what, trained, found in (
        ("resources", resources, here),
        ("machines", card.machines, len(park.capacity)),
        ("slots", card.slots, scenario.slots),
        ("dispatch", card.dispatch, scenario.dispatch),
    ):
        if trained != found:
            raise UserError(f"{name}: trained for {what} {trained}; here: {what} {found}")


FIRST = 1_000_000  # number of the first fresh jobset that futures are taken from; no training draws so many
JOBSETS = 4  # of each load that futures are taken from
USUAL = SearchBudget(candidates=20, futures=64, ahead=10, decisions=200_000, sure=1.0)
# Networks: they are asked for every copy of a decision, and are right more often than few futures are.
LEARNED = SearchBudget(candidates=4, futures=8, ahead=10, decisions=4_000, sure=1.0)


def planned(
    base: Policy | Base[CompiledRule | Asked], name: str, past: ArrivalModel, budget: SearchBudget | None = None
) -> Planner:
    """Return a policy that looks ahead.

    Args:
        base: a heuristic, or what `network_base` returns.
        name: its name, for people.
        past: what futures are taken from.
        budget: how much is tried; None: as much as fits the kind of base.

    Raises:
        UserError: it has no compiled rule, or there is too little of a past.
    """
    budget = budget or (LEARNED if isinstance(base, Base) else USUAL)
    if not isinstance(base, Base):
        rule = compiled_rule_of(base)
        if rule is None:
            raise UserError(
                f"policy '{PREFIX}{name}': expected a heuristic that is compiled behind {PREFIX}, got '{name}'"
            )
        base = Base(base, rule)
    if not past.reaches(budget.ahead):
        raise UserError(
            f"policy '{PREFIX}{name}': expected more than {budget.ahead} jobs that futures can be taken from"
        )
    return Planner(MachinesSearch(base, past, budget))


def planning(params: Params, plan: str) -> Planner:
    """Return the policy of a row of `plans`.

    Raises:
        UserError: its agent is not trained yet, or was trained on other machines than the scenario's.
    """
    row = params.plan_of(MachinesPlan, plan)
    budget = SearchBudget(row.candidates, row.futures, row.jobs, row.decisions, row.min_z)
    base: Policy | Base[CompiledRule | Asked]
    if row.base in HEURISTICS:
        base = heuristics_with(storage.read_chosen(row.scenario).knobs)[row.base]
    else:
        place = storage.model_folder(row.base, "policy")
        model, park = storage.read_model(place, MachinesCard), read_park(storage.jobsets_folder(row.scenario))
        must_fit(str(place), model.card, params.machines_scenario(row.scenario), park)
        base = network_base(model.card, model.weights)
    return planned(base, row.base, past_of(params, row.scenario), budget)


def network_base(card: MachinesCard, weights: Mapping[str, FloatArray]) -> Base[CompiledRule | Asked]:
    """Return a stored network as a base: it plays on with the actions that it likes best.

    Raises:
        UserError: the weights are not those of the network on the card.
    """
    # torch: 2 s and 250 MB that heuristics do without
    from pipeline.problems.machines.networks.actor_critic import DeepSets
    from pipeline.problems.machines.networks.features import features
    from pipeline.problems.machines.networks.loading import PLAY, compiled, forward, greedy, restore

    network = restore(card, weights).network
    alike = isinstance(network, DeepSets)
    scores = compiled(network) if isinstance(network, DeepSets) else partial(forward, network)

    def likes(view: Observation) -> FloatArray:
        observed = features(view, network.shape)
        return np.where(observed.may, scores(observed), -np.inf)

    return Base(PLAY[card.play](network, scores), Asked(greedy(network, scores), alike), likes)


def past_of(params: Params, scenario: str) -> ArrivalModel:
    """Return what a scenario's training jobsets show, of all loads alike."""
    origin = source(params, scenario, storage.scenario_log(scenario))
    return arrival_model(
        [origin.fresh(load, FIRST + k) for load in params.machines_scenario(scenario).loads for k in range(JOBSETS)]
    )
