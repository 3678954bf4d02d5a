"""The rules of the event-driven cluster, followed by hand."""

from collections.abc import Sequence
from math import inf, nan
from typing import NamedTuple

import numpy as np
import pytest

from pipeline.core.types import ANY_KIND, Observation
from pipeline.problems.machines.env.nouns import (
    BLOCKING,
    DISPATCH,
    EASY,
    EASY_DYNAMIC,
    EASY_SHORTEST,
    EASY_WITHIN,
    GREEDY,
    Jobs,
    Machines,
)
from tests.oracles.machines import PlainSimulator

ONLY = np.array([0])
HELD = (BLOCKING, EASY_WITHIN, EASY)
RESERVING = (EASY, EASY_DYNAMIC, EASY_SHORTEST)  # as EASY does
RULES = range(len(DISPATCH))


class Job(NamedTuple):
    """One job by hand; a whole number as demand is that of one resource."""

    arrival: float
    duration: float
    demand: int | tuple[int, ...]
    estimate: float | None = None
    nodes: int = 1
    kinds: int = int(ANY_KIND)


def jobs(rows: list[Job]) -> Jobs:
    width = 1 if not rows or isinstance(rows[0].demand, int) else len(rows[0].demand)
    return Jobs(
        arrival=np.array([row.arrival for row in rows], dtype=float),
        duration=np.array([row.duration for row in rows], dtype=float),
        estimate=np.array([row.duration if row.estimate is None else row.estimate for row in rows], dtype=float),
        demand=np.array([row.demand for row in rows], dtype=np.int64).reshape(-1, width),
        nodes=np.array([row.nodes for row in rows], dtype=np.int64),
        kinds=np.array([row.kinds for row in rows], dtype=np.uint64),
    )


def start(
    rule: int,
    capacity: Sequence[int | tuple[int, ...]],
    *rows: Job,
    kind: list[int] | None = None,
    slots: int = 3,
    pause: float = 100.0,
    time_limit: float = 1000.0,
    unit_cost: float | None = None,
) -> PlainSimulator:
    """Begin an episode; a job costs one over its duration per time unit, unless `unit_cost` is given."""
    of_machine = np.array(capacity, dtype=np.int64).reshape(len(capacity), -1)
    kinds = np.array(kind or [0] * len(capacity))
    there = jobs(list(rows))
    cost = 1.0 / there.duration if unit_cost is None else np.full(len(rows), unit_cost)
    return PlainSimulator(there, Machines(of_machine, kinds, slots, rule, pause, time_limit), cost)


def act(simulator: PlainSimulator, *actions: int) -> None:
    for action in actions:
        assert simulator.rows.tolist() == [0], "a decision is awaited"
        simulator.step(ONLY, np.array([action]))


def to_end(simulator: PlainSimulator) -> PlainSimulator:
    """Choose the earliest visible job that is legal, on its lowest machine, until the episode is over."""
    while not simulator.done:
        act(simulator, int(view(simulator).legal.argmax()))
    return simulator


def view(simulator: PlainSimulator) -> Observation:
    return simulator.observe(ONLY)


def starts(simulator: PlainSimulator) -> list[float]:
    return [float(time) for time in simulator.placed().start]


def finishes(simulator: PlainSimulator) -> list[float]:
    return [float(time) for time in simulator.placed().finish]


def on(simulator: PlainSimulator) -> list[int]:
    return [int(k) for k in simulator.placed().machine]


def free(simulator: PlainSimulator) -> list[int]:
    """Amounts free of the first resource, machine by machine."""
    return [int(amount) for amount in view(simulator).free[0, :, 0, 0]]


def fits(simulator: PlainSimulator) -> list[list[int]]:
    """Ones where the job of a slot (row) could start on a machine (column)."""
    return [[int(one) for one in row] for row in view(simulator).fits_now[0]]


# --- greedy ----------------------------------------------------------------------------------------------------------


def test_greedy_starts_the_job_on_the_machine_chosen_and_time_stands_still() -> None:
    simulator = start(GREEDY, [2, 4], Job(0, 3, 2), Job(0, 2, 2))
    act(simulator, 0 * 2 + 1)
    assert view(simulator).now.tolist() == [0.0]
    assert free(simulator) == [2, 2]
    act(simulator, 0 * 2 + 0)
    assert on(simulator) == [1, 0]
    assert starts(simulator) == [0.0, 0.0]
    assert simulator.placed().end.tolist() == [3.0]


def test_greedy_does_not_ask_while_no_visible_job_fits() -> None:
    simulator = start(GREEDY, [2, 4], Job(0, 3, 2), Job(0, 2, 3))
    act(simulator, 0 * 2 + 1)  # two left on either machine; the other job wants three
    assert view(simulator).now.tolist() == [3.0]
    assert fits(simulator) == [[0, 1], [0, 0], [0, 0]]
    act(simulator, 0 * 2 + 1)
    assert finishes(simulator) == [3.0, 5.0]
    assert np.array(simulator.costs) == pytest.approx(np.array([[3.0, 3 * (1 / 3 + 1 / 2)], [2.0, 2 * (1 / 2)]]))


def test_which_machine_is_chosen_matters_where_they_differ() -> None:
    simulator = start(GREEDY, [2, 4], Job(0, 3, 2), Job(0, 2, 3))
    act(simulator, 0 * 2 + 0)  # the small machine is enough, and the large one stays whole
    assert fits(simulator) == [[0, 1], [0, 0], [0, 0]]
    act(simulator, 0 * 2 + 1)
    assert starts(simulator) == [0.0, 0.0]


def test_void_lets_time_pass_by_a_pause_or_to_the_next_event() -> None:
    simulator = start(GREEDY, [2], Job(0, 5, 1), Job(0, 1, 1), pause=2.0)
    void = 3
    act(simulator, 0)
    for now in (2.0, 4.0, 5.0):
        act(simulator, void)
        assert view(simulator).now.tolist() == [now]
    assert free(simulator) == [2]
    act(simulator, 0)
    assert finishes(simulator) == [5.0, 6.0]
    assert [passed for passed, _ in simulator.costs] == [2.0, 2.0, 1.0, 1.0]


def test_void_lets_a_pause_pass_when_nothing_is_to_come() -> None:
    simulator = start(GREEDY, [1], Job(4, 1, 1), pause=2.5)
    act(simulator, 3, 0)
    assert starts(simulator) == [6.5]


@pytest.mark.parametrize(
    "action", [0 * 2 + 1, 1 * 2 + 0, 2 * 2 + 1, 3 * 2], ids=["misfit", "other machine", "empty slot", "void"]
)
def test_greedy_takes_what_cannot_start_for_void(action: int) -> None:
    """Job 0 leaves one unit on either machine: too few for job 1, and job 2 runs on the second machine only."""
    rows = (Job(0, 9, 1), Job(0, 1, 2), Job(0, 1, 1, kinds=0b10))
    simulator = start(GREEDY, [1, 2], *rows, kind=[0, 1], pause=2.0)
    act(simulator, 0 * 2 + 1)
    assert fits(simulator) == [[0, 0], [0, 1], [0, 0]]
    act(simulator, action)
    assert view(simulator).now.tolist() == [2.0]
    assert on(simulator) == [1, -1, -1]


def test_greedy_sees_together_all_that_happens_in_one_moment() -> None:
    simulator = start(GREEDY, [1], Job(0, 2, 1), Job(2, 1, 1), Job(2, 1, 1))
    act(simulator, 0)
    assert view(simulator).now.tolist() == [2.0]
    assert fits(simulator) == [[1], [1], [0]]
    assert finishes(simulator)[0] == 2.0


# --- what is seen ----------------------------------------------------------------------------------------------------


def test_the_first_who_wait_fill_the_slots_and_the_rest_is_the_backlog() -> None:
    rows = (Job(0, 1, 2, estimate=3), Job(0, 2, 2, estimate=4), Job(0, 3, 1, estimate=5), Job(0, 4, 2, estimate=6))
    simulator = start(GREEDY, [4], *rows, slots=2)
    seen = view(simulator)
    assert seen.duration.tolist() == [[3.0, 4.0]]
    assert seen.demand.tolist() == [[[2], [2]]]
    assert seen.backlog.tolist() == [2]
    assert seen.backlog_head.tolist() == [[5.0, 1.0]]


def test_later_jobs_move_up_when_one_leaves_the_queue() -> None:
    simulator = start(GREEDY, [4], *(Job(0, duration, 1) for duration in (1, 2, 3, 4)), slots=2)
    act(simulator, 0)
    assert view(simulator).duration.tolist() == [[2.0, 3.0]]
    assert view(simulator).backlog_head.tolist() == [[4.0, 1.0]]
    act(simulator, 1)
    assert view(simulator).duration.tolist() == [[2.0, 4.0]]
    assert view(simulator).backlog.tolist() == [0]
    assert view(simulator).backlog_head.tolist() == [[0.0, 0.0]]


def test_an_empty_slot_is_all_zeros() -> None:
    simulator = start(GREEDY, [(4, 8), (4, 0)], Job(0, 2, (1, 3), nodes=1), slots=2)
    seen = view(simulator)
    assert seen.demand.tolist() == [[[1, 3], [0, 0]]]
    assert seen.duration.tolist() == [[2.0, 0.0]]
    assert seen.nodes.tolist() == [[1, 0]]
    assert seen.fits_now.tolist() == [[[True, False], [False, False]]]
    assert seen.free.tolist() == [[[[4, 8]], [[4, 0]]]]
    assert seen.capacity.tolist() == [[[4, 8], [4, 0]]]


def test_waiting_is_counted_from_the_arrival_and_time_from_the_last_arrival() -> None:
    simulator = start(GREEDY, [1], Job(1, 4, 1), Job(2, 1, 1), Job(3.5, 1, 1))
    act(simulator, 0)
    seen = view(simulator)
    assert seen.now.tolist() == [5.0]
    assert seen.waited.tolist() == [[3.0, 1.5, 0.0]]
    assert seen.since_arrival.tolist() == [1.5]


# --- machines --------------------------------------------------------------------------------------------------------


def test_a_job_must_fit_a_machine_in_every_resource() -> None:
    simulator = start(GREEDY, [(4, 1), (1, 4), (4, 4)], Job(0, 1, (2, 2)), Job(0, 1, (1, 1)), slots=2)
    assert fits(simulator) == [[0, 0, 1], [1, 1, 1]]


def test_a_job_runs_only_on_machines_of_its_kinds() -> None:
    rows = (Job(0, 1, 1, kinds=0b010), Job(0, 1, 1, kinds=0b101), Job(0, 1, 1))
    simulator = start(GREEDY, [1, 1, 1], *rows, kind=[0, 1, 2])
    assert fits(simulator) == [[0, 1, 0], [1, 0, 1], [1, 1, 1]]


@pytest.mark.parametrize(
    ("chosen", "left"),
    [(0, [0, 1, 0, 0, 2]), (2, [2, 1, 0, 0, 0]), (3, [0, 1, 2, 0, 0]), (4, [0, 1, 0, 2, 0])],
)
def test_a_job_of_several_nodes_takes_the_next_machines_that_can_hold_it(chosen: int, left: list[int]) -> None:
    simulator = start(GREEDY, [2, 1, 2, 2, 2], Job(0, 5, 2, nodes=3), Job(0, 1, 1))
    act(simulator, chosen)
    assert free(simulator) == left
    assert on(simulator) == [chosen, -1]


def test_a_job_of_several_nodes_fits_nowhere_when_too_few_machines_have_room() -> None:
    simulator = start(GREEDY, [2, 2, 2], Job(0, 5, 2), Job(0, 5, 1, nodes=3), Job(0, 5, 2, nodes=2))
    act(simulator, 1)
    assert fits(simulator) == [[0, 0, 0], [1, 0, 1], [0, 0, 0]]
    act(simulator, 1 * 3 + 2)
    assert on(simulator) == [1, -1, 2]
    assert starts(to_end(simulator)) == [0.0, 5.0, 0.0]


def test_a_job_of_several_nodes_passes_over_machines_of_other_kinds() -> None:
    simulator = start(GREEDY, [1, 1, 1], Job(0, 5, 1, nodes=2, kinds=0b01), Job(0, 1, 1), kind=[0, 1, 0])
    act(simulator, 0)
    assert free(simulator) == [0, 1, 0]


# --- blocking --------------------------------------------------------------------------------------------------------


def blocked(rule: int) -> PlainSimulator:
    """Two units: job 0 takes one until 4, job 1 wants both until 7, job 2 one for one time unit."""
    return start(rule, [2], Job(0, 4, 1), Job(0, 3, 2), Job(0, 1, 1))


def test_blocking_lets_the_chosen_job_hold_all_others() -> None:
    assert starts(to_end(blocked(BLOCKING))) == [0.0, 4.0, 7.0]


def test_easy_starts_others_that_end_before_the_reservation() -> None:
    assert starts(to_end(blocked(EASY_WITHIN))) == [0.0, 4.0, 0.0]
    assert starts(to_end(blocked(EASY))) == [0.0, 4.0, 0.0]


@pytest.mark.parametrize("rule", HELD)
def test_of_jobs_submitted_together_only_the_first_is_seen_at_first(rule: int) -> None:
    simulator = blocked(rule)
    assert view(simulator).duration.tolist() == [[4.0, 0.0, 0.0]]
    act(simulator, 0)
    assert view(simulator).now.tolist() == [0.0]
    assert view(simulator).duration.tolist() == [[3.0, 0.0, 0.0]]


def test_an_arrival_is_handled_before_a_completion_of_the_same_moment() -> None:
    simulator = start(BLOCKING, [1], Job(0, 2, 1), Job(2, 1, 1))
    act(simulator, 0)
    assert view(simulator).now.tolist() == [2.0]
    assert free(simulator) == [0]
    assert fits(simulator) == [[0], [0], [0]]
    assert view(simulator).legal.tolist() == [[[True], [False], [False]]]
    act(simulator, 0)
    assert starts(simulator) == [0.0, 2.0]


def test_completions_of_one_moment_are_handled_lowest_job_first() -> None:
    simulator = start(BLOCKING, [2, 2], Job(0, 3, 2), Job(0, 3, 2), Job(0, 1, 2))
    act(simulator, 0, 0, 1)  # job 2 asks for machine 1, which is freed in the same second as machine 0, but after it
    assert on(simulator) == [0, 1, 0]
    assert starts(simulator) == [0.0, 0.0, 3.0]


def test_a_held_job_starts_on_the_machine_asked_for_if_that_has_room_by_then() -> None:
    rows = (Job(0, 3, 1, kinds=0b01), Job(0, 3, 1, kinds=0b10), Job(0, 1, 2, nodes=2))
    simulator = start(BLOCKING, [2, 2], *rows, kind=[0, 1])
    act(simulator, 0, 1, 1)
    assert on(simulator) == [0, 1, 1]
    assert finishes(simulator) == [3.0, 3.0, 4.0]


def test_a_job_goes_to_the_lowest_machine_with_room_when_the_one_asked_for_has_none() -> None:
    simulator = start(BLOCKING, [1, 2, 2, 2], Job(0, 9, 2), Job(0, 1, 2))
    act(simulator, 3, 3)
    assert on(simulator) == [3, 1]
    assert starts(simulator) == [0.0, 0.0]


def two_waiting() -> PlainSimulator:
    """Machines of one and two units; at 4 jobs 2 (of one unit) and 3 (of two) wait, and machine 1 is full until 6."""
    simulator = start(BLOCKING, [1, 2], Job(0, 4, 2), Job(0, 2, 2), Job(1, 1, 1), Job(2, 1, 2))
    act(simulator, 1, 1)
    assert view(simulator).now.tolist() == [4.0]
    return simulator


def test_blocking_lets_any_machine_be_asked_for_that_could_hold_the_job_when_idle() -> None:
    simulator = two_waiting()
    assert view(simulator).legal.astype(int).tolist() == [[[1, 1], [0, 1], [0, 0]]]
    assert fits(simulator) == [[1, 0], [0, 0], [0, 0]]


@pytest.mark.parametrize("action", [3 * 2, 2 * 2 + 1, 1 * 2 + 0], ids=["void", "empty slot", "illegal machine"])
def test_blocking_takes_what_is_not_legal_for_the_first_that_is(action: int) -> None:
    simulator = two_waiting()
    act(simulator, action)
    assert starts(simulator)[2] == 4.0
    assert on(simulator)[2] == 0


def test_blocking_may_hold_the_head_for_a_later_job() -> None:
    simulator = two_waiting()
    act(simulator, 1 * 2 + 1)  # job 3 waits for machine 1 until 6, and job 2 for job 3
    assert starts(simulator)[3] == 6.0
    act(simulator, 0)
    assert starts(simulator)[2] == 6.0


# --- reservations ----------------------------------------------------------------------------------------------------


def until_four(rule: int) -> PlainSimulator:
    """Job 0 takes two of four units until 10, but is thought to end at 4; job 1 wants all four, for 5 time units."""
    rows = (Job(0, 10, 2, estimate=4), Job(0, 5, 4), Job(1, 2, 1), Job(1, 2, 1, estimate=3))
    simulator = start(rule, [4], *rows)
    act(simulator, 0, 0)
    return simulator


def test_rlschedulers_rule_does_not_start_what_would_end_at_the_reservation_itself() -> None:
    simulator = until_four(EASY_WITHIN)
    assert starts(simulator) == pytest.approx([0.0, 10.0, 1.0, nan], nan_ok=True)  # 1 + 2 < 4, and 1 + 3 is not
    assert starts(to_end(simulator)) == [0.0, 10.0, 1.0, 15.0]


def test_easy_starts_what_would_end_at_the_reservation_itself() -> None:
    assert starts(until_four(EASY)) == [0.0, 10.0, 1.0, 1.0]  # 1 + 3 = 4
    for rule in RESERVING:
        # Job 0 has one of two units until 10, when job 1 wants both; job 2 would end at 10, and job 3 at 11.
        rows = (Job(0, 10, 1), Job(0, 5, 2), Job(1, 9, 1), Job(1, 10, 1))
        assert starts(to_end(start(rule, [2], *rows))) == [0.0, 10.0, 1.0, 15.0]


@pytest.mark.parametrize("rule", RESERVING)
def test_all_jobs_that_end_at_the_reservation_make_room_for_long_ones(rule: int) -> None:
    """Jobs 0 and 1 end at 100, one would be enough for job 2; the unit of the other one is free for job 3."""
    rows = (Job(0, 100, 1), Job(0, 100, 1), Job(1, 50, 3, estimate=60), Job(2, 1000, 1), Job(3, 1000, 1))
    assert starts(to_end(start(rule, [4], *rows, time_limit=3000))) == [0.0, 0.0, 100.0, 2.0, 150.0]


def test_rlschedulers_rule_leaves_no_room_for_long_ones() -> None:
    rows = (Job(0, 100, 1), Job(0, 100, 1), Job(1, 50, 3, estimate=60), Job(2, 1000, 1))
    assert starts(to_end(start(EASY_WITHIN, [4], *rows, time_limit=3000))) == [0.0, 0.0, 100.0, 100.0]


@pytest.mark.parametrize("rule", RESERVING)
def test_room_is_counted_by_machine_and_by_resource(rule: int) -> None:
    """Job 0 has two of three units of machine 0, jobs 1 and 2 one each of machine 1; all end at 4.

    Job 3 wants two units on both then. One of each is left besides, where the long jobs 4 and 5 start; job 6 must wait.
    """
    firsts = (Job(0, 4, (2, 1)), Job(0, 4, (1, 1)), Job(0, 4, (1, 1)), Job(0, 2, (2, 1), nodes=2))
    longs = tuple(Job(1, 50, (1, 1)) for _ in range(3))
    simulator = start(rule, [(3, 3), (3, 3)], *firsts, *longs, slots=7)
    act(simulator, 0, 1, 1)  # job 1 and job 2 on machine 1
    to_end(simulator)
    assert starts(simulator) == [0.0, 0.0, 0.0, 4.0, 1.0, 1.0, 6.0]
    assert on(simulator)[4:6] == [0, 1]


@pytest.mark.parametrize("rule", RESERVING)
def test_times_that_differ_by_rounding_alone_are_one(rule: int) -> None:
    """In floats 0.1 + 0.2 is above 0.3."""
    rows = (Job(0, 0.3, 1), Job(0.1, 0.2, 1), Job(0.1, 1, 3), Job(0.2, 100, 1))
    assert starts(to_end(start(rule, [4], *rows))) == pytest.approx([0.0, 0.1, 0.3, 0.2])  # jobs 0 and 1 end together
    rows = (Job(0, 0.3, 1), Job(0.05, 1, 2), Job(0.1, 0.2, 1))
    assert starts(to_end(start(rule, [2], *rows))) == pytest.approx([0.0, 0.3, 0.1])  # job 2 ends at the reservation


def test_jobs_that_should_have_ended_are_counted_as_ending_now() -> None:
    """At 10 jobs 0 and 1 should have ended, one of them would be enough for job 2, and job 3 leaves it room."""
    rows = (Job(0, 20, 1, estimate=5), Job(0, 20, 1, estimate=7), Job(10, 5, 3), Job(11, 100, 1))
    assert starts(to_end(start(EASY, [4], *rows))) == [0.0, 0.0, 20.0, 11.0]
    # Told anew they seem to end at 20 and at 14, when nothing is left besides job 2.
    assert starts(to_end(start(EASY_DYNAMIC, [4], *rows))) == [0.0, 0.0, 20.0, 20.0]


@pytest.mark.parametrize("rule", [EASY_DYNAMIC, EASY_SHORTEST])
def test_a_job_that_should_end_now_and_runs_still_is_told_anew(rule: int) -> None:
    """Job 0 runs on at 10, then thought to end at 20; job 2 would end at 15, before job 1 could start."""
    rows = (Job(0, 20, 3, estimate=10), Job(10, 1, 4), Job(10, 5, 1))
    assert starts(to_end(start(rule, [4], *rows))) == [0.0, 20.0, 10.0]


@pytest.mark.parametrize("rule", [EASY_WITHIN, EASY])
def test_nothing_starts_beside_once_the_reservation_has_passed(rule: int) -> None:
    simulator = start(rule, [4], Job(0, 10, 3, estimate=4), Job(0, 5, 4), Job(5, 1, 1))
    assert starts(to_end(simulator)) == [0.0, 10.0, 15.0]


@pytest.mark.parametrize("rule", [EASY_WITHIN, EASY])
def test_an_estimate_that_is_too_long_lets_the_held_job_be_delayed(rule: int) -> None:
    """Job 0 ends at 2 and not, as was thought, at 10; by then job 2 has been started, and it runs until 6."""
    simulator = start(rule, [4], Job(0, 2, 3, estimate=10), Job(0, 1, 4), Job(1, 5, 1))
    assert starts(to_end(simulator)) == [0.0, 6.0, 1.0]


@pytest.mark.parametrize("rule", [EASY_WITHIN, EASY])
def test_the_backlog_is_looked_through_in_order_of_arrival(rule: int) -> None:
    """One slot. When job 1 has been held until 1, jobs 2 to 4 have come; of the two units left job 3 asks too many."""
    rows = (Job(0, 9, 2), Job(0, 1, 4), Job(1, 2, 1), Job(1, 2, 2), Job(1, 3, 1), Job(1, 1, 1))
    simulator = start(rule, [4], *rows, slots=1)
    act(simulator, 0, 0)
    # Job 2 starts as soon as it is seen, and job 4; job 5 in the place of job 2 at 3, and job 3 at 4.
    assert starts(simulator) == [0.0, 9.0, 1.0, 4.0, 1.0, 3.0]


@pytest.mark.parametrize("rule", [EASY_WITHIN, EASY])
def test_jobs_that_wait_already_are_looked_through_before_time_passes(rule: int) -> None:
    """When job 2 is chosen at 4 it must wait until 6, and job 3, which came at 4, is started at once beside job 1."""
    simulator = start(rule, [4], Job(0, 4, 3), Job(0, 2, 3), Job(1, 1, 4), Job(4, 1, 1))
    assert starts(to_end(simulator)) == [0.0, 4.0, 6.0, 4.0]


def beside(rule: int) -> PlainSimulator:
    """Four units, two of them taken until 4, when job 1 wants three; jobs 2 and 3 want one each for long."""
    return start(rule, [4], Job(0, 4, 2), Job(0, 2, 3), Job(1, 10, 1), Job(1, 10, 1))


def test_easy_starts_a_long_job_beside_which_the_held_one_will_still_fit() -> None:
    simulator = to_end(beside(EASY))
    assert starts(simulator) == [0.0, 4.0, 1.0, 6.0]  # job 2 takes the only unit that is left beside job 1


def test_easy_within_starts_no_job_that_outlasts_the_reservation() -> None:
    simulator = to_end(beside(EASY_WITHIN))
    assert starts(simulator) == [0.0, 4.0, 4.0, 6.0]


def test_a_job_that_ends_before_the_reservation_takes_nothing_of_what_is_left_beside() -> None:
    rows = (Job(0, 4, 2), Job(0, 2, 3), Job(1, 2, 1), Job(1, 10, 1))
    assert starts(to_end(start(EASY, [4], *rows))) == [0.0, 4.0, 1.0, 1.0]


@pytest.mark.parametrize(("asked", "left"), [(0, 1), (1, 0)])
def test_what_is_left_beside_depends_on_the_machine_asked_for(asked: int, left: int) -> None:
    """Job 0 has one of two units on both machines until 4; job 1 wants a whole machine."""
    simulator = start(EASY, [2, 2], Job(0, 4, 1, nodes=2), Job(0, 1, 2), Job(1, 10, 1))
    act(simulator, 0, asked)
    assert on(simulator) == [0, asked, left]
    assert starts(simulator) == [0.0, 4.0, 1.0]


@pytest.mark.parametrize(("wanted", "starts_at"), [(2, [0.0, 0.0, 8.0, 8.0]), (3, [0.0, 0.0, 8.0, 1.0])])
def test_the_reservation_gives_back_jobs_in_order_of_their_estimated_ends(wanted: int, starts_at: list[float]) -> None:
    """Job 1 seems to end at 3 and job 0 at 6; that is when two units and three are promised. Job 3 would end at 5."""
    rows = (Job(0, 8, 1, estimate=6), Job(0, 8, 1, estimate=3), Job(0, 1, wanted), Job(1, 4, 1))
    assert starts(to_end(start(EASY_WITHIN, [3], *rows))) == starts_at


# --- the end of an episode -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_the_limit_cuts_the_episode_and_unfinished_jobs_are_counted_to_it(rule: int) -> None:
    """One unit from 1 to 6: job 0 until 3, job 1 until the cut, job 2 never, and job 3 has not come."""
    rows = (Job(1, 2, 1), Job(1, 10, 1), Job(1, 1, 1), Job(20, 1, 1))
    simulator = start(rule, [1], *rows, time_limit=5.0, unit_cost=1.0)
    while not simulator.done:
        act(simulator, 0)
    placed = simulator.placed()
    np.testing.assert_array_equal(placed.start, [1.0, 3.0, nan, nan])
    np.testing.assert_array_equal(placed.finish, [3.0, nan, nan, nan])
    assert placed.machine.tolist() == [0, 0, -1, -1]
    assert placed.end.tolist() == [6.0]
    assert placed.busy.tolist() == [5.0]
    assert simulator.cost == 2.0 + 5.0 + 5.0
    assert simulator.rows.tolist() == []


def test_void_does_not_pass_the_limit() -> None:
    simulator = start(GREEDY, [1], Job(2, 1, 1), pause=2.0, time_limit=3.0, unit_cost=1.0)
    act(simulator, 3, 3)
    assert simulator.costs == [(2.0, 2.0), (1.0, 1.0)]
    assert simulator.placed().end.tolist() == [5.0]
    assert simulator.rows.tolist() == []


@pytest.mark.parametrize("rule", RULES)
def test_jobs_that_end_at_the_limit_itself_are_finished(rule: int) -> None:
    simulator = to_end(start(rule, [2], Job(0, 5, 1), Job(1, 4, 1), time_limit=5.0))
    assert finishes(simulator) == [5.0, 5.0]


@pytest.mark.parametrize("rule", RULES)
def test_an_episode_without_jobs_is_over_at_once(rule: int) -> None:
    simulator = start(rule, [1])
    assert simulator.rows.tolist() == []
    assert simulator.cost == 0.0
    assert simulator.placed().start.tolist() == []


@pytest.mark.parametrize("rule", RULES)
def test_the_last_completions_are_played_without_asking(rule: int) -> None:
    simulator = start(rule, [2], Job(0, 3, 1), Job(0, 8, 1))
    act(simulator, 0, 0)
    assert simulator.rows.tolist() == []
    assert simulator.placed().end.tolist() == [8.0]


@pytest.mark.parametrize("rule", RULES)
def test_the_cluster_stands_empty_until_the_next_arrival(rule: int) -> None:
    simulator = start(rule, [1], Job(0, 1, 1), Job(5, 1, 1), unit_cost=1.0)
    act(simulator, 0)
    assert view(simulator).now.tolist() == [5.0]
    assert sum(cost for _, cost in simulator.costs) == 1.0
    assert sum(passed for passed, _ in simulator.costs) == 5.0


# --- cost and use ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_weighed_by_one_over_the_duration_the_cost_is_the_sum_of_slowdowns(rule: int) -> None:
    rows = (Job(0.5, 4, 3), Job(0.5, 2, 4), Job(1, 0.25, 1), Job(3, 16, 2, estimate=1), Job(3, 1, 2), Job(9.25, 8, 1))
    simulator = to_end(start(rule, [4], *rows, slots=2))
    placed, there = simulator.placed(), jobs(list(rows))
    # All numbers are sums of powers of two, so nothing is rounded.
    assert simulator.cost == float(((placed.finish - there.arrival) / there.duration).sum())


def test_use_is_the_share_of_all_capacity_averaged_over_resources() -> None:
    """Until 4 job 0 has 1 of 4 and 2 of 4, until 6 job 1 has 2 of 4 and none."""
    simulator = start(GREEDY, [(2, 4), (2, 0)], Job(0, 4, (1, 2)), Job(0, 6, (2, 0)))
    act(simulator, 0 * 2 + 0, 0 * 2 + 1)
    assert simulator.placed().busy.tolist() == [4 * (1 / 4 + 2 / 4) / 2 + 6 * (2 / 4 + 0) / 2]


def test_each_node_of_a_job_is_in_use() -> None:
    simulator = start(GREEDY, [2, 2], Job(0, 3, 1, nodes=2))
    act(simulator, 0)
    assert simulator.placed().busy.tolist() == [3 * 2 / 4]


def test_a_resource_that_no_machine_has_is_never_in_use() -> None:
    simulator = to_end(start(GREEDY, [(2, 0)], Job(0, 3, (1, 0))))
    assert simulator.placed().busy.tolist() == [3 * (1 / 2 + 0) / 2]


# --- jobs that are refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([Job(1, 1, 1), Job(0, 1, 1)], "jobs are not in order of arrival"),
        ([Job(0, 1, 1), Job(0, 0, 1)], "job 1 has duration 0.0; expected more than 0"),
        ([Job(0, 1, 1, estimate=-2)], "job 0 has estimate -2.0; expected more than 0"),
        ([Job(0, 1, 1, nodes=0)], "job 0 has nodes 0; expected more than 0"),
        ([Job(0, 1, 3)], r"job 0 wants \[3\] thousandths on 1 machines; 0 of 2 can hold it"),
        ([Job(0, 1, 2, nodes=2)], r"job 0 wants \[2\] thousandths on 2 machines; 1 of 2 can hold it"),
        ([Job(0, 1, 1, kinds=0b10)], r"job 0 wants \[1\] thousandths on 1 machines; 0 of 2 can hold it"),
    ],
)
def test_jobs_that_could_never_run_are_refused(rows: list[Job], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        start(GREEDY, [1, 2], *rows, unit_cost=1.0)


# --- any jobs whatever -----------------------------------------------------------------------------------------------


def random_episode(rng: np.random.Generator, rule: int, whole_times: bool, several_nodes: bool) -> PlainSimulator:
    """Draw machines of two kinds and jobs that fit on machines 0 and 1 at least; whole times make many ties."""
    count = 30
    times = rng.integers(0, 20, count) if whole_times else rng.uniform(0, 20, count)
    durations = rng.integers(1, 8, count) if whole_times else rng.uniform(0.1, 8, count)
    rows = [
        Job(
            arrival=float(arrival),
            duration=float(duration),
            demand=(int(rng.integers(0, 5)), int(rng.integers(0, 3))),
            estimate=float(duration * rng.choice([0.5, 1.0, 3.0])),
            nodes=int(rng.integers(1, 3)) if several_nodes else 1,
            kinds=int(rng.choice([0b01, 0b11])),
        )
        for arrival, duration in zip(np.sort(times), durations, strict=True)
    ]
    return start(rule, [(4, 2), (6, 4), (9, 3)], *rows, kind=[0, 0, 1], slots=4, pause=1.5, time_limit=inf)


def play_at_random(simulator: PlainSimulator, rng: np.random.Generator) -> None:
    """Choose any action, void included, but none that is not legal for long: half of them are the first legal one."""
    while not simulator.done:
        legal = view(simulator).legal.ravel()
        act(simulator, int(rng.integers(0, len(legal) + 1)) if rng.random() < 0.5 else int(legal.argmax()))


@pytest.mark.parametrize("whole_times", [True, False])
@pytest.mark.parametrize("several_nodes", [True, False])
@pytest.mark.parametrize("rule", RULES)
def test_whatever_is_chosen_the_cluster_keeps_its_promises(rule: int, several_nodes: bool, whole_times: bool) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        simulator = random_episode(rng, rule, whole_times, several_nodes)
        play_at_random(simulator, rng)
        there, placed = simulator.jobs, simulator.placed()
        assert (placed.start >= there.arrival).all()
        np.testing.assert_array_equal(placed.finish, placed.start + there.duration)
        assert placed.end[0] == placed.finish.max()
        assert sum(passed for passed, _ in simulator.costs) == pytest.approx(placed.end[0] - there.arrival[0])
        assert simulator.cost == pytest.approx(((placed.finish - there.arrival) / there.duration).sum())
        amounts = (there.duration * there.nodes)[:, None] * there.demand / simulator.machines.capacity.sum(axis=0)
        assert placed.busy[0] == pytest.approx(amounts.sum(axis=0).mean())
        assert (simulator.free == simulator.machines.capacity).all()
        if not several_nodes:
            assert_no_machine_holds_too_much(simulator)


def assert_no_machine_holds_too_much(simulator: PlainSimulator) -> None:
    there, placed, machines = simulator.jobs, simulator.placed(), simulator.machines
    for time in placed.start:  # what is held grows at no other time
        running = (placed.start <= time) & (time < placed.finish)
        for machine, capacity in enumerate(machines.capacity):
            held = there.demand[running & (placed.machine == machine)]
            assert (held.sum(axis=0) <= capacity).all()
    assert (there.kinds >> machines.kind[placed.machine].astype(np.uint64) & np.uint64(1)).all()


@pytest.mark.parametrize("whole_times", [True, False])
def test_blocking_first_come_first_served_starts_jobs_in_order_of_arrival(whole_times: bool) -> None:
    for seed in range(5):
        simulator = random_episode(np.random.default_rng(seed), BLOCKING, whole_times, several_nodes=True)
        started = to_end(simulator).placed().start
        assert (np.diff(started) >= 0).all()


# --- reservations made anew ------------------------------------------------------------------------------------------

ANEW = (EASY_DYNAMIC, EASY_SHORTEST)


@pytest.mark.parametrize("rule", ANEW)
def test_events_of_one_time_are_seen_together_where_decisions_are_made_anew(rule: int) -> None:
    simulator = start(rule, [2], Job(0, 4, 2), Job(0, 3, 2), Job(4, 1, 2))
    assert view(simulator).duration.tolist() == [[4.0, 3.0, 0.0]]
    act(simulator, 0, 0)
    assert view(simulator).now.tolist() == [4.0]
    assert view(simulator).duration.tolist() == [[3.0, 1.0, 0.0]]


@pytest.mark.parametrize("rule", ANEW)
def test_another_job_may_be_put_at_the_head_after_each_event(rule: int) -> None:
    simulator = start(rule, [2], Job(0, 4, 2), Job(0, 3, 2), Job(1, 1, 2))
    act(simulator, 0, 0)  # job 1 cannot start yet
    assert view(simulator).now.tolist() == [1.0]
    act(simulator, 1, 1, 0, 0)
    assert starts(simulator) == [0.0, 5.0, 4.0]


OVERRUN = (Job(0, 10, 3, estimate=2), Job(0, 5, 4), Job(5, 3, 1), Job(5, 2, 1), Job(9, 6, 1))


def test_a_job_that_overruns_is_told_to_run_twice_as_long_until_that_lies_ahead() -> None:
    """Job 0 runs until 10 and is told to end at 2; at 5 that is 8, and at 8 it is 16."""
    # In order of arrival job 2 starts at 5, for it ends at 8, and at 8 job 3, for it ends before 16.
    assert starts(to_end(start(EASY_DYNAMIC, [4], *OVERRUN, slots=9))) == [0.0, 10.0, 5.0, 8.0, 15.0]
    # The shortest first, job 3 starts at 5; at 7 job 2 would end at 10 and not at 8, at 9 it would end before 16.
    assert starts(to_end(start(EASY_SHORTEST, [4], *OVERRUN, slots=9))) == [0.0, 12.0, 9.0, 5.0, 17.0]


def two_behind(rule: int) -> PlainSimulator:
    """One unit of four is left until 10, when job 1 wants all; a long job comes at 1, and with it a short one."""
    return to_end(start(rule, [4], Job(0, 10, 3), Job(0, 1, 4), Job(1, 5, 1), Job(1, 3, 1), slots=2))


def test_others_start_in_order_of_arrival_or_the_shortest_first_from_the_backlog_too() -> None:
    assert starts(two_behind(EASY_DYNAMIC)) == [0.0, 10.0, 1.0, 6.0]
    assert starts(two_behind(EASY_SHORTEST)) == [0.0, 10.0, 4.0, 1.0]


@pytest.mark.parametrize("rule", ANEW)
def test_a_reservation_moves_forward_when_a_job_ends_before_its_estimate(rule: int) -> None:
    """Jobs 0 and 1 are told to end at 10; job 1 ends at 2, and job 3 then no more fits before the reservation at 5."""
    rows = (Job(0, 5, 2), Job(0, 2, 1, estimate=10), Job(0, 1, 3), Job(2, 7, 1), Job(3, 1, 2))
    assert starts(to_end(start(rule, [4], *rows, slots=9)))[2] == 5.0
