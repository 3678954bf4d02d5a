"""Policies that look ahead, by name: `plan_sjf`, `plan_models/deeprm3/policy`, or a row of `plans`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pipeline.core import storage
from pipeline.core.config import AtOnce, Params, PoolCard, PoolPlan, PoolScenario
from pipeline.core.types import CompiledRule, FloatArray, Observation, Policy
from pipeline.lookahead.planner import Base, SearchBudget
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.problems.pool.env.workload.source import source
from pipeline.problems.pool.heuristics.scores import HEURISTICS, heuristics_with
from pipeline.problems.pool.lookahead.futures import ArrivalModel, Ways, arrival_model
from pipeline.problems.pool.lookahead.search import Player, PoolPlanner, PoolSearch
from pipeline.simulation.rollout import compiled_rule_of

FIRST = 1_000_000_000  # number of the first fresh jobset used as a future; training never draws that many
# Where arrivals end, futures are played to the end; jobs left in streams are valued as in the windows of DeepRM3.
WHOLE = SearchBudget(candidates=12, futures=64, ahead=1_000_000, decisions=200_000)
PIECE = SearchBudget(candidates=12, futures=32, ahead=100, decisions=200_000, left_job=4.0, left_work=2.5)
# For networks: a decision costs a hundred times a rule's, and is right more often than 16 futures are.
LEARNED = SearchBudget(candidates=4, futures=16, ahead=WHOLE.ahead, decisions=4_000, sure=1.0)


def planned(
    params: Params, scenario: str, cluster: Cluster, base: Base[Player], budget: SearchBudget | None = None
) -> PoolPlanner:
    """Return a policy that looks ahead, with futures from the training jobsets of a scenario.

    If policies know when arrivals end, futures are whole jobsets, played to their end; else pieces of streams. The
    default budget depends on the kinds of base and scenario. A log that cannot be read raises a UserError.
    """
    if budget is None:
        budget = usual = PIECE if cluster.arrivals_end is None else WHOLE
        if isinstance(base.player, CompiledRule) and base.player.rule == "scores":
            budget = usual._replace(candidates=8, futures=32)  # a decision costs several times another rule's
        if base.likes:
            budget = LEARNED._replace(ahead=usual.ahead, left_job=usual.left_job, left_work=usual.left_work)
    return PoolPlanner(PoolSearch(base, cluster, _arrivals(params, scenario, cluster.arrivals_end, budget), budget))


def planning(params: Params, plan: str) -> PoolPlanner:
    """Return the policy of a row of `plans`; raise a UserError if its agent is missing or fits another cluster."""
    row = params.plan_of(PoolPlan, plan)
    scenario, tried = params.pool_scenario(row.scenario), (row.candidates, row.futures, row.ahead, row.decisions)
    if row.base in HEURISTICS:
        base = plain_base(heuristics_with(storage.read_chosen(row.scenario).knobs)[row.base])
    else:
        model = storage.read_model(storage.model_folder(row.base, "policy"), PoolCard)
        base = network_base(model.card, model.weights, scenario)
    budget = SearchBudget(*tried, row.min_z, row.left_job, row.left_work)
    return planned(params, row.scenario, Cluster.of(scenario), base, budget)


def plain_base(policy: Policy, masked: bool = True) -> Base[Player]:
    """Return a heuristic as a base, played by its compiled rule if it has one."""
    return Base(policy, compiled_rule_of(policy) or policy, masked=masked)


def network_base(card: PoolCard, weights: Mapping[str, FloatArray], scenario: PoolScenario) -> Base[Player]:
    """Return a stored network as a base; scores play copies compiled, unless all jobs arrive at once.

    Raises:
        UserError: it was trained on another cluster than the scenario's, or its weights do not fit its card.
    """
    # torch takes 2 s and 250 MB; heuristics do not need it
    from pipeline.problems.pool.agents.networks.network import Scorer
    from pipeline.problems.pool.agents.networks.networks import must_match, restore
    from pipeline.problems.pool.agents.networks.scores import Scores

    must_match(card, scenario)
    loaded = restore(card, weights)
    if isinstance(loaded.network, Scores) and not isinstance(scenario.arrivals, AtOnce):
        return plain_base(loaded.policy)
    scorer: Scorer[Any] = loaded.network
    forward = scorer.frozen()

    def liked(view: Observation) -> FloatArray:
        observed = scorer.encode(view)
        return np.where(observed.may, forward(observed), -np.inf)

    return Base(loaded.policy, Ways(liked), liked, loaded.masked)


def _arrivals(params: Params, scenario: str, end: int | None, budget: SearchBudget) -> ArrivalModel:
    origin, numbers = source(params, scenario, storage.LOG.resolve()), range(FIRST, FIRST + budget.futures)
    loads = origin.loads(params.pool_scenario(scenario).loads)
    if end is None:
        pieces = [[origin.piece("fresh", load, number, budget.ahead) for number in numbers] for load in loads]
        return arrival_model(pieces, from_now=True, span=budget.ahead)
    drawn = [[origin.fresh(load, number) for number in numbers] for load in loads]
    return arrival_model(drawn, from_now=False, span=end)
