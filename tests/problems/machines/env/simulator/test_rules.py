"""Every compiled rule of the event-driven problem plays the schedule that its heuristic plays, asked move by move."""

import numpy as np
import pytest
from machine_builders import Problem, jobs_of, parts, random_problem

from pipeline.core.types import CompiledRule, IntArray, Observation, keys
from pipeline.problems.machines.env.nouns import BLOCKING, DISPATCH, GREEDY, Jobs, Machines, Placed
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.env.simulator.rules import RULES, players
from pipeline.simulation.rollout import Heuristic, compiled_rule_of, play, play_together
from tests.oracles.machines_heuristics import HEURISTICS, PEERS, with_mix

CLOSE = 1e-9  # sums of many intervals, taken in another order
MIXED = with_mix(0.7, 0.1)
POLICIES = [policy for policy in (*HEURISTICS.values(), *PEERS.values(), MIXED) if isinstance(policy, Heuristic)]


def rules_of(policies: list[Heuristic]) -> list[CompiledRule]:
    return [rule for rule in map(compiled_rule_of, policies) if rule is not None]


def key_of(problem: Problem) -> np.ndarray:
    number = np.arange(len(problem.episodes))
    return keys(3, number, np.zeros_like(number))


def by_rules(problem: Problem, most: int) -> Simulator:
    """Play the episodes once by each rule, all in one batch and for at most so many decisions at once."""
    simulator = problem.compiled(times=len(POLICIES))
    rules = [rule for rule in rules_of(POLICIES) for _ in problem.episodes]
    who = players(rules, np.tile(key_of(problem), len(POLICIES)))
    while len(rows := simulator.rows):
        simulator.play(rows, who, most)
    return simulator


def of_policy(placed: Placed, problem: Problem, number: int) -> Placed:
    """Cut out of all what one policy did, of those that played the episodes one after the other."""
    jobs, episodes = sum(len(one.arrival) for one in problem.episodes), len(problem.episodes)
    one, whole = slice(number * jobs, (number + 1) * jobs), slice(number * episodes, (number + 1) * episodes)
    return Placed(placed.start[one], placed.finish[one], placed.machine[one], placed.end[whole], placed.busy[whole])


def assert_same(problem: Problem, policy: Heuristic, compiled: Placed, cost: np.ndarray) -> None:
    """Ask the heuristic move by move, in the compiled simulator and in the plain one."""
    batched = problem.compiled()
    play(batched, policy, key_of(problem))
    for one, other in zip(batched.placed(), compiled, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=str(policy.rule))
    for b, (plain, mine) in enumerate(zip(problem.plain(), parts(problem.episodes), strict=True)):
        play(plain, policy, key_of(problem)[b : b + 1])
        assert jobs_of(plain.placed(), slice(None)) == jobs_of(compiled, mine), policy.rule
        assert plain.placed().end[0] == compiled.end[b]
        assert plain.placed().busy[0] == pytest.approx(compiled.busy[b], rel=CLOSE)
        assert plain.cost == pytest.approx(cost[b], rel=CLOSE)


def test_every_rule_is_that_of_a_heuristic() -> None:
    assert {rule.rule for rule in rules_of(POLICIES)} == set(RULES)
    assert len(rules_of(POLICIES)) == len(RULES) + 1  # one of them twice


@pytest.mark.parametrize("whole_times", [True, False])
@pytest.mark.parametrize("number", [1, 3, 6])
@pytest.mark.parametrize("dispatch", range(len(DISPATCH)), ids=DISPATCH)
def test_a_rule_plays_the_schedule_of_its_heuristic(dispatch: int, number: int, whole_times: bool) -> None:
    problem = random_problem(np.random.default_rng([0, dispatch, number, 7]), dispatch, number, whole_times)
    compiled = by_rules(problem, most=5)
    episodes = len(problem.episodes)
    for place, policy in enumerate(POLICIES):
        cost = -compiled.gained[place * episodes : (place + 1) * episodes]
        assert_same(problem, policy, of_policy(compiled.placed(), problem, place), cost)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.rule.rule)
@pytest.mark.parametrize("dispatch", [GREEDY, BLOCKING], ids=["greedy", "blocking"])
def test_a_rule_decides_as_its_heuristic_does_on_what_it_meets(policy: Heuristic, dispatch: int) -> None:
    problem = random_problem(np.random.default_rng([5, dispatch]), dispatch, 3)
    simulator = problem.compiled()
    who = players(rules_of([policy]) * len(problem.episodes), key_of(problem))

    def compare(rows: IntArray, view: Observation, actions: IntArray) -> None:
        assert simulator.decide(rows, who).tolist() == actions.tolist()

    play(simulator, policy, key_of(problem), compare)
    assert not len(simulator.rows)


def test_policies_play_together_as_each_does_alone() -> None:
    problem = random_problem(np.random.default_rng(11), GREEDY, 3)
    episodes = len(problem.episodes)
    together = problem.compiled(times=len(POLICIES))
    whose = np.repeat(np.arange(len(POLICIES)), episodes)
    for _ in play_together(together, POLICIES, whose, np.tile(key_of(problem), len(POLICIES))):
        pass
    for one, other in zip(together.placed(), by_rules(problem, most=1000).placed(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_smallest_area_takes_a_resource_that_no_machine_has_for_nothing() -> None:
    """Areas are 4 * 1 / 2 = 2, 1 * 2 / 2 = 1 and 3 * 1 / 2 = 1.5 of CPU; nobody wants or has a GPU."""
    machines = Machines(np.array([[2000, 0]]), np.array([0]), 3, GREEDY, 1.0, np.inf)
    demand, ones = np.array([[1000, 0], [2000, 0], [1000, 0]]), np.ones(3, dtype=np.int64)
    duration = np.array([4.0, 1.0, 3.0])
    problem = Problem(machines, [Jobs(np.zeros(3), duration, duration, demand, ones, ones.astype(np.uint64))], [ones])
    simulator = problem.compiled()
    play(simulator, HEURISTICS["saf"], key_of(problem))
    assert simulator.placed().start.tolist() == by_rule(problem, "saf").start.tolist() == [1.0, 0.0, 1.0]


def by_rule(problem: Problem, rule: str) -> Placed:
    simulator = problem.compiled()
    who = players([CompiledRule(rule)] * len(problem.episodes), key_of(problem))
    while len(simulator.rows):
        simulator.play(simulator.rows, who, 100)
    return simulator.placed()


def test_a_random_placement_has_the_draw_of_its_episode_in_any_company() -> None:
    problem = random_problem(np.random.default_rng(2), GREEDY, 6)
    first = by_rule(problem, "random_placement")
    alone = by_rule(
        problem._replace(episodes=problem.episodes[:1], unit_costs=problem.unit_costs[:1]), "random_placement"
    )
    mine = parts(problem.episodes)[0]
    assert jobs_of(first, mine) == jobs_of(alone, slice(None))
