"""Networks of many machines that look ahead: copies that are asked are those of a compiled rule, no future is known."""

from functools import partial

import numpy as np
import pytest
from machine_builders import random_problem
from machine_learning import ONE, some_jobs, untrained

from pipeline.core.types import CompiledRule, IntArray, Observation, keys
from pipeline.lookahead.planner import Base, Planner, SearchBudget
from pipeline.problems.machines.agents.networks.actor_critic import DeepSets
from pipeline.problems.machines.agents.networks.features import features
from pipeline.problems.machines.agents.networks.loading import compiled, forward, greedy
from pipeline.problems.machines.env.evaluation.play import play_on
from pipeline.problems.machines.env.nouns import DISPATCH, Jobs, Machines, end_to_end
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.lookahead import search
from pipeline.problems.machines.lookahead.futures import ArrivalModel, arrival_model
from pipeline.problems.machines.lookahead.plans import USUAL
from pipeline.problems.machines.lookahead.search import MachinesSearch, PolicyPlayer, liked
from pipeline.simulation.rollout import Turn, compiled_rule_of, play_turns

TWO = Machines(np.array([[4000, 8000], [2000, 4000]]), np.array([0, 0]), 4, DISPATCH.index("greedy"), np.inf, np.inf)
BUDGET = SearchBudget(candidates=4, futures=3, ahead=5, decisions=200_000)


def network_of(seed: int = 5, consistent: bool = False) -> Base[CompiledRule | PolicyPlayer]:
    """A network whose actions are far from equally likely; compiled if its output does not depend on the batch."""
    network = untrained(seed=seed)
    assert isinstance(network, DeepSets)
    scores = compiled(network) if consistent else partial(forward, network)
    policy = greedy(network, scores)

    def likes(view: Observation) -> np.ndarray:
        observed = features(view, network.shape)
        return np.where(observed.may, scores(observed), -np.inf)

    return Base(policy, PolicyPlayer(policy, consistent), likes)


def simulator_of(episodes: list[Jobs], machines: Machines) -> Simulator:
    jobs = end_to_end(episodes)
    return Simulator(jobs, machines, np.zeros(len(jobs.arrival)))


def starts(episodes: list[Jobs], machines: Machines, policy: object) -> np.ndarray:
    simulator, number = simulator_of(episodes, machines), np.arange(len(episodes))
    for _ in play_on(simulator, policy, keys(1, number, np.zeros_like(number))):  # type: ignore[arg-type]
        pass
    return simulator.placed().start


def planner(base: Base[CompiledRule | PolicyPlayer], past: list[Jobs], budget: SearchBudget) -> Planner:
    return Planner(MachinesSearch(base, arrival_model(past), budget))


@pytest.mark.slow
@pytest.mark.parametrize("dispatch", DISPATCH)
@pytest.mark.parametrize("rule", ["sjf", "saf", "tetris"])
def test_a_rule_as_a_policy_has_the_costs_of_its_compiled_self(
    dispatch: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LISTED", ())  # move by move: a list looks beyond the slots
    rng, several, policy = np.random.default_rng(6), 0, HEURISTICS[rule]
    own = compiled_rule_of(policy)
    assert own is not None
    for _ in range(4):
        problem = random_problem(rng, DISPATCH.index(dispatch), 3)
        machines = problem.machines._replace(time_limit=np.inf)
        if max(len(jobs.arrival) for jobs in problem.episodes) < 6:
            continue
        past, number = arrival_model(problem.episodes), np.arange(len(problem.episodes))

        def tried(turn: Turn, past: ArrivalModel = past) -> IntArray:
            """Costs of a rule's candidates, compiled and by the equal policy."""
            nonlocal several
            for decisions in (100_000, 60):
                budget = SearchBudget(6, 3, 3, decisions)
                ways = [MachinesSearch(Base(policy, player), past, budget) for player in (own, PolicyPlayer(policy))]
                action = ways[0].candidates(turn)
                found = [way.costs(turn, action) for way in ways]
                np.testing.assert_array_equal(*found)
                several += int(np.nanmax(found[0], initial=0.0) > 0)
            return policy(turn.view, turn.draws)

        for _ in play_turns(simulator_of(problem.episodes, machines), tried, keys(1, number, np.zeros_like(number))):
            pass
    assert several > 5


def test_its_own_comes_first_then_the_best_liked_and_one_of_each_kind() -> None:
    jobs = some_jobs(100, 3, 8)
    jobs = jobs._replace(
        arrival=np.zeros(8), duration=np.array([5.0, 2, 5, 3] * 2), estimate=np.array([5.0, 2, 5, 3] * 2)
    )
    jobs.demand[:] = 500
    view = simulator_of([jobs], TWO).observe(np.array([0]))
    likes = np.array([[1.0, 9.0, 4.0, 3.0, 8.0, 2.0, 0.0, 7.0, 5.0]])
    assert liked(view, np.array([2]), likes, 9).tolist() == [[2, 1, 7, 8, -1]]  # the third job is as the first
    assert liked(view, np.array([8]), likes, 3).tolist() == [[8, 1, 7]]
    likes[0, :2] = -np.inf
    assert liked(view, np.array([8]), likes, 9).tolist() == [[8, 4, 7, 2, -1]]


@pytest.mark.parametrize("dispatch", ["greedy", "easy"])
def test_a_network_that_may_try_nothing_does_what_it_does_without_the_planner(dispatch: str) -> None:
    machines, base = TWO._replace(dispatch=DISPATCH.index(dispatch)), network_of()
    episodes = [some_jobs(100, k, 12) for k in range(3)]
    plan = planner(base, episodes, USUAL._replace(ahead=2, decisions=0))
    np.testing.assert_array_equal(starts(episodes, machines, plan), starts(episodes, machines, base.policy))


@pytest.mark.parametrize("machines", [TWO, ONE], ids=["two", "one"])
def test_all_known_and_nothing_to_come_it_is_never_worse_than_the_network(machines: Machines) -> None:
    episodes = [some_jobs(100, k, 8)._replace(arrival=np.zeros(8)) for k in range(8)]
    machines = machines._replace(slots=8, pause=np.inf, time_limit=np.inf)
    base = network_of()
    plan = planner(base, episodes, USUAL._replace(candidates=9, futures=1, ahead=0, sure=0.0))
    means = []
    for policy in (base.policy, plan):
        begun = starts(episodes, machines, policy).reshape(8, 8)
        run = np.stack([jobs.duration for jobs in episodes])
        means.append(np.maximum((begun + run) / np.maximum(run, 10.0), 1.0).mean(axis=1))
    assert (means[0] - means[1]).min() > -1e-9
    assert (means[0] - means[1]).max() > 0.1


def test_what_comes_later_and_how_long_jobs_really_run_changes_no_decision_of_a_network() -> None:
    base, now = network_of(), 25.0
    before = some_jobs(100, 9, 60)
    before = before._replace(estimate=before.duration * np.random.default_rng(2).uniform(0.3, 1.2, 60))
    plan = planner(base, [before], BUDGET)
    jobs = some_jobs(100, 4, 40)
    played = starts([jobs], TWO, plan)
    known = jobs.arrival <= now
    over = played + jobs.duration <= now
    other = jobs._replace(
        arrival=np.where(known, jobs.arrival, jobs.arrival + 7.0),
        duration=np.where(over, jobs.duration, 90.0 - jobs.duration),  # who ends first ends last
        estimate=np.where(known, jobs.estimate, 9.0),
    )
    found = [np.where(start < now, start, np.inf) for start in (played, starts([other], TWO, plan))]
    assert np.isfinite(found[0]).sum() > 5
    np.testing.assert_array_equal(*found)
    unplanned = starts([jobs], TWO, base.policy)
    assert (np.where(unplanned < now, unplanned, np.inf) != found[0]).any()  # it did decide


@pytest.mark.parametrize("consistent", [False, True])
def test_the_same_jobs_give_the_same_schedule_in_any_company(consistent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "POLICY_COPIES", 40)  # decisions in groups of three
    episodes = [some_jobs(100, k, 12) for k in range(8)]
    plan = planner(network_of(consistent=consistent), episodes, BUDGET)
    together = starts(episodes, TWO, plan)
    np.testing.assert_array_equal(together, starts(episodes, TWO, plan))
    np.testing.assert_array_equal(together[:12], starts(episodes[:1], TWO, plan))
