"""A heuristic of many machines that looks ahead: what it knows, and that it is better where that is plain."""

import numpy as np
import pytest
from machine_builders import random_problem

from pipeline.core.types import THOUSANDTHS, CompiledRule, keys
from pipeline.errors import UserError
from pipeline.lookahead.planner import Base, Planner, SearchBudget, SearchResult
from pipeline.problems.machines.env.evaluation.play import play_on
from pipeline.problems.machines.env.nouns import (
    BLOCKING,
    DISPATCH,
    EASY_WITHIN,
    Jobs,
    Machines,
    Placed,
    end_to_end,
)
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.lookahead import search
from pipeline.problems.machines.lookahead.futures import ArrivalModel, arrival_model
from pipeline.problems.machines.lookahead.plans import USUAL, planned
from pipeline.problems.machines.lookahead.search import MachinesSearch
from pipeline.simulation.rollout import Heuristic, Turn, compiled_rule_of

FOREVER = 1e15
ONLY = keys(1, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
pytestmark = pytest.mark.slow  # the planner of every dispatch compiles for minutes
ONE = Machines(np.array([[4 * THOUSANDTHS]]), np.zeros(1, dtype=np.int64), 64, BLOCKING, FOREVER, FOREVER)


def jobs_of(*rows: tuple[float, float, float, int]) -> Jobs:
    """Jobs (arrival, duration, estimate, processors) of a pool."""
    arrival, duration, estimate, processors = (np.array(column) for column in zip(*rows, strict=True))
    ones = np.ones(len(rows), dtype=np.int64)
    demand = processors.astype(np.int64)[:, None] * THOUSANDTHS
    return Jobs(arrival, duration, estimate, demand, ones, ones.astype(np.uint64))


def drawn(rng: np.random.Generator, count: int, gap: float = 25.0) -> Jobs:
    """Jobs that come at random to a pool, short and long ones; estimates are true."""
    arrival, run = np.cumsum(rng.exponential(gap, count)), rng.choice([5.0, 20.0, 200.0], count, p=[0.4, 0.4, 0.2])
    return jobs_of(*zip(arrival, run, run, rng.integers(1, 5, count), strict=True))


def ends(episodes: list[Jobs], machines: Machines, policy: str | Planner) -> Placed:
    jobs = end_to_end(episodes)
    simulator = Simulator(jobs, machines, np.zeros(len(jobs.arrival)))
    who, number = HEURISTICS[policy] if isinstance(policy, str) else policy, np.arange(len(episodes))
    for _ in play_on(simulator, who, keys(1, number, np.zeros_like(number))):
        pass
    return simulator.placed()


def slowdown(episodes: list[Jobs], machines: Machines, policy: str | Planner) -> np.ndarray:
    """The mean bounded slowdown of each episode."""
    jobs = end_to_end(episodes)
    spent = ends(episodes, machines, policy).finish - jobs.arrival
    each = np.maximum(spent / np.maximum(jobs.duration, 10.0), 1.0)
    return np.array([part.mean() for part in np.split(each, jobs.first[1:-1])])


def planner(rule: CompiledRule, past: ArrivalModel, budget: SearchBudget = USUAL) -> Planner:
    policy = next(policy for policy in HEURISTICS.values() if compiled_rule_of(policy) == rule)
    return Planner(MachinesSearch(Base(policy, rule), past, budget))


def costs_of(plan: Planner, turn: Turn, found: SearchResult) -> np.ndarray:
    """The costs of the candidates in each future."""
    assert isinstance(plan.search, MachinesSearch)
    return plan.search.costs(turn, found.action)


def past() -> ArrivalModel:
    return arrival_model([drawn(np.random.default_rng(9), 300)])


@pytest.mark.parametrize("dispatch", DISPATCH)
@pytest.mark.parametrize("rule", ["sjf", "saf", "sjf_most_allocated", "tetris", "wfp3"])
def test_a_planner_that_may_try_nothing_does_what_its_base_does(dispatch: str, rule: str) -> None:
    problem = random_problem(np.random.default_rng(3), DISPATCH.index(dispatch), 3)
    machines = problem.machines._replace(time_limit=np.inf)
    base = HEURISTICS[rule]
    assert isinstance(base, Heuristic)
    assert base.rule is not None
    plan = planner(base.rule, arrival_model(problem.episodes), USUAL._replace(ahead=0, decisions=0))
    for one, other in zip(ends(problem.episodes, machines, plan), ends(problem.episodes, machines, rule), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dispatch", ["blocking", "easy", "easy_within"])
@pytest.mark.parametrize("rule", ["fcfs", "sjf", "saf", "f1"])
def test_a_list_is_played_as_the_simulator_plays_it(dispatch: str, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    for number in (1, 3):
        problem = random_problem(rng, DISPATCH.index(dispatch), number, whole_times=False)
        machines = problem.machines._replace(time_limit=np.inf, slots=64)
        plan = planner(CompiledRule(rule), arrival_model(problem.episodes), USUAL._replace(futures=4, ahead=0))
        listed = ends(problem.episodes, machines, plan).start
        with monkeypatch.context() as patch:
            patch.setattr(search, "LISTED", ())
            np.testing.assert_array_equal(listed, ends(problem.episodes, machines, plan).start)


@pytest.mark.parametrize("dispatch", [BLOCKING, EASY_WITHIN])
def test_what_comes_later_and_how_long_jobs_really_run_changes_no_decision(dispatch: int) -> None:
    before = drawn(np.random.default_rng(9), 300)
    before = before._replace(estimate=before.duration * np.random.default_rng(2).uniform(1.0, 6.0, 300))
    machines, now = ONE._replace(dispatch=dispatch), 800.0
    plan = planner(CompiledRule("saf"), arrival_model([before]))
    one = drawn(np.random.default_rng(5), 60, gap=20.0)
    played = ends([one], machines, plan)
    known, over = one.arrival <= now, played.finish <= now
    other = one._replace(
        arrival=np.where(known, one.arrival, one.arrival + 7.0),
        duration=np.where(over, one.duration, 900.0 - one.duration),  # who ends first ends last
        estimate=np.where(known, one.estimate, 9.0),
    )
    starts = [np.where(start < now, start, np.inf) for start in (played.start, ends([other], machines, plan).start)]
    assert np.isfinite(starts[0]).sum() > 10
    np.testing.assert_array_equal(*starts)
    base = ends([one], machines, "saf").start
    assert (np.where(base < now, base, np.inf) != starts[0]).any()  # it did decide


@pytest.mark.parametrize("dispatch", ["easy_dynamic", "easy_shortest"])
def test_what_is_expected_of_a_decision_does_not_lean_on_who_ends_first(dispatch: str) -> None:
    """Four jobs with equal estimates run; which of them ends first is unknown."""
    before = drawn(np.random.default_rng(9), 300)
    before = before._replace(estimate=before.duration * np.random.default_rng(2).uniform(1.0, 6.0, 300))
    plan = planner(CompiledRule("saf"), arrival_model([before]), USUAL._replace(candidates=4, futures=8, ahead=3))
    machines, costs = ONE._replace(dispatch=DISPATCH.index(dispatch)), []
    for runs in ([60.0, 90.0, 120.0, 150.0], [150.0, 120.0, 90.0, 60.0]):
        rows = [(float(k), run, 200.0, 1) for k, run in enumerate(runs)]
        waiting = [(10.0, 30.0, 40.0, 2), (11.0, 20.0, 90.0, 3), (12.0, 5.0, 50.0, 1)]
        jobs = end_to_end([jobs_of(*rows, *waiting)])
        simulator, seen = Simulator(jobs, machines, np.zeros(7)), []
        for _ in plan.play(simulator, ONLY, lambda turn, found, to=seen: to.append(costs_of(plan, turn, found))):
            if simulator.now[0] >= 12.0:
                break
        costs.append(seen)
    assert sum(np.isfinite(cost).sum() for cost in costs[0]) > 0
    for one_way, other in zip(*costs, strict=True):
        np.testing.assert_array_equal(one_way, other)


def test_all_known_and_nothing_to_come_it_is_never_worse_than_its_base() -> None:
    rng = np.random.default_rng(6)
    still = [jobs._replace(arrival=np.zeros(20)) for jobs in (drawn(rng, 20) for _ in range(20))]
    plan = planner(CompiledRule("f1"), past(), USUAL._replace(candidates=20, futures=1, ahead=0, sure=0.0))
    gain = slowdown(still, ONE, "f1") - slowdown(still, ONE, plan)
    assert gain.min() > -1e-9
    assert gain.max() > 0.1


@pytest.mark.parametrize("dispatch", ["blocking", "easy_within", "greedy"])
def test_it_is_better_than_its_base_on_jobs_that_come_as_they_came(dispatch: str) -> None:
    rng, machines = np.random.default_rng(7), ONE._replace(dispatch=DISPATCH.index(dispatch))
    episodes = [drawn(rng, 100) for _ in range(40)]
    plan = planner(CompiledRule("fcfs"), past())
    gain = slowdown(episodes, machines, "fcfs") - slowdown(episodes, machines, plan)
    assert gain.mean() - 2 * gain.std() / 40**0.5 > 0


def test_it_plans_with_how_long_jobs_of_the_past_ran_and_not_with_what_users_say() -> None:
    """Jobs with estimate 100 ran 1, those with 50 ran 50: the first are the short ones, whatever SJF believes."""
    before = [(float(k), (1.0, 50.0)[k % 2], (100.0, 50.0)[k % 2], 4) for k in range(300)]
    plan = planner(CompiledRule("sjf"), arrival_model([jobs_of(*before)]), USUAL._replace(futures=8, ahead=0))
    now, machines = jobs_of((0.0, 20.0, 20.0, 4), (1.0, 50.0, 50.0, 4), (2.0, 1.0, 100.0, 4)), ONE._replace(dispatch=0)
    assert ends([now], machines, "sjf").start.tolist() == [0.0, 20.0, 70.0]
    assert ends([now], machines, plan).start.tolist() == [0.0, 21.0, 20.0]


def test_a_copy_tells_of_a_running_job_what_the_episode_tells() -> None:
    """Three of four processors run until 100; at 50 a job of all four and one that would end at 110 wait."""
    machines, seen = ONE._replace(dispatch=DISPATCH.index("easy_dynamic")), []
    past_jobs = arrival_model([jobs_of(*((float(k), 9.0, 9.0, 1) for k in range(20)))])
    plan = planner(CompiledRule("fcfs"), past_jobs, USUAL._replace(futures=1, ahead=0, sure=0.0))
    jobs = end_to_end([jobs_of((0.0, 100.0, 100.0, 3), (50.0, 20.0, 20.0, 4), (50.0, 60.0, 60.0, 1))])
    simulator = Simulator(jobs, machines, np.zeros(3))
    for _ in plan.play(
        simulator, ONLY, lambda turn, found: seen.append((found.action[0], costs_of(plan, turn, found)))
    ):
        pass
    first = next(cost for action, cost in seen if (action >= 0).sum() == 2)
    assert first[0, 0, 0] == pytest.approx((50 + 20) / 20 + (70 + 60) / 60)  # the head is not delayed


def test_the_same_jobs_give_the_same_schedule_in_any_company() -> None:
    rng = np.random.default_rng(8)
    episodes, plan = [drawn(rng, 40) for _ in range(40)], planner(CompiledRule("sjf"), past())
    together = ends(episodes, ONE, plan).start
    np.testing.assert_array_equal(together, ends(episodes, ONE, plan).start)
    np.testing.assert_array_equal(together[:40], ends(episodes[:1], ONE, plan).start)


def test_a_policy_without_a_compiled_rule_or_a_past_cannot_look_ahead() -> None:
    with pytest.raises(UserError, match="policy 'plan_own': expected a compiled heuristic after plan_, got 'own'"):
        planned(Heuristic(HEURISTICS["sjf"]), "own", past())
    with pytest.raises(UserError, match="policy 'plan_sjf': expected more than 10 jobs"):
        planned(HEURISTICS["sjf"], "sjf", arrival_model([drawn(np.random.default_rng(1), 10)]))
