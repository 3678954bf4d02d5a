"""The rules of the cluster that groups share, followed by hand."""

from math import nan
from typing import NamedTuple

import numpy as np
import pytest

from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.groups.env.nouns import Jobs, Setting, SharedCluster
from tests.oracles.groups import PlainGroups

LONG_FIRST = 1  # place in `orders`


class Job(NamedTuple):
    """One job by hand; a whole number as demand is that of one resource. Queue 0 is served first unless set."""

    arrival: float
    duration: float
    demand: int | tuple[int, ...]
    group: int = 0
    queue: int = 0
    estimate: float | None = None
    weight: float = 1.0


def begin(
    *rows: Job,
    capacity: tuple[int, ...] = (10,),
    borrowing: bool = False,
    interval: float = 10.0,
    time_limit: float = 1000.0,
) -> PlainGroups:
    """Begin an episode of two groups with two queues each."""
    jobs = Jobs(
        arrival=np.array([row.arrival for row in rows], dtype=float),
        duration=np.array([row.duration for row in rows], dtype=float),
        estimate=np.array([row.duration if row.estimate is None else row.estimate for row in rows], dtype=float),
        demand=np.array([row.demand for row in rows], dtype=np.int64).reshape(-1, len(capacity)),
        group=np.array([row.group for row in rows], dtype=np.int64),
        queue=np.array([row.queue for row in rows], dtype=np.int64),
    )
    orders = np.array([[0, 1], [1, 0]])
    cluster = SharedCluster(np.array(capacity), 2, orders, interval, borrowing, time_limit)
    return PlainGroups(jobs, cluster, np.array([row.weight for row in rows], dtype=float))


def give(first: int | tuple[int, ...], second: int | tuple[int, ...], order: tuple[int, int] = (0, 0)) -> Setting:
    share = np.array([first, second], dtype=np.int64).reshape(1, 2, -1)
    return Setting(share, np.array([order], dtype=np.int64))


def step(simulator: PlainGroups, *settings: Setting) -> list[list[float]]:
    """Play an interval under each setting; return what each cost the groups."""
    costs = []
    for setting in settings:
        assert not simulator.over, "a decision is awaited"
        costs.append(simulator.step(setting).tolist())
    return costs


def starts(simulator: PlainGroups) -> FloatArray:
    return simulator.served().start


def same(found: FloatArray | IntArray, expected: list[float]) -> bool:
    return bool(np.array_equal(found, expected, equal_nan=True))


# Group 0 has six units. Job 0 (four units, until 4) leaves two, so job 1 (four) waits from 0 to 4: cost 2 * 4.
# Group 1 has four. Job 2 (three, until 3) leaves one, so job 3 (three) waits from its arrival, 1, to 3: cost 0.5 * 2.
FOUR = (
    Job(0, 4, 4, group=0, weight=1),
    Job(0, 8, 4, group=0, weight=2),
    Job(0, 3, 3, group=1, weight=1),
    Job(1, 9, 3, group=1, queue=1, weight=0.5),
)

# --- starts ----------------------------------------------------------------------------------------------------------


def test_jobs_start_within_their_groups_shares_and_wait_at_a_cost_where_these_are_used_up() -> None:
    simulator = begin(*FOUR)
    assert step(simulator, give(6, 4)) == [[8.0, 1.0]]
    assert simulator.over  # at 10 nobody waits, though two jobs run to 12
    served = simulator.served()
    assert same(served.start, [0, 4, 0, 3])
    assert same(served.finish, [4, 12, 3, 12])
    assert same(served.end, [12])
    # Tenths of the cluster: 4 * 4, 4 * 8, 3 * 3 and 3 * 9.
    assert served.busy == pytest.approx([(16 + 32 + 9 + 27) / 10])


def test_idle_units_of_others_are_left_idle_without_borrowing() -> None:
    simulator = begin(Job(0, 5, 6))
    assert step(simulator, give(5, 5)) == [[10.0, 0.0]]
    assert not simulator.over
    assert step(simulator, give(6, 4)) == [[0.0, 0.0]]
    assert same(starts(simulator), [10])


def test_idle_units_of_others_are_lent_with_borrowing() -> None:
    # Of ten units job 0 takes six; then there is no room for job 1 until 5.
    simulator = begin(Job(0, 5, 6), Job(0, 5, 5), borrowing=True)
    assert step(simulator, give(5, 5)) == [[5.0, 0.0]]
    assert same(starts(simulator), [0, 5])


def test_what_is_owned_starts_before_what_is_borrowed() -> None:
    # Job 0 arrived first and could borrow eight units; job 1 owns the five that it wants.
    simulator = begin(Job(0, 5, 8, group=0), Job(0, 4, 5, group=1), borrowing=True)
    assert step(simulator, give(5, 5)) == [[4.0, 0.0]]
    assert same(starts(simulator), [4, 0])


def test_units_that_are_lent_are_not_taken_back_from_a_job_that_runs() -> None:
    # Job 0 borrows all ten until 7; job 1, which owns five, arrives at 1 and waits six.
    simulator = begin(Job(0, 7, 10, group=0), Job(1, 1, 5, group=1), borrowing=True)
    assert step(simulator, give(5, 5)) == [[0.0, 6.0]]
    assert same(starts(simulator), [0, 7])


def test_shares_that_sum_to_more_than_the_cluster_give_no_more_than_it_has() -> None:
    simulator = begin(Job(0, 3, 7, group=0), Job(0, 3, 7, group=1))
    assert step(simulator, give(10, 10)) == [[0.0, 3.0]]
    assert same(starts(simulator), [0, 3])


def test_a_share_that_shrinks_is_drained_and_not_taken() -> None:
    # Group 0 holds eight: jobs 0 and 1, four each, until 12 and 15. From 10 on it has four units. At 12 it would use
    # 4 + 2 > 4, so job 2 (two units) waits until 15; it is the head of its queue from its arrival, 11, on.
    simulator = begin(Job(0, 12, 4), Job(0, 15, 4), Job(11, 1, 2))
    assert step(simulator, give(8, 2), give(4, 6)) == [[0.0, 0.0], [4.0, 0.0]]
    assert same(starts(simulator), [0, 0, 15])


def test_every_resource_must_fit() -> None:
    simulator = begin(Job(0, 2, (1, 3)), Job(0, 2, (1, 2)), capacity=(10, 4))
    assert step(simulator, give((5, 4), (5, 0))) == [[2.0, 0.0]]  # the first has left one of the second resource
    assert same(starts(simulator), [0, 2])


# --- order -----------------------------------------------------------------------------------------------------------


def test_nobody_overtakes_inside_a_queue_but_other_queues_are_looked_at() -> None:
    # Job 1, the head of queue 0, wants eight; six are free until 5. Job 2 behind it could start; job 3 of queue 1 does.
    simulator = begin(Job(0, 5, 4, group=1), Job(0, 1, 8), Job(0, 1, 1), Job(0, 1, 1, queue=1), borrowing=True)
    step(simulator, give(10, 4))
    assert same(starts(simulator), [0, 5, 5, 0])


def test_the_queue_set_to_be_first_is_served_first_though_its_job_arrived_later() -> None:
    rows = Job(0, 3, 5, queue=0), Job(0, 3, 5, queue=1)
    short, long = begin(*rows), begin(*rows)
    step(short, give(5, 5))
    step(long, give(5, 5, order=(LONG_FIRST, 0)))
    assert same(starts(short), [0, 3])
    assert same(starts(long), [3, 0])


def test_of_the_groups_candidates_the_one_that_arrived_first_starts() -> None:
    rows = Job(0, 3, 6, group=1), Job(0, 3, 6, group=0)
    simulator = begin(*rows)
    step(simulator, give(10, 10))
    assert same(starts(simulator), [0, 3])


def test_a_groups_candidate_is_its_first_queues_head_and_not_its_earliest_job() -> None:
    # Group 0 puts queue 1 first: its candidate is job 2, which job 1 of group 1 goes before; job 0 is the last of all.
    simulator = begin(Job(0, 3, 6), Job(0, 3, 6, group=1), Job(0, 3, 6, queue=1))
    step(simulator, give(10, 10, order=(LONG_FIRST, 0)))
    assert same(starts(simulator), [6, 0, 3])


# --- time ------------------------------------------------------------------------------------------------------------


def test_units_given_back_are_there_for_a_job_that_arrives_at_that_time() -> None:
    simulator = begin(Job(0, 4, 10), Job(4, 1, 10))
    assert step(simulator, give(10, 0)) == [[0.0, 0.0]]
    assert same(starts(simulator), [0, 4])


def test_jobs_that_arrive_together_are_all_there_when_starts_are_tried() -> None:
    # Job 1 arrives no sooner than job 0, and its queue is put first.
    simulator = begin(Job(2, 3, 10), Job(2, 3, 10, queue=1))
    step(simulator, give(10, 0, order=(LONG_FIRST, 0)))
    assert same(starts(simulator), [5, 2])


def test_what_happens_as_an_interval_ends_waits_for_the_next_setting() -> None:
    # At 10 job 0 ends and job 2 arrives. Job 1 would start under the old setting; the new one gives group 1 all.
    simulator = begin(Job(0, 10, 10, group=0), Job(1, 3, 10, group=0), Job(10, 2, 10, group=1))
    assert step(simulator, give(10, 0)) == [[9.0, 0.0]]
    view = simulator.observe()
    assert view.running.tolist() == [[0, 0]]
    assert view.waiting.tolist() == [[[1, 0], [1, 0]]]
    assert step(simulator, give(0, 10), give(10, 0)) == [[10.0, 0.0], [0.0, 0.0]]
    assert same(starts(simulator), [0, 20, 10])


def test_the_ends_of_intervals_are_products_and_not_running_sums() -> None:
    # 6 * 0.1 is 0.6000000000000001, and six times 0.1 added up is 0.6, at which the job would not be there yet.
    simulator = begin(Job(6 * 0.1, 1, 1), interval=0.1)
    step(simulator, *[give(5, 5)] * 6)
    view = simulator.observe()
    assert view.now.tolist() == [0.6000000000000001]
    assert view.waiting[0, 0, 0] == 1


def test_the_controller_is_asked_before_the_first_job_comes() -> None:
    simulator = begin(Job(25, 1, 1))
    view = simulator.observe()
    assert (view.now.tolist(), view.waiting.sum()) == ([0.0], 0)
    assert step(simulator, *[give(5, 5)] * 3) == [[0.0, 0.0]] * 3
    assert simulator.over
    assert same(simulator.served().end, [26])


def test_an_episode_without_jobs_is_over_at_once() -> None:
    simulator = begin()
    assert simulator.over
    assert (simulator.served().end.tolist(), simulator.served().busy.tolist()) == ([0.0], [0.0])
    with pytest.raises(ValueError, match="the episode is over since 0"):
        simulator.step(give(5, 5))


# --- the cut ---------------------------------------------------------------------------------------------------------


def test_an_episode_is_cut_at_the_first_decision_at_or_behind_its_limit() -> None:
    # Limit 15, so the cut is at 20. Job 0 ends at 20 and is finished; job 1 runs from 3 to 24, job 2 never starts,
    # job 3 has not arrived.
    rows = Job(0, 20, 2), Job(3, 21, 5), Job(4, 1, 10), Job(30, 1, 1)
    simulator = begin(*rows, time_limit=15.0)
    assert step(simulator, give(10, 0), give(10, 0)) == [[6.0, 0.0], [10.0, 0.0]]
    assert simulator.over
    served = simulator.served()
    assert same(served.start, [0, 3, nan, nan])
    assert same(served.finish, [20, nan, nan, nan])
    assert same(served.end, [20])
    assert served.busy == pytest.approx([0.2 * 20 + 0.5 * (20 - 3)])


def test_a_limit_at_a_decision_cuts_there() -> None:
    simulator = begin(Job(0, 1, 6), time_limit=10.0)
    step(simulator, give(5, 5))
    assert simulator.over
    assert same(simulator.served().finish, [nan])
    assert same(simulator.served().end, [10])


def test_jobs_that_have_started_all_end_where_nobody_waits_any_more_even_behind_the_limit() -> None:
    simulator = begin(Job(0, 50, 5), time_limit=10.0)
    step(simulator, give(5, 5))
    assert simulator.over
    served = simulator.served()
    assert (served.finish.tolist(), served.end.tolist(), served.busy.tolist()) == ([50.0], [50.0], [25.0])


# --- what if ---------------------------------------------------------------------------------------------------------


def test_what_if_says_what_step_would_cost_and_changes_nothing() -> None:
    simulator, copy = begin(*FOUR), begin(*FOUR)
    # With four and six units: job 1 waits for job 0 until 4 as before; jobs 2 and 3 fit together.
    assert simulator.what_if(give(4, 6)).tolist() == [8.0, 0.0]
    assert simulator.what_if(give(0, 0)).tolist() == [30.0, 10 + 0.5 * 9]
    for found, expected in zip(simulator.observe(), copy.observe(), strict=True):
        assert same(found, expected.tolist())
    assert same(starts(simulator), [nan] * 4)
    assert step(simulator, give(6, 4)) == step(copy, give(6, 4)) == [[8.0, 1.0]]


def test_alone_a_group_has_its_share_whatever_others_hold() -> None:
    # Job 0 borrows all ten until 25; job 1, which owns five, waits for it, but would start at once alone.
    simulator = begin(Job(0, 25, 10, group=0), Job(10, 1, 5, group=1), borrowing=True)
    step(simulator, give(5, 5))
    assert simulator.what_if(give(5, 5)).tolist() == [0.0, 10.0]
    assert simulator.what_if(give(5, 5), isolated=True).tolist() == [0.0, 0.0]
    assert simulator.what_if(give(5, 4), isolated=True).tolist() == [0.0, 10.0]


def test_alone_a_group_borrows_nothing() -> None:
    simulator = begin(Job(0, 4, 6), borrowing=True)
    assert simulator.what_if(give(5, 5)).tolist() == [0.0, 0.0]
    assert simulator.what_if(give(5, 5), isolated=True).tolist() == [10.0, 0.0]


def test_alone_groups_may_have_more_than_the_cluster_between_them() -> None:
    simulator = begin(Job(0, 4, 7, group=0), Job(0, 4, 7, group=1))
    assert simulator.what_if(give(10, 10)).tolist() == [0.0, 4.0]
    assert simulator.what_if(give(10, 10), isolated=True).tolist() == [0.0, 0.0]


def test_by_estimate_nobody_arrives_and_jobs_end_when_they_should() -> None:
    # Job 0 is said to end at 16 and ends at 13; job 1 waits for it, is said to run for 2 and runs for 6; job 2 waits
    # for job 1; job 3 arrives at 11 and is not known of at 10.
    rows = Job(0, 13, 10, estimate=16), Job(10, 6, 10, estimate=2), Job(10, 1, 10, weight=3), Job(11, 1, 10, group=1)
    simulator = begin(*rows)
    step(simulator, give(10, 10))
    # Job 1 from 13 to 19; job 2 at 19 until 20; job 3 from 11 to the end.
    assert simulator.what_if(give(10, 10)).tolist() == [3 + 3 * 9, 9.0]
    # By estimates: job 1 from 16 to 18, job 2 from 18 on.
    assert simulator.what_if(give(10, 10), by_estimate=True).tolist() == [6 + 3 * 8, 0.0]
    assert step(simulator, give(10, 10)) == [[30.0, 9.0]]


def test_by_estimate_a_job_that_runs_for_longer_than_it_said_ends_as_the_interval_begins() -> None:
    # Job 0 said 4 and runs for 30; at 10 it holds all. Told, job 1 starts at 10.
    simulator = begin(Job(0, 30, 10, estimate=4), Job(8, 1, 10))
    assert step(simulator, give(10, 0)) == [[2.0, 0.0]]
    assert simulator.what_if(give(10, 0)).tolist() == [10.0, 0.0]
    assert simulator.what_if(give(10, 0), by_estimate=True).tolist() == [0.0, 0.0]
    assert simulator.observe().running.tolist() == [[1, 0]]


def test_alone_and_by_estimate_go_together() -> None:
    # Group 1 holds its five until 14, by estimate; alone, job 1 waits for that and not for the other five of job 2.
    simulator = begin(Job(0, 12, 5, group=1, estimate=14), Job(1, 5, 5, group=1), Job(2, 40, 5, group=0))
    step(simulator, give(5, 5))
    assert simulator.what_if(give(5, 5), isolated=True, by_estimate=True).tolist() == [0.0, 4.0]
    assert simulator.what_if(give(5, 5), isolated=True).tolist() == [0.0, 2.0]


# --- what the controller sees ----------------------------------------------------------------------------------------


def test_a_controller_sees_at_first_equal_shares_and_who_is_there_at_the_beginning() -> None:
    view = begin(*FOUR).observe()
    assert view.share.tolist() == [[[5], [5]]]
    assert view.order.tolist() == [[0, 0]]
    assert view.waiting.tolist() == [[[2, 0], [1, 0]]]
    assert view.used.tolist() == [[[0], [0]]]
    # Three tenths of what arrived at 0: two jobs with 0.4 * 4 + 0.4 * 8 of work, and one with 0.3 * 3.
    assert view.recent_jobs == pytest.approx(np.array([[[0.6, 0], [0.3, 0]]]))
    assert view.recent_work == pytest.approx(np.array([[[0.3 * 4.8, 0], [0.3 * 0.9, 0]]]))


def test_a_controller_sees_all_there_is_to_see() -> None:
    # Of all units, mean over ten and four of the two resources, jobs want 0.35, 0.5, 0.15, 0.225, 0.3 and 0.55.
    rows = (
        Job(0, 30, (2, 2), group=0, estimate=18),  # runs from 0
        Job(1, 30, (5, 2), group=1, estimate=3),  # runs from 1, longer than estimated
        Job(3, 5, (3, 0), group=0, estimate=4),  # waits: group 0 has two units of the first
        Job(6, 5, (2, 1), group=0, estimate=8),  # waits behind it
        Job(8, 5, (1, 2), group=1, queue=1, estimate=2),  # waits: the second resource is used up
        Job(12, 5, (6, 2), group=0, estimate=1),  # is not there yet
    )
    simulator = begin(*rows, capacity=(10, 4))
    assert step(simulator, give((2, 4), (8, 2), order=(0, LONG_FIRST))) == [[7.0 + 4.0, 2.0]]
    view = simulator.observe()
    assert view.now.tolist() == [10.0]
    assert view.waiting.tolist() == [[[2, 0], [0, 1]]]
    assert view.waiting_demand.tolist() == [[[[5, 1], [0, 0]], [[0, 0], [1, 2]]]]
    assert view.waiting_work == pytest.approx(np.array([[[0.15 * 4 + 0.225 * 8, 0], [0, 0.3 * 2]]]))
    assert view.waited.tolist() == [[[7.0 + 4.0, 0.0], [0.0, 2.0]]]
    assert view.head_waited.tolist() == [[[7.0, 0.0], [0.0, 2.0]]]
    assert view.head_demand.tolist() == [[[[3, 0], [0, 0]], [[0, 0], [1, 2]]]]
    assert view.head_estimate.tolist() == [[[4.0, 0.0], [0.0, 2.0]]]
    assert view.running.tolist() == [[1, 1]]
    assert view.used.tolist() == [[[2, 2], [5, 2]]]
    # Job 0 has eight of 18 left; job 1 has overrun what it said. Both give back by 20, by their estimates.
    assert view.left == pytest.approx(np.array([[0.35 * 8, 0.0]]))
    assert view.releasing.tolist() == [[[2, 2], [5, 2]]]
    assert view.share.tolist() == [[[2, 4], [8, 2]]]
    assert view.order.tolist() == [[0, LONG_FIRST]]
    # At 0 job 0 had arrived; since then jobs 2 and 3 to its queue, and one job to each queue of group 1.
    assert view.recent_jobs == pytest.approx(np.array([[[0.7 * 0.3 + 0.3 * 2, 0], [0.3, 0.3]]]))
    first = 0.7 * (0.3 * 0.35 * 18) + 0.3 * (0.15 * 4 + 0.225 * 8)
    assert view.recent_work == pytest.approx(np.array([[[first, 0], [0.3 * 0.5 * 3, 0.3 * 0.3 * 2]]]))


def test_units_are_releasing_when_they_should_come_back_by_the_intervals_end() -> None:
    simulator = begin(Job(0, 30, 3, estimate=20), Job(0, 30, 4, estimate=20.5))
    step(simulator, give(10, 0))
    assert simulator.observe().releasing.tolist() == [[[3], [0]]]
    assert simulator.observe().left == pytest.approx(np.array([[0.3 * 10 + 0.4 * 10.5, 0.0]]))


def test_an_arrival_as_an_interval_ends_is_recent_in_that_interval() -> None:
    simulator = begin(Job(10, 1, 1), Job(20.5, 1, 1))
    step(simulator, give(5, 5))
    assert simulator.observe().recent_jobs[0, 0, 0] == pytest.approx(0.3)
    step(simulator, give(5, 5))
    assert simulator.observe().recent_jobs[0, 0, 0] == pytest.approx(0.7 * 0.3)


def test_jobs_that_no_cluster_could_run_are_refused() -> None:
    with pytest.raises(ValueError, match=r"job 0 wants \[11\] units; there are \[10\]"):
        begin(Job(0, 1, 11))
