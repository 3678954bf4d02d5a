"""Policies of a pooled cluster that decide for a live one: heuristics, networks, planners, and those made elsewhere."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from pipeline import storage
from pipeline.config import Params, PoolCard, PoolScenario, Sets
from pipeline.core import FloatArray, Observation
from pipeline.external.loading import external, is_external
from pipeline.live.deciding import ONLY, Answer, Decider, LivePolicy, RefusedError, acting, heuristic, network
from pipeline.lookahead.planner import PREFIX
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.heuristics.tuning import heuristics_with
from pipeline.problems.pool.live.cluster import PoolNow, episode_of
from pipeline.problems.pool.live.state import PoolDecision, PoolStart, PoolState
from pipeline.problems.pool.lookahead.naming import network_base, plain_base, planned
from pipeline.problems.pool.lookahead.search import PoolPlanner
from pipeline.problems.pool.nouns import Cluster

PoolPolicy = LivePolicy[PoolNow]


def decider(
    params: Params, scenario: str, name: str, tuned: Mapping[str, float]
) -> Decider[PoolState, PoolNow, PoolDecision]:
    """Return what decides as a policy does: a heuristic, `plan_` before one, or a model's folder.

    Raises:
        UserError: there is none, or it is a model that was trained for another cluster.
    """
    row = params.pool_scenario(scenario)
    cluster = Cluster.of(row)._replace(arrivals_end=None)
    read = partial(episode_of, own=row.resources, cluster=cluster)
    policy = policy_by_name(params, scenario, cluster, name, tuned)
    return Decider(read, policy, worded, np.random.default_rng(params.seed))


def worded(now: PoolNow, answer: Answer) -> PoolDecision:
    """Return an answer with jobs by their names."""
    start = now.simulator.played(ONLY).start[-len(now.ids) :] + min(now.state.now, 0)
    starts = tuple(PoolStart(job=now.ids[job], at=int(start[job])) for job in answer.starts)
    return PoolDecision(order=answer.order, starts=starts, never=now.never, more=answer.more)


def policy_by_name(
    params: Params, scenario: str, cluster: Cluster, name: str, tuned: Mapping[str, float]
) -> PoolPolicy:
    """Return a policy by its name; raise what `decider` does."""
    row = params.pool_scenario(scenario)
    if Path(name).is_dir():
        return _network(Path(name), row)
    if is_external(name):
        return acting(external(name, row))
    base = name.removeprefix(PREFIX)
    if name != base and Path(base).is_dir():
        model = storage.read_model(Path(base), PoolCard)
        known, alone = network_base(model.card, model.weights, row), _network(Path(base), row)
        return _planner(planned(params, scenario, cluster, known), row, alone.must_know)
    if base not in HEURISTICS:
        raise storage.unknown_policy(name, HEURISTICS)
    policy = heuristics_with(tuned)[base]
    if name == base:
        return heuristic(policy)
    return _planner(planned(params, scenario, cluster, plain_base(policy)), row, lambda now: None)


def _planner(plan: PoolPlanner, row: PoolScenario, base_knows: Callable[[PoolNow], None]) -> PoolPolicy:
    """Return a policy that looks ahead; the score of an action is its mean cost, below 0."""

    def asked(view: Observation, draws: FloatArray) -> tuple[FloatArray, int]:
        found = plan.asked(view, draws)
        tried = found.action[0][found.action[0] >= 0]
        scores = np.full(view.duration.shape[1] + 1, -np.inf)
        scores[tried] = 0.0 - found.values.cost[0, : len(tried)]
        return scores[:-1], int(found.chosen[0])

    def must_know(now: PoolNow) -> None:
        if now.state.arrivals_end is not None:
            raise RefusedError("it looks ahead as if arrivals went on: leave 'arrivals_end' out")
        _same_cluster(now, row)
        _so_far(now)
        base_knows(now)

    return LivePolicy(asked, must_know)


def _network(folder: Path, row: PoolScenario) -> PoolPolicy:
    from pipeline.problems.pool.networks.loading import must_match, restore  # torch: seconds that others do without

    model = storage.read_model(folder, PoolCard)
    card = model.card
    must_match(card, row)
    scorer, any_size = restore(card, model.weights).scorer, isinstance(card.network, Sets)

    def must_know(now: PoolNow) -> None:
        _same_cluster(now, row, any_size)
        if any_size:
            _so_far(now)
        if not 0 <= now.state.now <= row.step_limit:
            raise RefusedError(f"trained for {row.step_limit} steps from 0 on; now is {now.state.now}")

    return network(scorer.encode, scorer.frozen(), card, must_know, card.masked)


def _same_cluster(now: PoolNow, row: PoolScenario, any_size: bool = False) -> None:
    """Refuse a cluster of other resources or, where that matters, of another size."""
    own, here = tuple(row.resources), now.resources
    if own != here:
        raise RefusedError(f"made for resources {', '.join(own)}; here: {', '.join(here)}")
    units = tuple(row.resources.values())
    if units != now.cluster.capacity and not any_size:
        raise RefusedError(f"made for units {units}; here: {now.cluster.capacity}")


def _so_far(now: PoolNow) -> None:
    if now.state.so_far is None:
        raise RefusedError("expected 'so_far', the jobs that arrived since step 0, by which it knows the load")
    if now.state.now < 0:
        raise RefusedError(f"'so_far' counts from step 0; now is {now.state.now}")
