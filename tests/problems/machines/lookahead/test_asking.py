"""Networks of many machines that look ahead: copies that are asked are those of a compiled rule, no future is known."""

from functools import partial

import numpy as np
import pytest
from machine_builders import random_problem
from machine_learning import ONE, some_jobs, untrained

from pipeline.core import IntArray, Observation, keys
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.lookahead import planner
from pipeline.problems.machines.lookahead.asking import Asked, liked, try_asking
from pipeline.problems.machines.lookahead.futures import outlook
from pipeline.problems.machines.lookahead.planner import Planner, Reach, _Copies
from pipeline.problems.machines.lookahead.playing import play_on
from pipeline.problems.machines.lookahead.trying import Limits, Tries, list_candidates, try_moves
from pipeline.problems.machines.networks.acting import compiled, forward, greedy
from pipeline.problems.machines.networks.actor_critic import DeepSets
from pipeline.problems.machines.networks.features import features
from pipeline.problems.machines.nouns import DISPATCH, Jobs, Machines, end_to_end
from pipeline.problems.machines.simulator.compiled.batch import Simulator
from pipeline.problems.machines.simulator.compiled.state import State
from pipeline.simulation.choosing import compiled_rule_of

TWO = Machines(np.array([[4000, 8000], [2000, 4000]]), np.array([0, 0]), 4, DISPATCH.index("greedy"), np.inf, np.inf)
REACH = Reach(candidates=4, futures=3, jobs=5, sure=0.0)


def network_of(seed: int = 5, alike: bool = False) -> Asked:
    """A network whose actions are far from equally likely; compiled if it says the same in any company."""
    network = untrained(seed=seed)
    assert isinstance(network, DeepSets)
    scores = compiled(network) if alike else partial(forward, network)
    policy = greedy(network, scores)

    def likes(view: Observation) -> np.ndarray:
        observed = features(view, network.shape)
        return np.where(observed.may, scores(observed), -np.inf)

    return Asked(policy, policy, likes, alike)


def simulator_of(episodes: list[Jobs], machines: Machines) -> Simulator:
    jobs = end_to_end(episodes)
    return Simulator(jobs, machines, np.zeros(len(jobs.arrival)))


def starts(episodes: list[Jobs], machines: Machines, policy: object) -> np.ndarray:
    simulator, number = simulator_of(episodes, machines), np.arange(len(episodes))
    for _ in play_on(simulator, policy, keys(1, number, np.zeros_like(number))):  # type: ignore[arg-type]
        pass
    return simulator.placed().start


def costs(s: State, rows: IntArray, episodes: list[Jobs], machines: Machines, rule: str, decisions: int) -> list[Tries]:
    """What the candidates of a rule come to, played on by itself and by the policy that decides alike."""
    base, past, futures = compiled_rule_of(HEURISTICS[rule]), outlook(episodes), 3
    assert base is not None
    begin = np.zeros((len(rows), futures), dtype=np.int64) + np.arange(futures) % 2 + 1
    found, limits = [], Limits(3, decisions)
    for asked in (False, True):
        copies = _Copies(base, machines)
        copies.make_room(len(rows) * futures * 6, int((s.runs + s.waiting + s.behind).max()) + 3, int(s.nodes.max()))
        action, cost = np.empty((len(rows), 6), dtype=np.int64), np.full((len(rows), 6, futures), np.nan)
        tries = Tries(rows, begin, begin.astype(np.uint64), action, cost, copies.order, copies.score)
        list_candidates(copies.state, copies.rules, copies.who, s, past.coming, tries)
        if asked:
            try_asking(copies.state, copies.rules, HEURISTICS[rule], s, past.coming, tries, limits)
        else:
            try_moves(copies.state, copies.rules, copies.who, s, past.coming, tries, limits)
        found.append(tries)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("dispatch", DISPATCH)
@pytest.mark.parametrize("rule", ["sjf", "saf", "tetris"])
def test_a_rule_that_is_asked_brings_what_its_compiled_self_does(dispatch: str, rule: str) -> None:
    rng, several = np.random.default_rng(6), 0
    for _ in range(4):
        problem = random_problem(rng, DISPATCH.index(dispatch), 3)
        machines = problem.machines._replace(time_limit=np.inf)
        if max(len(jobs.arrival) for jobs in problem.episodes) < 6:
            continue
        simulator = simulator_of(problem.episodes, machines)
        while len(rows := simulator.rows):
            for decisions in (100_000, 60):
                found = costs(simulator._state, rows, problem.episodes, machines, rule, decisions)
                np.testing.assert_array_equal(found[0].action, found[1].action)
                np.testing.assert_array_equal(found[0].cost, found[1].cost)
                several += int(np.nanmax(found[0].cost, initial=0.0) > 0)
            simulator.step(rows, HEURISTICS[rule](simulator.observe(rows), np.zeros(len(rows))))
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
def test_a_network_that_may_try_nothing_does_what_it_does_alone(dispatch: str) -> None:
    machines, base = TWO._replace(dispatch=DISPATCH.index(dispatch)), network_of()
    episodes = [some_jobs(100, k, 12) for k in range(3)]
    plan = Planner(base, outlook(episodes), Reach(jobs=2, decisions=0))
    np.testing.assert_array_equal(starts(episodes, machines, plan), starts(episodes, machines, base.policy))


@pytest.mark.parametrize("machines", [TWO, ONE], ids=["two", "one"])
def test_all_known_and_nothing_to_come_it_is_never_worse_than_the_network(machines: Machines) -> None:
    episodes = [some_jobs(100, k, 8)._replace(arrival=np.zeros(8)) for k in range(8)]
    machines = machines._replace(slots=8, pause=np.inf, time_limit=np.inf)
    base = network_of()
    plan = Planner(base, outlook(episodes), Reach(candidates=9, futures=1, jobs=0, sure=0.0))
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
    plan = Planner(base, outlook([before]), REACH)
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
    alone = starts([jobs], TWO, base.policy)
    assert (np.where(alone < now, alone, np.inf) != found[0]).any()  # it did decide


@pytest.mark.parametrize("alike", [False, True])
def test_the_same_jobs_give_the_same_schedule_in_any_company(alike: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "ASKED", 40)  # decisions in groups of three
    episodes = [some_jobs(100, k, 12) for k in range(8)]
    plan = Planner(network_of(alike=alike), outlook(episodes), REACH)
    together = starts(episodes, TWO, plan)
    np.testing.assert_array_equal(together, starts(episodes, TWO, plan))
    np.testing.assert_array_equal(together[:12], starts(episodes[:1], TWO, plan))
