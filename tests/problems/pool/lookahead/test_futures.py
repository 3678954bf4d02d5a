"""Ways to play on: a job is liked as much more all the time, and the plan is no worse than the best of its ways."""

import numpy as np
import pytest
import torch
from builders import REPOSITORY, observation

from pipeline.core.config import Mlp, Params
from pipeline.core.types import CompiledRule, FloatArray, IntArray, Observation, Policy, legal_actions
from pipeline.learning.stored import weights_of
from pipeline.lookahead.planner import Base, Liking, SearchBudget
from pipeline.problems.pool.agents.networks.network import greedy
from pipeline.problems.pool.agents.networks.networks import PoolNetwork, build, card_of
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.workload.source import source
from pipeline.problems.pool.lookahead.futures import Ways, arrival_model, draws_of, stirred
from pipeline.problems.pool.lookahead.naming import network_base, planned
from pipeline.problems.pool.lookahead.search import PoolPlanner, PoolSearch

OFFLINE = Cluster((4,), 8, 10, 0, False, stall=20, arrivals_end=1)
NETWORK = Mlp(name="mlp", hidden=8, clock=False)
FUTURE = [[JobSet(np.zeros(2, dtype=np.int64), np.array([3, 1]), np.ones((2, 1), dtype=np.int64))]]


def drawn(seed: int, last: int = 0) -> JobSet:
    """Ten jobs of which no two are alike."""
    kind = np.random.default_rng(seed).permutation(16)[:10]
    arrival = np.zeros(10, dtype=np.int64)
    arrival[-1] = last
    return JobSet(arrival, np.array([1, 2, 3, 7])[kind // 4], kind[:, None] % 4 + 1)


def network(seed: int) -> PoolNetwork:
    torch.manual_seed(seed)
    return build(NETWORK, OFFLINE, seed)


def liking(scorer: PoolNetwork) -> Liking:
    forward = scorer.frozen()
    return lambda view: np.where(legal_actions(view), 3.0 * forward(scorer.encode(view)), -np.inf)


def way(of: Liking, draw: float) -> Policy:
    return lambda view, _: stirred(of)(view, np.full(len(view.now), draw))


def total(results: dict[str, object], name: str) -> FloatArray:
    return np.asarray(results[name].jobsets["mean_slowdown"])  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_plan_that_tries_every_action_is_no_worse_than_the_best_of_its_ways(seed: int) -> None:
    likes, many = liking(network(seed)), 6
    base, budget = Base(greedy(network(seed), masked=True), Ways(likes), likes), SearchBudget(11, many, 1_000, 200_000)
    plan = PoolPlanner(PoolSearch(base, OFFLINE, arrival_model(FUTURE, False, 1), budget))
    policies: dict[str, Policy] = {str(k): way(likes, draw) for k, draw in enumerate(draws_of(many))}
    results = score(policies | {"plan": plan}, {100: [drawn(k) for k in range(30)]}, OFFLINE, 500, seed=1)
    ways = np.stack([waiting(results, str(k)) for k in range(many)])
    assert (waiting(results, "plan") <= ways.min(axis=0)).all()
    assert (waiting(results, "plan") < ways.min(axis=0)).any()
    assert (ways[1:] < ways[:1]).any()  # or one way would have done


def waiting(results: dict[str, object], name: str) -> IntArray:
    """What the planner minimises: steps that jobs wait, in shares of their durations, summed per jobset."""
    table = results[name].jobs  # type: ignore[attr-defined]
    return np.asarray(table.groupby("jobset")["slowdown"].sum())


def test_the_first_way_is_the_network_as_it_is() -> None:
    view = observation([5, 3, 5, 0, 3], demand=[[1], [1], [1], [0], [2]], free=[[3]] * 8)

    def likes(shown: Observation) -> FloatArray:
        return np.tile([1.0, 3.0, 2.0, -np.inf, 0.0, 2.5], (len(shown.now), 1))

    assert stirred(likes)(view, np.zeros(1)).tolist() == [1]
    assert draws_of(5)[0] == 0.0
    assert len(set(draws_of(500))) == 500
    chosen = {int(stirred(likes)(view, np.array([draw]))[0]) for draw in draws_of(200)}
    assert chosen == {1, 2, 4, 5}  # not the one that is not allowed; and of two alike the one that is liked more


def any_job(view: Observation) -> FloatArray:
    """Like every job alike, and void not at all."""
    jobs = np.zeros((len(view.now), view.duration.shape[1]))
    return np.concatenate([jobs, np.full((len(jobs), 1), -np.inf)], axis=1)


def test_a_job_is_liked_as_much_more_wherever_it_stands() -> None:
    """All else being equal, the order of two jobs is the same in whatever slot and company they are met."""
    draws = draws_of(40)[1:]

    def liked(*duration: int) -> IntArray:
        """The duration of the job that each way takes."""
        view = observation(list(duration), demand=[[1]] * len(duration), free=[[3]] * 8)
        many = Observation._make(np.repeat(part, len(draws), axis=0) for part in view)
        return np.array(duration)[stirred(any_job)(many, draws)]

    first = liked(5, 3)
    assert {3, 5} == set(first)
    np.testing.assert_array_equal(first, liked(3, 5))
    among = liked(5, 3, 9)
    np.testing.assert_array_equal(among[among != 9], first[among != 9])
    assert (among == 9).any()


def test_where_jobs_come_it_is_not_stirred_and_the_mean_counts() -> None:
    likes = liking(network(4))
    futures = arrival_model([[drawn(k, last=9) for k in range(3)]], False, 10)
    cluster, budget = OFFLINE._replace(arrivals_end=10), SearchBudget(12, 3, 50, 200_000)
    one, other = (
        PoolPlanner(PoolSearch(Base(greedy(network(4), masked=True), player, likes), cluster, futures, budget))
        for player in (Ways(likes), way(likes, 0.0))
    )
    results = score({"one": one, "other": other}, {100: [drawn(k, last=9) for k in range(10)]}, cluster, 500, seed=1)
    np.testing.assert_array_equal(total(results, "one"), total(results, "other"))


@pytest.mark.parametrize(("agent", "times"), [("deeprm_off", 1), ("deeprm3_off", 50)])  # its first scores are small
def test_a_stored_network_plays_on_in_ways_where_all_jobs_are_known(params: Params, agent: str, times: int) -> None:
    row = params.pool_scenario("offline")
    cluster = Cluster.of(row)
    card = card_of(params, agent)
    weights = {name: times * value for name, value in weights_of(build(card.network, cluster, 3)).items()}
    base = network_base(card, weights, row)
    assert isinstance(base.player, Ways)
    plan = planned(params, "offline", cluster, base, SearchBudget(3, 8, 1_000, 200_000))
    origin, rows = source(params, "offline", REPOSITORY), np.arange(4)
    view, none = Batched(batch([origin.fresh(100, 7 + k) for k in rows]), cluster, 500).observe(rows), np.zeros(4)
    own, unstirred = base.policy(view, none), stirred(base.player.liking)
    assert unstirred(view, none).tolist() == own.tolist()
    looked = plan.asked(view, none)
    assert set(looked.values.futures[looked.action >= 0]) == {8}
    assert not looked.values.error.any()  # ways: of futures some differ
    one = planned(params, "offline", cluster, base, SearchBudget(3, 1, 1_000, 200_000)).asked(view, none)
    assert (looked.values.cost <= one.values.cost).all()
    assert (looked.values.cost < one.values.cost).any()
    stream = planned(params, "offline", cluster._replace(arrivals_end=None), base, SearchBudget(12, 2, 20, 200_000))
    ways = [looking.search.best_way for looking in (plan, stream)]  # type: ignore[attr-defined]
    assert ways == [True, False]


def test_while_jobs_arrive_scores_play_on_compiled(params: Params) -> None:
    row, card = params.pool_scenario("streams"), card_of(params, "deeprm3")
    base = network_base(card, weights_of(build(card.network, Cluster.of(row), 3)), row)
    assert isinstance(base.player, CompiledRule)


def test_jobs_behind_the_slots_are_not_known() -> None:
    futures = arrival_model([[drawn(1)]], False, 1)
    assert futures.known(10)
    assert not futures.known(9)
    assert not arrival_model([[drawn(1, last=3)]], False, 10).known(10)
    assert not arrival_model([[drawn(1)]], True, 10).known(10)  # of a stream, jobs of the next step
