"""A heuristic that looks ahead: which actions it tries, what it knows, and that it is better where that is plain."""

import numpy as np
import pytest
from builders import observation

from pipeline.core.config import Params
from pipeline.core.types import CompiledRule, Observation, Policy
from pipeline.lookahead.planner import Base
from pipeline.problems.pool.agents.networks.networks import card_of
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.score_rule import COUNT
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.lookahead.futures import arrival_model
from pipeline.problems.pool.lookahead.naming import WHOLE, network_base, plain_base, planned
from pipeline.problems.pool.lookahead.search import PoolPlanner, PoolSearch, candidates
from pipeline.simulation.rollout import Turn

ONE = Cluster((1,), 20, 4, 4, False, stall=20, arrivals_end=30)


def jobs(*rows: tuple[int, int]) -> JobSet:
    """Jobs (arrival, duration) that each take the whole of one unit."""
    arrival, duration = np.array(rows).T
    return JobSet(arrival, duration, np.ones((len(rows), 1), dtype=np.int64))


def planner(base: str, *futures: JobSet, cluster: Cluster = ONE) -> PoolPlanner:
    arrivals, budget = arrival_model([list(futures)], False, 30), WHOLE._replace(ahead=200, futures=32)
    return PoolPlanner(PoolSearch(plain_base(HEURISTICS[base]), cluster, arrivals, budget))


def first_view(jobset: JobSet, cluster: Cluster = ONE) -> Observation:
    return Batched(batch([jobset]), cluster, 500).observe(np.array([0]))


def test_its_base_comes_first_then_void_and_one_of_each_size() -> None:
    view = observation([5, 3, 5, 0, 3], demand=[[1], [1], [1], [0], [2]], free=[[3]] * 8)
    assert candidates(view, np.array([2]), most=9).tolist() == [[2, 5, 0, 1, 4, -1]]
    assert candidates(view, np.array([2]), most=3).tolist() == [[2, 5, 0]]


def test_a_long_job_waits_for_short_ones_that_are_sure_to_come() -> None:
    view, draws = first_view(jobs((0, 15))), np.zeros(1)
    coming = jobs((0, 15), (1, 1), (2, 1), (3, 1), (4, 1))
    assert HEURISTICS["sjf"](view, draws).tolist() == [0]
    assert planner("sjf", coming)(view, draws).tolist() == [ONE.slots]
    assert planner("sjf", jobs((0, 15)))(view, draws).tolist() == [0]


def test_what_comes_later_changes_no_decision() -> None:
    now, later = jobs((0, 15), (0, 2)), jobs((0, 15), (0, 2), (1, 1), (2, 1), (9, 4))
    plan, draws = planner("sjf", jobs((1, 1), (4, 3)), jobs((2, 9))), np.zeros(1)
    for _ in range(2):
        assert plan(first_view(now), draws).tolist() == plan(first_view(later), draws).tolist()


def test_the_load_is_told_by_how_many_jobs_have_come() -> None:
    few, many = [jobs((3, 1))] * 2, [jobs(*((k, 1) for k in range(9)))] * 2
    seen = arrival_model([few, many], False, 10)
    likely = seen.likely(np.array([0, 8, 8]), np.array([0.0, 1.0, 9.0]), np.full(3, np.nan))
    assert likely[0, 0] > 0.6
    assert likely[1, 0] > 0.9
    assert likely[2, 1] > 0.9
    assert np.allclose(likely.sum(axis=1), 1)
    chosen = seen.chosen(np.array([[0.25, 0.75]]), 64)
    assert abs(int((chosen >= 2).sum()) - 48) <= 1


def test_a_load_that_policies_know_is_not_guessed() -> None:
    few, many = (
        [one._replace(load=load) for one in group] for group, load in (([jobs((3, 1))], 10.0), ([jobs((4, 1))], 90.0))
    )
    seen, known = arrival_model([few, many], False, 10), np.array([90.0, 30.0, np.nan])
    likely = seen.likely(np.zeros(3, dtype=np.int64), np.zeros(3), known)
    assert likely[:2].tolist() == [[0.0, 1.0], [1.0, 0.0]]  # 30 is nearer to 10 than to 90
    assert likely[2].min() > 0.4
    without = arrival_model([[jobs((3, 1))], [jobs((4, 1))]], False, 10)  # futures of unknown loads say nothing of one
    assert without.likely(np.zeros(3, dtype=np.int64), np.zeros(3), known).min() > 0.4


def test_it_is_better_than_its_base_on_jobsets_of_the_same_kind() -> None:
    rng = np.random.default_rng(5)

    def draw() -> JobSet:
        arrival = np.flatnonzero(rng.random(30) < 0.25)
        return jobs(*((int(step), int(rng.choice([1, 2, 12], p=[0.5, 0.3, 0.2]))) for step in [0, *arrival]))

    plan = planner("sjf", *(draw() for _ in range(32)))
    policies: dict[str, Policy] = {"sjf": HEURISTICS["sjf"], "plan_sjf": plan}
    results = score(policies, {90: [draw() for _ in range(200)]}, ONE, 500, seed=1)
    difference = results["plan_sjf"].jobsets["mean_slowdown"] - results["sjf"].jobsets["mean_slowdown"].to_numpy()
    assert difference.mean() + 2 * difference.std() / 200**0.5 < 0


@pytest.mark.parametrize("scenario", ["online", "streams", "offline"])
def test_every_kind_of_scenario_has_an_outlook(params: Params, scenario: str) -> None:
    row = params.pool_scenario(scenario)
    cluster = Cluster.of(row)
    plan = planned(params, scenario, cluster, plain_base(HEURISTICS["hold"]))
    units = np.array([[cluster.capacity[0], 1]])
    jobset = JobSet(np.array([0, 0]), np.array([2, 12]), np.repeat(units, 2, axis=0))
    view = Batched(batch([jobset]), cluster, row.step_limit).observe(np.array([0]))
    assert plan(view, np.zeros(1))[0] in (0, cluster.slots)  # the short one, or nothing yet


def test_scores_compiled_count_what_has_arrived_as_they_do_when_asked(params: Params) -> None:
    online, rng = params.pool_scenario("online"), np.random.default_rng(3)
    weights = rng.normal(0, 1, COUNT)  # much of it about the jobs that have arrived
    base, cluster = network_base(card_of(params, "deeprm3"), {"weights": weights}, online), Cluster.of(online)
    assert isinstance(base.player, CompiledRule)
    drawn = [
        JobSet(np.sort(rng.integers(0, 50, 30)), rng.integers(1, 16, 30), rng.integers(1, 8, (30, 2)), load=load)
        for load in (70.0, None, None)
    ]
    played = Batched(batch(drawn), cluster, 500)
    for _ in range(25):  # each time a job may start
        view = played.observe(played.rows)
        played.step(played.rows, np.full(len(played.rows), cluster.slots))
    assert view.arrived[:, 0].min() > 5
    arrivals, budget = arrival_model([drawn], False, 50), WHOLE._replace(candidates=4, futures=6, ahead=200)
    rows, draws = np.arange(len(view.now)), np.zeros(len(view.now))
    turn = Turn(None, rows, view, draws, rows, rows.astype(np.uint64))
    action, found = candidates(view, base.policy(view, draws), 4), []
    for player in (base.player, base.policy):
        search = PoolSearch(Base(base.policy, player), cluster, arrivals, budget)
        found.append(search.values(turn, action))
    assert np.isfinite(found[0].cost).sum() > 4
    for compiled, asked in zip(*found, strict=True):
        assert np.allclose(compiled, asked)
