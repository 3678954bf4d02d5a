"""`plan_sjf`, `plan_models/deeprm3/policy`, a row of `plans`: a policy by name, improved by looking ahead."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pipeline import storage
from pipeline.config import AtOnce, Params, PoolCard, PoolPlan, PoolScenario
from pipeline.core import CompiledRule, FloatArray, Observation, Policy
from pipeline.lookahead.planner import Base, Liking, SearchBudget
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.heuristics.tuning import heuristics_with
from pipeline.problems.pool.lookahead.futures import ArrivalModel, arrival_model
from pipeline.problems.pool.lookahead.search import Player, PoolPlanner, PoolSearch
from pipeline.problems.pool.lookahead.set_trying import SetPlayer
from pipeline.problems.pool.lookahead.ways import Ways
from pipeline.problems.pool.nouns import Cluster
from pipeline.problems.pool.workload.source import source
from pipeline.simulation.rollout import compiled_rule_of

FIRST = 1_000_000_000  # number of the first fresh jobset that futures are; no training draws so many
# Where arrivals end, all is played to its end; of streams, what is left is valued as DeepRM3's windows value it.
WHOLE = SearchBudget(candidates=12, futures=64, ahead=1_000_000, decisions=200_000)
PIECE = SearchBudget(candidates=12, futures=32, ahead=100, decisions=200_000, left_job=4.0, left_work=2.5)
# Networks: a decision of theirs costs a hundred times a rule's, and they are right more often than 16 futures are.
LEARNED = SearchBudget(candidates=4, futures=16, ahead=WHOLE.ahead, decisions=4_000, sure=1.0)


def planned(
    params: Params, scenario: str, cluster: Cluster, base: Base[Player], budget: SearchBudget | None = None
) -> PoolPlanner:
    """Return a policy that looks ahead.

    Args:
        params: of the scenario; their seed draws the futures.
        scenario: whose training jobsets say what may come.
        cluster: that jobs are scheduled on. Where policies are told when arrivals end, futures are whole jobsets,
            played to their end; else pieces of streams.
        base: the policy.
        budget: how much is tried; None: as much as fits the kind of base and scenario.

    Raises:
        UserError: the scenario's log cannot be read.
    """
    if budget is None:
        budget = usual = PIECE if cluster.arrivals_end is None else WHOLE
        if isinstance(base.player, CompiledRule) and base.player.rule == "scores":
            budget = usual._replace(candidates=8, futures=32)  # a decision costs several times another rule's
        if base.likes:
            budget = LEARNED._replace(ahead=usual.ahead, left_job=usual.left_job, left_work=usual.left_work)
    return PoolPlanner(PoolSearch(base, cluster, _arrivals(params, scenario, cluster.arrivals_end, budget), budget))


def planning(params: Params, plan: str) -> PoolPlanner:
    """Return the policy of a row of `plans`.

    Raises:
        UserError: its agent is not trained yet, or was trained on another cluster than the scenario's.
    """
    row = params.plan_of(PoolPlan, plan)
    scenario, tried = params.pool_scenario(row.scenario), (row.candidates, row.futures, row.ahead, row.decisions)
    if row.base in HEURISTICS:
        base = plain_base(heuristics_with(storage.read_chosen(row.scenario).knobs)[row.base])
    else:
        model = storage.read_model(storage.model_folder(row.base, "policy"), PoolCard)
        base = network_base(model.card, model.weights, scenario)
    budget = SearchBudget(*tried, row.sure, row.left_job, row.left_work)
    return planned(params, row.scenario, Cluster.of(scenario), base, budget)


def plain_base(policy: Policy, masked: bool = True) -> Base[Player]:
    """Return a heuristic as a base: it plays as its compiled rule, or is asked where it has none."""
    return Base(policy, compiled_rule_of(policy) or policy, masked=masked)


def network_base(card: PoolCard, weights: Mapping[str, FloatArray], scenario: PoolScenario) -> Base[Player]:
    """Return a stored network as a base: `sets` and, while jobs arrive, scores play on compiled; others are asked.

    Raises:
        UserError: it was trained on another cluster than the scenario's, or its weights are not those of its card.
    """
    # torch: 2 s and 250 MB that heuristics do without
    from pipeline.problems.pool.networks.loading import must_match, restore
    from pipeline.problems.pool.networks.network import Scorer
    from pipeline.problems.pool.networks.scores import Scores
    from pipeline.problems.pool.networks.sets import Sets

    must_match(card, scenario)
    loaded = restore(card, weights)

    def liking(scorer: Scorer[Any]) -> Liking:
        forward = scorer.frozen()

        def liked(view: Observation) -> FloatArray:
            observed = scorer.encode(view)
            return np.where(observed.may, forward(observed), -np.inf)

        return liked

    network = loaded.network
    if isinstance(network, Scores) and not isinstance(scenario.arrivals, AtOnce):
        return plain_base(loaded.policy)
    if not isinstance(network, Sets):
        return Base(loaded.policy, Ways(liking(network)), liking(network), loaded.masked)
    return Base(loaded.policy, SetPlayer(network.compiled()), liking(network), loaded.masked)


def _arrivals(params: Params, scenario: str, end: int | None, budget: SearchBudget) -> ArrivalModel:
    origin, numbers = source(params, scenario, storage.LOG.resolve()), range(FIRST, FIRST + budget.futures)
    loads = origin.loads(params.pool_scenario(scenario).loads)
    if end is None:
        pieces = [[origin.piece("fresh", load, number, budget.ahead) for number in numbers] for load in loads]
        return arrival_model(pieces, from_now=True, span=budget.ahead)
    drawn = [[origin.fresh(load, number) for number in numbers] for load in loads]
    return arrival_model(drawn, from_now=False, span=end)
