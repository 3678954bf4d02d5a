"""Networks that look ahead: compiled roll-outs are those of a policy that is asked, and the future is not known."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from builders import ONLY, REPOSITORY, observation, viewed, wander
from set_learning import sets, with_gradient

from pipeline.config import Params
from pipeline.config import Sets as SetsConfig
from pipeline.core import IntArray, Observation, legal_actions
from pipeline.errors import UserError
from pipeline.learning.stored import weights_of
from pipeline.lookahead.planner import Base, SearchBudget
from pipeline.problems.pool.evaluation.play import score
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.lookahead.futures import arrival_model
from pipeline.problems.pool.lookahead.naming import network_base, planned
from pipeline.problems.pool.lookahead.search import ENDLESS, Player, PoolPlanner, PoolSearch, candidates
from pipeline.problems.pool.lookahead.set_trying import SetPlayer, try_with_network
from pipeline.problems.pool.networks.loading import card_of
from pipeline.problems.pool.networks.network import greedy
from pipeline.problems.pool.networks.networks import build
from pipeline.problems.pool.networks.relative import relative_buffer
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.policies import policy_for
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.state import Rules, State
from pipeline.problems.pool.simulator.compiled.trying import NEVER, Futures, Limits, Tried, buffer, seen
from pipeline.simulation.rollout import compiled_rule_of

STORED = REPOSITORY / "tests" / "data" / "sets"
SHORT = Cluster((10, 10), 20, 4, 4, False, stall=20, arrivals_end=30)
STREAM = SHORT._replace(arrivals_end=None)
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


def confident(**how: Any) -> Sets:
    """A network whose actions are far from equally likely."""
    network = sets(hidden=16, **how)
    with torch.no_grad():
        for layer in (network.score, network.direct, network.void):
            layer.weight *= 30.0
    return network


def planner(player: Player, network: Sets, cluster: Cluster, budget: SearchBudget = BUDGET) -> PoolPlanner:
    """What looks ahead with a network, played on by a player."""
    ends = cluster.arrivals_end is not None
    seen = arrival_model([[drawn(50 + k) for k in range(6)], [drawn(80 + k, 12) for k in range(6)]], not ends, 30)
    return PoolPlanner(PoolSearch(Base(greedy(network, masked=True), player), cluster, seen, budget))


@pytest.mark.parametrize("cluster", [SHORT, STREAM, SHORT._replace(place_ahead=True)], ids=["ends", "stream", "ahead"])
@pytest.mark.parametrize("decisions", [200_000, 150])
def test_compiled_roll_outs_are_those_of_the_network_that_is_asked(cluster: Cluster, decisions: int) -> None:
    network = confident(elapsed=True, ending=True)
    budget, view = BUDGET._replace(decisions=decisions), views(cluster)
    players: tuple[Player, Player] = (SetPlayer(network.compiled()), greedy(network, masked=True))
    compiled, asked = (planner(player, network, cluster, budget) for player in players)
    view = view.take(slice(20))
    ours, plain = (plan.asked(view, np.zeros(len(view.now))).values for plan in (compiled, asked))
    np.testing.assert_array_equal(ours.futures, plain.futures)
    np.testing.assert_allclose(ours.cost, plain.cost, rtol=1e-9)
    np.testing.assert_allclose(ours.error, plain.error, rtol=1e-6, atol=1e-9)
    assert (ours.futures.max(axis=1) == 6).all() == (decisions == 200_000)
    assert np.ptp(np.where(np.isfinite(ours.cost), ours.cost, ours.cost[:, :1]), axis=1).max() > 0


def test_it_plays_on_as_the_policy_does_decision_by_decision(params: Params) -> None:
    row, ours = params.pool_scenario("online"), drawn(8, 24)
    cluster = Cluster.of(row)._replace(slots=24)  # all jobs that wait are seen
    network = confident(elapsed=True, ending=True)
    card = card_of(with_gradient(params), "gradient").model_copy(update={"network": SIXTEEN})
    base = network_base(card, weights_of(network), row)
    assert isinstance(base.player, SetPlayer)
    simulator, decisions = Batched(batch([ours]), cluster, 500, skip_forced=True), []
    held = []
    while len(simulator.rows):
        view = simulator.observe(ONLY)
        action = base.policy(view, np.zeros(1))
        waits = np.flatnonzero(simulator._state.start < 0)
        decisions.append((waits, played_on(base.player, view, action, ours, cluster)))
        held.append(bool(action[0] == cluster.slots and view.fits_now.any()))
        simulator.step(ONLY, action)
    assert len(decisions) > 15
    assert any(held)
    for waits, found in decisions:
        assert found == starts(simulator._state, waits)


SIXTEEN = SetsConfig(name="sets", hidden=16, elapsed=True, ending=True)


def starts(s: State, some: IntArray) -> list[tuple[int, ...]]:
    """Of some jobs: duration and demand, when they arrived, and when they start."""
    rows = zip(s.duration[some], s.demand[some], s.arrival[some], s.start[some], strict=True)
    return sorted((int(duration), *map(int, demand), int(came), int(begun)) for duration, demand, came, begun in rows)


def played_on(player: SetPlayer, view: Observation, action: IntArray, coming: JobSet, cluster: Cluster) -> Any:
    """When each job starts that waits or comes, as it is played on from an action."""
    flat = batch([coming])
    futures = Futures(flat.first, flat.arrival, flat.requested, flat.demand)
    s, observed = buffer(1, len(coming.arrival), cluster), relative_buffer(1, cluster.slots)
    rules = Rules(cluster.place_ahead, ENDLESS, 0, False, False, cluster.stalled_after, cluster.arrivals_end)
    tried = Tried(*np.zeros((3, 1, 1, 1)), np.zeros(1, dtype=np.int64))
    known, limits = np.ascontiguousarray(view.arrived), Limits(False, 10_000, 100_000)
    chosen = np.zeros((1, 1), dtype=np.int64)
    shown = seen(view, action[:, None])
    try_with_network(s, rules, shown, known, player.weights, observed, futures, chosen, limits, tried)
    return starts(s, np.flatnonzero(s.arrival < NEVER))


def test_a_rule_that_is_asked_brings_what_its_compiled_self_does() -> None:
    view, policy = views(SHORT).take(slice(20)), HEURISTICS["hold"]
    rule = compiled_rule_of(policy)
    assert rule is not None
    network = confident()
    ours, plain = (planner(player, network, SHORT) for player in (rule, policy))
    one, other = (plan.asked(view, np.zeros(len(view.now))).values.cost for plan in (ours, plain))
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_what_plays_on_knows_the_load_of_each_decision() -> None:
    view, known = views(SHORT).take(slice(6)), set()
    view = view._replace(load=np.array([70.0, 70.0, 70.0, 130.0, 130.0, 130.0]))

    def asked(shown: Observation, draws: np.ndarray) -> np.ndarray:
        known.update(shown.load.tolist())
        return HEURISTICS["sjf"](shown, draws)

    planner(asked, confident(), SHORT).asked(view, np.zeros(6))
    assert known == {70.0, 130.0}


def test_what_the_network_likes_is_tried_first() -> None:
    view = observation([5, 3, 5, 0, 3], demand=[[1], [1], [1], [0], [2]], free=[[3]] * 8)
    liked = np.array([[0.0, 3.0, 9.0, 8.0, 1.0, 2.0]])
    assert candidates(view, np.array([2]), 9, liked).tolist() == [[2, 1, 5, 4, 0, -1]]
    assert candidates(view, np.array([2]), 3, liked).tolist() == [[2, 1, 5]]


def test_what_comes_later_changes_no_decision_of_a_network(params: Params) -> None:
    row = params.pool_scenario("online")
    cluster = Cluster.of(row)
    policy, masked = policy_for(params, f"plan_{STORED}", row, "online", cluster)
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


def test_the_same_bytes_come_twice_and_in_any_company(params: Params) -> None:
    row = params.pool_scenario("online")
    cluster = Cluster.of(row)
    jobsets, tables = [drawn(k, 14) for k in range(3)], []
    for group in (jobsets, jobsets, jobsets[:2]):
        policy, _ = policy_for(params, f"plan_{STORED}", row, "online", cluster)
        found = score({"plan": policy}, {90: group}, cluster, 500, seed=1)["plan"]
        tables.append(found.jobsets)
    pd.testing.assert_frame_equal(tables[0], tables[1], check_exact=True)
    pd.testing.assert_frame_equal(tables[0].head(2), tables[2], check_exact=True)


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
