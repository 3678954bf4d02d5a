"""Policies that look ahead from a heuristic or a network: `plan_saf`, `plan_models/agent`, or a row of `plans`."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from pipeline.core import storage
from pipeline.core.config import MachinePark, MachinesCard, MachinesPlan, MachinesScenario, Params
from pipeline.core.types import CompiledRule, FloatArray, Observation, Policy
from pipeline.errors import UserError
from pipeline.lookahead.planner import PREFIX, Base, Planner, SearchBudget
from pipeline.problems.machines.env.storage import read_park
from pipeline.problems.machines.env.workload.source import source
from pipeline.problems.machines.heuristics.rules import HEURISTICS, heuristics_with
from pipeline.problems.machines.lookahead.futures import ArrivalModel, arrival_model
from pipeline.problems.machines.lookahead.search import MachinesSearch, PolicyPlayer
from pipeline.simulation.rollout import compiled_rule_of

FIRST = 1_000_000  # number of the first fresh jobset for futures; no training draws that many
JOBSETS = 4  # for futures, at each load
USUAL = SearchBudget(candidates=20, futures=64, ahead=10, decisions=200_000, sure=1.0)
# For networks: every decision of a copy costs a forward pass, and a network is right more often than a few futures.
LEARNED = SearchBudget(candidates=4, futures=8, ahead=10, decisions=4_000, sure=1.0)

MachinesBase = Base[CompiledRule | PolicyPlayer]


def must_fit(name: str, card: MachinesCard, scenario: MachinesScenario, park: MachinePark) -> None:
    """Refuse a model that was trained for other machines.

    Raises:
        UserError: the first difference, in one line.
    """
    for what, trained, found in (
        ("resources", ", ".join(card.resources), ", ".join(park.resources)),
        ("machines", card.machines, len(park.capacity)),
        ("slots", card.slots, scenario.slots),
        ("dispatch", card.dispatch, scenario.dispatch),
    ):
        if trained != found:
            raise UserError(f"{name}: trained for {what} {trained}; here: {what} {found}")


def planned(base: Policy | MachinesBase, name: str, past: ArrivalModel, budget: SearchBudget | None = None) -> Planner:
    """Return a policy that looks ahead.

    Args:
        base: a heuristic, or the result of `network_base`.
        name: name of the base, for messages.
        past: source of futures.
        budget: budget of the search; None: the default for the kind of base.

    Raises:
        UserError: the heuristic has no compiled rule, or the past has too few jobs.
    """
    budget = budget or (LEARNED if isinstance(base, Base) else USUAL)
    if not isinstance(base, Base):
        rule = compiled_rule_of(base)
        if rule is None:
            raise UserError(f"policy '{PREFIX}{name}': expected a compiled heuristic after {PREFIX}, got '{name}'")
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
    base: Policy | MachinesBase
    if row.base in HEURISTICS:
        base = heuristics_with(storage.read_chosen(row.scenario).knobs)[row.base]
    else:
        place = storage.model_folder(row.base, "policy")
        model, park = storage.read_model(place, MachinesCard), read_park(storage.jobsets_folder(row.scenario))
        must_fit(str(place), model.card, params.machines_scenario(row.scenario), park)
        base = network_base(model.card, model.weights)
    budget = SearchBudget(row.candidates, row.futures, row.jobs, row.decisions, row.min_z)
    return planned(base, row.base, past_of(params, row.scenario), budget)


def network_base(card: MachinesCard, weights: Mapping[str, FloatArray]) -> MachinesBase:
    """Return a stored network as a base; in copies it plays greedily.

    Raises:
        UserError: the weights do not fit the network on the card.
    """
    # torch takes 2 s and 250 MB, and heuristics do not need it
    from pipeline.problems.machines.agents.networks.actor_critic import DeepSets
    from pipeline.problems.machines.agents.networks.features import features
    from pipeline.problems.machines.agents.networks.loading import PLAY, compiled, forward, greedy, restore

    network = restore(card, weights).network
    scores = compiled(network) if isinstance(network, DeepSets) else partial(forward, network)

    def likes(view: Observation) -> FloatArray:
        observed = features(view, network.shape)
        return np.where(observed.may, scores(observed), -np.inf)

    player = PolicyPlayer(greedy(network, scores), isinstance(network, DeepSets))
    return Base(PLAY[card.play](network, scores), player, likes)


def past_of(params: Params, scenario: str) -> ArrivalModel:
    """Return the arrival model of a scenario's training jobsets, equally many of each load."""
    origin = source(params, scenario, storage.scenario_log(scenario))
    return arrival_model(
        [origin.fresh(load, FIRST + k) for load in params.machines_scenario(scenario).loads for k in range(JOBSETS)]
    )
