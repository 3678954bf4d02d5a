"""The compiled event-driven simulator agrees with the plain one, decision by decision, whatever is chosen."""

import numpy as np
import pytest
from builders import ONLY
from machine_builders import Problem, jobs_of, parts, random_problem, roam

from pipeline.core.types import Observation
from pipeline.problems.machines.env.nouns import (
    BLOCKING,
    DISPATCH,
    EASY,
    EASY_DYNAMIC,
    EASY_SHORTEST,
    GREEDY,
    Jobs,
    Machines,
)
from pipeline.problems.machines.env.simulator.batch import Simulator, costed
from tests.oracles.machines import PlainSimulator

PROBLEMS = 12  # of each size and rule
CLOSE = 1e-9  # sums of many intervals, taken in another order


def assert_same_view(plain: Observation, compiled: Observation) -> None:
    for name, one, other in zip(Observation._fields, plain, compiled, strict=True):
        if not np.array_equal(one, other):  # faster than numpy's assertion
            np.testing.assert_array_equal(one, other, name)


def assert_agreement(problem: Problem, rng: np.random.Generator) -> None:
    """Choose anything, in all three ways to simulate the episodes, to their end."""
    plain, together, alone = problem.plain(), problem.compiled(), problem.one_at_a_time()
    while len(rows := together.rows):
        assert rows.tolist() == [b for b, one in enumerate(plain) if len(one.rows)]
        views = together.observe(rows)
        actions = roam(views, rng)
        together.step(rows, actions)
        for place, b in enumerate(rows):
            view = views.take(slice(place, place + 1))
            assert_same_view(plain[b].observe(ONLY), view)
            assert_same_view(alone[b].observe(ONLY), view)
            plain[b].step(ONLY, actions[place : place + 1])
            alone[b].step(ONLY, actions[place : place + 1])
            assert -together.gained[b] == pytest.approx(plain[b].cost, rel=CLOSE)
    assert_same_end(problem, plain, together, alone)


def assert_same_end(problem: Problem, plain: list[PlainSimulator], together: Simulator, alone: list[Simulator]) -> None:
    placed = together.placed()
    for b, mine in enumerate(parts(problem.episodes)):
        expected = plain[b].placed()
        assert jobs_of(placed, mine) == jobs_of(expected, slice(None)) == jobs_of(alone[b].placed(), slice(None))
        assert placed.end[b] == expected.end[0] == alone[b].placed().end[0]
        assert placed.busy[b] == pytest.approx(expected.busy[0], rel=CLOSE)
        assert -together.gained[b] == pytest.approx(plain[b].cost, rel=CLOSE)
        assert (-together.gained[b], placed.busy[b]) == (-alone[b].gained[0], alone[b].placed().busy[0])
        assert not len(plain[b].rows)
        assert not len(alone[b].rows)


@pytest.mark.parametrize("whole_times", [True, False])
@pytest.mark.parametrize("number", [1, 3, 6])
@pytest.mark.parametrize("dispatch", range(len(DISPATCH)), ids=DISPATCH)
def test_the_compiled_simulator_agrees_with_the_plain_one(dispatch: int, number: int, whole_times: bool) -> None:
    for seed in range(PROBLEMS if whole_times else PROBLEMS // 3):
        rng = np.random.default_rng([seed, dispatch, number])
        assert_agreement(random_problem(rng, dispatch, number, whole_times), rng)


def some_jobs(*rows: tuple[float, float, int]) -> Jobs:
    """Jobs of (arrival, duration, thousandths of the only resource), on one machine each and of any kind."""
    table = np.array(rows, dtype=float).reshape(-1, 3)
    ones = np.ones(len(table), dtype=np.int64)
    whole = table[:, 2:].astype(np.int64)
    return Jobs(table[:, 0], table[:, 1], table[:, 1], whole, ones, ones.astype(np.uint64))


def one_machine(dispatch: int, time_limit: float = np.inf) -> Machines:
    return Machines(np.array([[1000]]), np.array([0]), 2, dispatch, 1.0, time_limit)


def test_the_cost_is_the_sum_of_slowdowns_where_a_job_weighs_one_over_its_duration() -> None:
    jobs = some_jobs((0, 4, 1000), (1, 2, 1000))
    simulator = Problem(one_machine(BLOCKING), [jobs], [1.0 / jobs.duration]).compiled()
    while len(simulator.rows):
        simulator.step(ONLY, np.array([0]))
    # Job 0 runs 0 .. 4, job 1 from 4 to 6: slowdowns 4 / 4 and (6 - 1) / 2; the machine is full throughout.
    assert simulator.placed().finish.tolist() == [4.0, 6.0]
    assert (-simulator.gained).tolist() == [1.0 + 2.5]
    assert simulator.placed().busy.tolist() == [6.0]


def test_what_is_unfinished_at_the_limit_has_cost_until_then() -> None:
    jobs = some_jobs((5, 4, 500), (6, 9, 1000))
    simulator = Problem(one_machine(GREEDY, time_limit=3.0), [jobs], [np.array([1.0, 10.0])]).compiled()
    simulator.step(ONLY, np.array([0]))
    # Job 0 runs from 5 on, job 1 waits from 6 on; it ends at 5 + 3: 3 * 1 + 2 * 10.
    assert not len(simulator.rows)
    assert simulator.placed().end.tolist() == [8.0]
    assert (-simulator.gained).tolist() == [23.0]
    assert simulator.placed().busy.tolist() == [1.5]
    assert np.isnan(simulator.placed().finish).all()


@pytest.mark.parametrize(
    ("measured", "end", "starts"), [((0, 2), 4.0, [0.0, 4.0, -1.0, -1.0]), ((1, 3), 6.0, [0.0, 4.0, 6.0, -1.0])]
)
def test_an_episode_is_over_once_all_measured_jobs_have_started(
    measured: tuple[int, int], end: float, starts: list[float]
) -> None:
    machines = one_machine(GREEDY)._replace(measured=measured)
    jobs = some_jobs((0, 4, 1000), (1, 2, 1000), (2, 1, 1000), (9, 1, 1000))
    simulator = Problem(machines, [jobs], [np.ones(4)]).compiled()
    while len(simulator.rows):
        simulator.step(ONLY, np.array([0]))
    assert simulator.placed().end.tolist() == [end]
    assert np.nan_to_num(simulator.placed().start, nan=-1.0).tolist() == starts


def test_an_episode_is_over_when_the_last_job_arrives_for_arrivals_must_continue() -> None:
    machines = one_machine(GREEDY)._replace(measured=(0, 2))
    simulator = Problem(machines, [some_jobs((0, 4, 1000), (1, 2, 1000), (2, 1, 1000))], [np.ones(3)]).compiled()
    simulator.step(ONLY, np.array([0]))  # no other fits beside job 0, and at 2 the last one arrives
    assert not len(simulator.rows)
    assert simulator.placed().end.tolist() == [2.0]


def test_only_measured_jobs_cost() -> None:
    machines = one_machine(GREEDY)._replace(measured=(1, 2))
    simulator = costed(machines, "completion_time", [some_jobs((0, 4, 1000), (1, 2, 1000), (9, 1, 1000))])
    simulator.step(ONLY, np.array([0]))
    simulator.step(ONLY, np.array([0]))
    assert simulator.placed().end.tolist() == [4.0]
    assert (-simulator.gained).tolist() == [3.0]  # job 1 is there from 1 to 4


@pytest.mark.parametrize("dispatch", range(len(DISPATCH)), ids=DISPATCH)
def test_an_episode_without_jobs_is_over_at_once_wherever_it_stands(dispatch: int) -> None:
    none, later = some_jobs(), some_jobs((7, 2, 1000))
    problem = Problem(one_machine(dispatch), [none, later, none], [np.ones(0), np.ones(1), np.ones(0)])
    assert problem.compiled().rows.tolist() == [1]
    assert_agreement(problem, np.random.default_rng(0))


@pytest.mark.parametrize("dispatch", [EASY, EASY_DYNAMIC, EASY_SHORTEST])
def test_jobs_that_end_together_all_make_room_for_a_long_one(dispatch: int) -> None:
    """Jobs 0 and 1 end at 100, when job 2 wants three of four units; job 3 takes the fourth for long."""
    jobs = some_jobs((0, 100, 1), (0, 100, 1), (1, 50, 3), (2, 1000, 1))
    machines = one_machine(dispatch)._replace(capacity=np.array([[4]]))
    simulator = Problem(machines, [jobs], [np.ones(4)]).compiled()
    while len(simulator.rows):
        simulator.step(ONLY, np.array([0]))
    assert simulator.placed().start.tolist() == [0.0, 0.0, 100.0, 2.0]
