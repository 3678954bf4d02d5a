"""A row of `plans` as a policy: its base by name, and how much is tried."""

from pipeline import storage
from pipeline.config import Params, PoolCard, PoolPlan
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.heuristics.tuning import heuristics_with
from pipeline.problems.pool.lookahead.bases import Base, network_base, plain_base
from pipeline.problems.pool.lookahead.naming import planned
from pipeline.problems.pool.lookahead.planner import Planner, Reach
from pipeline.problems.pool.nouns import Cluster


def planning(params: Params, plan: str) -> Planner:
    """Return the policy of a row.

    Raises:
        UserError: its agent is not trained yet, or was trained on another cluster than the scenario's.
    """
    row = params.plan_of(PoolPlan, plan)
    cluster = Cluster.of(params.pool_scenario(row.scenario))
    return planned(params, row.scenario, cluster, _base(params, row), reach_of(row))


def reach_of(row: PoolPlan) -> Reach:
    """Return how much a row tries for one decision."""
    return Reach(row.candidates, row.futures, row.ahead, row.decisions, row.left_job, row.left_work, row.sure)


def _base(params: Params, row: PoolPlan) -> Base:
    if row.base in HEURISTICS:
        return plain_base(heuristics_with(storage.read_chosen(row.scenario).knobs)[row.base])
    model = storage.read_model(storage.model_folder(row.base, "policy"), PoolCard)
    return network_base(model.card, model.weights, params.pool_scenario(row.scenario))
