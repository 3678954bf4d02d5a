"""Policies that look ahead and are asked: a rule that is asked does what its compiled self does; no future is known."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import ONLY, observation, viewed, wander

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.types import Observation, legal_actions
from pipeline.errors import UserError
from pipeline.interactive.pool.policies import policy_for
from pipeline.learning.stored import weights_of
from pipeline.lookahead.planner import Base, SearchBudget
from pipeline.problems.pool.agents.networks.networks import build, card_of
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.lookahead import naming
from pipeline.problems.pool.lookahead.futures import arrival_model
from pipeline.problems.pool.lookahead.naming import network_base, planned
from pipeline.problems.pool.lookahead.search import Player, PoolPlanner, PoolSearch, candidates
from pipeline.simulation.rollout import compiled_rule_of

SHORT = Cluster((10, 10), 20, 4, 4, False, stall=20, arrivals_end=30)
BUDGET = SearchBudget(4, 6, ahead=60, decisions=200_000, left_job=4.0, left_work=2.5)


def drawn(seed: int, count: int = 30, steps: int = 30) -> JobSet:
    rng = np.random.default_rng(seed)
    arrival = np.sort(rng.integers(0, steps, count))
    arrival[:3] = 0
    duration = rng.choice([1, 2, 3, 12], count)
    return JobSet(arrival, duration, rng.integers(1, 9, (count, 2)))


def views(cluster: Cluster) -> Observation:
    """What is seen along random walks, where there is more than one action to take."""
    view = viewed(cluster, wander, episodes=8, jobs=24, seed=4)
    several = legal_actions(view).sum(axis=1) > 1
    return view.take(np.flatnonzero(several)[::3])


def planner(player: Player) -> PoolPlanner:
    """What improves SJF by looking ahead, played on by a player."""
    seen = arrival_model([[drawn(50 + k) for k in range(6)], [drawn(80 + k, 12) for k in range(6)]], False, 30)
    return PoolPlanner(PoolSearch(Base(HEURISTICS["sjf"], player), SHORT, seen, BUDGET))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, params: Params) -> Path:
    """A network that is drawn and not trained."""
    folder = tmp_path_factory.mktemp("stored")
    card = card_of(params, "deeprm")
    network = build(card.network, Cluster.of(params.pool_scenario("online")), seed=3)
    storage.write_model(folder, storage.Model(card, weights_of(network)))
    return folder


@pytest.fixture
def few_futures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner of networks that is done sooner."""
    monkeypatch.setattr(naming, "LEARNED", naming.LEARNED._replace(futures=4))


def test_a_rule_that_is_asked_brings_what_its_compiled_self_does() -> None:
    view, policy = views(SHORT).take(slice(20)), HEURISTICS["hold"]
    rule = compiled_rule_of(policy)
    assert rule is not None
    ours, plain = (planner(player) for player in (rule, policy))
    one, other = (plan.asked(view, np.zeros(len(view.now))).values.cost for plan in (ours, plain))
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_what_plays_on_knows_the_load_of_each_decision() -> None:
    view, known = views(SHORT).take(slice(6)), set()
    view = view._replace(load=np.array([70.0, 70.0, 70.0, 130.0, 130.0, 130.0]))

    def asked(shown: Observation, draws: np.ndarray) -> np.ndarray:
        known.update(shown.load.tolist())
        return HEURISTICS["sjf"](shown, draws)

    planner(asked).asked(view, np.zeros(6))
    assert known == {70.0, 130.0}


def test_what_the_network_likes_is_tried_first() -> None:
    view = observation([5, 3, 5, 0, 3], demand=[[1], [1], [1], [0], [2]], free=[[3]] * 8)
    liked = np.array([[0.0, 3.0, 9.0, 8.0, 1.0, 2.0]])
    assert candidates(view, np.array([2]), 9, liked).tolist() == [[2, 1, 5, 4, 0, -1]]
    assert candidates(view, np.array([2]), 3, liked).tolist() == [[2, 1, 5]]


@pytest.mark.usefixtures("few_futures")
def test_what_comes_later_changes_no_decision_of_a_network(params: Params, stored: Path) -> None:
    row = params.pool_scenario("online")
    cluster = Cluster.of(row)
    policy, masked = policy_for(params, f"plan_{stored}", row, "online", cluster)
    assert masked
    now, agree, moved = drawn(7, 40), 12, []
    later = now._replace(duration=np.where(now.arrival > agree, 1, now.duration))
    both = [Batched(batch([jobs]), cluster, 500, skip_forced=True) for jobs in (now, later)]
    while len(both[0].rows) and both[0].now[0] <= agree:
        actions = [policy(each.observe(ONLY), np.zeros(1)) for each in both]
        assert actions[0].tolist() == actions[1].tolist()
        moved.append(actions[0][0] != both[0].observe(ONLY).legal[0, :, 0].argmax())
        for each, action in zip(both, actions, strict=True):
            each.step(ONLY, action)
    assert len(moved) > 5


@pytest.mark.usefixtures("few_futures")
def test_the_same_bytes_come_twice_and_in_any_company(params: Params, stored: Path) -> None:
    row = params.pool_scenario("online")
    cluster = Cluster.of(row)
    jobsets, tables = [drawn(k, 6) for k in range(2)], []
    for group in (jobsets, jobsets, jobsets[:1]):
        policy, _ = policy_for(params, f"plan_{stored}", row, "online", cluster)
        found = score({"plan": policy}, {90: group}, cluster, 500, seed=1)["plan"]
        tables.append(found.jobsets)
    pd.testing.assert_frame_equal(tables[0], tables[1], check_exact=True)
    pd.testing.assert_frame_equal(tables[0].head(1), tables[2], check_exact=True)


@pytest.mark.parametrize("agent", ["deeprm", pytest.param("deeprm2", marks=pytest.mark.slow)])
def test_a_network_that_draws_images_looks_ahead_too(params: Params, agent: str) -> None:
    row, card = params.pool_scenario("online"), card_of(params, agent)
    cluster = Cluster.of(row)
    base = network_base(card, weights_of(build(card.network, cluster, seed=1)), row)
    plan = planned(params, "online", cluster, base, SearchBudget(candidates=3, futures=2, ahead=20, decisions=200_000))
    view = Batched(batch([drawn(3, 6)]), cluster, 500).observe(ONLY)
    assert legal_actions(view)[0, plan(view, np.zeros(1))[0]]


def test_a_network_of_another_cluster_cannot_look_ahead(params: Params) -> None:
    row = params.pool_scenario("online")
    card = card_of(params, "deeprm").model_copy(update={"slots": 3})
    with pytest.raises(UserError, match="trained with slots 3, the scenario has 10"):
        network_base(card, {}, row)
