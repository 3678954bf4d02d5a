"""The cluster's rules, followed by hand; the plain and the compiled simulator must both keep to them."""

import numpy as np
import pytest
from builders import ONLY, act, cluster, jobset, rewards, start

from pipeline.core.types import Observation
from pipeline.problems.pool.env.simulator.batch import Batched
from tests.oracles.pool import Timestep

VOID = 2  # of two slots


@pytest.fixture(params=["plain", "compiled"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def view(simulator: Timestep | Batched) -> Observation:
    return simulator.observe(ONLY)


def free(simulator: Timestep | Batched) -> list[int]:
    """Units free of the first resource, in each row of the horizon."""
    return [int(units) for units in view(simulator).free[0, 0, :, 0]]


def slots(simulator: Timestep | Batched) -> list[tuple[int, int]]:
    """Duration and demand of the first resource, slot by slot."""
    observed = view(simulator)
    return [
        (int(steps), int(units)) for steps, units in zip(observed.duration[0], observed.demand[0, :, 0], strict=True)
    ]


def four_jobs(kind: str, objective: str = "slowdown") -> Timestep | Batched:
    """Three units, two slots. Three jobs wait at step 0, so one of them behind the slots; a fourth comes at step 1."""
    return start(kind, jobset((0, 2, 2), (0, 1, 2), (0, 2, 1), (1, 1, 3)), cluster(3), objective=objective)


def all_moves(kind: str, objective: str = "slowdown") -> Timestep | Batched:
    """Play the four jobs to the end.

    Step 0: start job 0 (job 2 takes its slot), try job 1, which does not fit.
    Step 1: start job 2 (job 3 takes its slot), void.
    Step 2: start job 1, choose its empty slot.
    Step 3: start job 3, void.
    """
    simulator = four_jobs(kind, objective)
    act(simulator, 0, 1, 0, VOID, 1, 1, 0, VOID)
    return simulator


def test_four_jobs_start_and_finish_where_the_moves_put_them(kind: str) -> None:
    schedule = all_moves(kind).schedule()
    assert schedule.start.tolist() == [0, 2, 1, 3]
    assert schedule.finish.tolist() == [2, 3, 3, 4]
    assert schedule.steps.tolist() == [4]


@pytest.mark.parametrize(
    ("objective", "by_step"),
    [
        ("slowdown", [-(1 / 2 + 1 + 1 / 2), -(1 / 2 + 1 + 1 / 2 + 1), -(1 + 1 / 2 + 1), -1.0]),
        ("completion_time", [-3.0, -4.0, -3.0, -1.0]),
        ("makespan", [-1.0, -1.0, -1.0, -1.0]),
        ("utilisation", [2 / 3, 1.0, 1.0, 1.0]),
    ],
)
def test_every_step_brings_the_reward_of_its_objective(kind: str, objective: str, by_step: list[float]) -> None:
    assert rewards(all_moves(kind, objective)) == pytest.approx(by_step, abs=1e-12)


def test_shares_in_use_are_summed_over_steps(kind: str) -> None:
    assert all_moves(kind).schedule().used.tolist() == pytest.approx([2 / 3 + 1 + 1 + 1])


def test_a_step_is_withheld_when_a_visible_job_would_have_fitted(kind: str) -> None:
    simulator = four_jobs(kind)
    act(simulator, 0, 1)  # job 2 fits beside job 0, and the policy let the step pass
    assert simulator.schedule().withheld_steps.tolist() == [1]
    assert simulator.schedule().withheld.tolist() == [0, 0, 1, 0]
    act(simulator, 0, VOID)  # no job fits any more
    assert simulator.schedule().withheld_steps.tolist() == [1]
    assert simulator.schedule().withheld.tolist() == [0, 0, 1, 0]


def test_the_episode_is_over_once_the_last_job_has_finished(kind: str) -> None:
    simulator = four_jobs(kind)
    act(simulator, 0, 1, 0, VOID, 1, 1, 0)
    assert simulator.rows.tolist() == [0]  # the last job runs until step 4
    act(simulator, VOID)
    assert simulator.rows.tolist() == []


def test_several_jobs_start_in_one_step(kind: str) -> None:
    simulator = four_jobs(kind)
    act(simulator, 0, 0)
    assert simulator.schedule().start.tolist() == [0, -1, 0, -1]
    assert view(simulator).now.tolist() == [0]
    assert free(simulator) == [0, 0, 3, 3]


def test_the_first_job_of_the_backlog_refills_a_slot_at_once(kind: str) -> None:
    simulator = four_jobs(kind)
    assert slots(simulator) == [(2, 2), (1, 2)]
    assert view(simulator).backlog.tolist() == [1]
    assert view(simulator).backlog_head.tolist() == [[2, 1]]
    act(simulator, 0)
    assert slots(simulator) == [(2, 1), (1, 2)]
    assert view(simulator).backlog.tolist() == [0]
    assert view(simulator).backlog_head.tolist() == [[0, 0]]


def test_an_arrival_queues_where_no_slot_is_free(kind: str) -> None:
    simulator = four_jobs(kind)
    act(simulator, 0, VOID)
    assert slots(simulator) == [(2, 1), (1, 2)]
    assert view(simulator).backlog_head.tolist() == [[1, 3]]


def test_a_queued_job_goes_before_a_later_arrival(kind: str) -> None:
    simulator = start(kind, jobset((0, 1, 1), (0, 2, 1), (1, 3, 1), (1, 4, 1)), cluster(slots=1))
    assert view(simulator).backlog_head.tolist() == [[2, 1]]
    act(simulator, 1)
    assert view(simulator).backlog.tolist() == [3]
    observed = []
    for _ in range(3):
        act(simulator, 0)
        observed += slots(simulator)
    assert observed == [(2, 1), (3, 1), (4, 1)]


def test_arrivals_take_the_lowest_free_slots_in_order(kind: str) -> None:
    jobs = jobset((0, 4, 1), (0, 4, 2), (0, 4, 1), (1, 2, 3), (1, 3, 3), (1, 1, 3))
    simulator = start(kind, jobs, cluster(slots=3))
    act(simulator, 0, 2)
    assert slots(simulator) == [(0, 0), (4, 2), (0, 0)]
    act(simulator, 3)
    assert slots(simulator) == [(2, 3), (4, 2), (3, 3)]
    assert view(simulator).backlog_head.tolist() == [[1, 3]]


@pytest.mark.parametrize(
    "action", [pytest.param(VOID, id="void"), pytest.param(1, id="unfit"), pytest.param(0, id="empty")]
)
def test_a_move_that_starts_nothing_lets_one_step_pass(kind: str, action: int) -> None:
    simulator = start(kind, jobset((0, 3, 2), (0, 1, 2)), cluster(3))
    act(simulator, 0)
    assert (view(simulator).now.tolist(), free(simulator)) == ([0], [1, 1, 1, 3])
    act(simulator, action)
    assert (view(simulator).now.tolist(), free(simulator)) == ([1], [1, 1, 3, 3])
    assert simulator.schedule().start.tolist() == [0, -1]


def test_waiting_is_counted_from_each_arrival_and_the_clock_from_the_last(kind: str) -> None:
    simulator = start(kind, jobset((0, 1, 1), (2, 1, 1)), cluster())
    act(simulator, VOID)
    assert (view(simulator).waited.tolist(), view(simulator).since_arrival.tolist()) == ([[1, 0]], [1])
    act(simulator, VOID)
    assert (view(simulator).waited.tolist(), view(simulator).since_arrival.tolist()) == ([[2, 0]], [0])
    act(simulator, VOID, VOID, VOID)
    assert (view(simulator).waited.tolist(), view(simulator).since_arrival.tolist()) == ([[5, 3]], [3])


def test_a_job_may_only_start_now_unless_it_may_be_placed_ahead(kind: str) -> None:
    jobs = jobset((0, 2, 3), (0, 2, 1))
    for ahead, begin in ((False, -1), (True, 2)):
        simulator = start(kind, jobs, cluster(3, ahead=ahead))
        act(simulator, 0)
        assert view(simulator).fits_now[0, :, 0].tolist() == [False, False]
        assert view(simulator).legal[0, :, 0].tolist() == [False, ahead]
        act(simulator, 1)
        assert simulator.schedule().start.tolist() == [0, begin]


def test_a_job_placed_ahead_starts_at_the_first_step_from_which_it_fits_until_it_ends(kind: str) -> None:
    # The second job leaves a hole of one step before it: too short for the third, right for the fourth.
    simulator = start(kind, jobset((0, 1, 1), (0, 1, 2), (0, 2, 1), (0, 1, 1)), cluster(2, slots=4, ahead=True))
    act(simulator, 0, 1)
    assert free(simulator) == [1, 0, 2, 2]
    act(simulator, 2)
    assert free(simulator) == [1, 0, 1, 1]
    act(simulator, 3)
    assert free(simulator) == [0, 0, 1, 1]
    assert simulator.schedule().start.tolist() == [0, 1, 2, 0]


def test_a_job_placed_ahead_keeps_its_start_while_steps_pass(kind: str) -> None:
    simulator = start(kind, jobset((0, 2, 3), (0, 1, 1)), cluster(3, ahead=True))
    act(simulator, 0, 1, VOID)
    assert free(simulator) == [0, 2, 3, 3]
    act(simulator, VOID, VOID)
    assert simulator.schedule().finish.tolist() == [2, 3]
    assert simulator.rows.tolist() == []


def test_a_job_with_no_room_in_the_whole_horizon_cannot_be_placed_ahead(kind: str) -> None:
    simulator = start(kind, jobset((0, 2, 3), (0, 3, 1)), cluster(3, ahead=True))
    act(simulator, 0)
    assert view(simulator).legal[0, :, 0].tolist() == [False, False]  # steps 2 and 3 are too few for it
    act(simulator, 1)
    assert view(simulator).now.tolist() == [1]
    assert view(simulator).legal[0, :, 0].tolist() == [False, True]


def test_a_reservation_ahead_does_not_make_a_step_withheld(kind: str) -> None:
    simulator = start(kind, jobset((0, 2, 3), (0, 1, 1)), cluster(3, ahead=True))
    act(simulator, 0, VOID)
    assert simulator.schedule().withheld_steps.tolist() == [0]


def test_a_job_needs_room_in_every_resource(kind: str) -> None:
    simulator = start(kind, jobset((0, 1, 1, 3), (0, 1, 1, 1), (0, 1, 2, 0)), cluster(3, 3, slots=3))
    act(simulator, 0)
    assert view(simulator).fits_now[0, :, 0].tolist() == [False, False, True]


def test_no_job_is_dropped_however_many_wait(kind: str) -> None:
    simulator = start(kind, jobset(*[(0, 1, 3)] * 30), cluster(3, slots=1, backlog=2))
    assert view(simulator).backlog.tolist() == [29]
    for _ in range(30):
        act(simulator, 0, 1)
    assert simulator.schedule().start.tolist() == list(range(30))
    assert simulator.rows.tolist() == []


def test_a_cut_episode_tells_what_is_unfinished(kind: str) -> None:
    # Started and finished; started and cut; never started; never seen.
    simulator = start(kind, jobset((0, 1, 1), (0, 4, 1), (0, 1, 1), (5, 1, 1)), cluster(3, slots=3), step_limit=3)
    act(simulator, 0, 1, 3, 3)
    assert simulator.rows.tolist() == [0]
    act(simulator, 3)
    assert simulator.rows.tolist() == []
    schedule = simulator.schedule()
    assert schedule.start.tolist() == [0, 0, -1, -1]
    assert schedule.finish.tolist() == [1, -1, -1, -1]
    assert schedule.steps.tolist() == [3]
    assert rewards(simulator) == pytest.approx([-(1 + 1 / 4 + 1), -(1 / 4 + 1), -(1 / 4 + 1)])


def test_an_observation_is_not_changed_by_later_moves(kind: str) -> None:
    simulator = four_jobs(kind)
    before = view(simulator)
    copies = [np.array(field) for field in before]
    act(simulator, 0, VOID, 0)
    assert all(np.array_equal(field, copy, equal_nan=True) for field, copy in zip(before, copies, strict=True))
