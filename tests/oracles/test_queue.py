"""Replays of a queue, worked by hand; of the reference and of the compiled one."""

from collections.abc import Sequence

import numpy as np
import pytest
from queue_builders import Job, queue

from pipeline.sites.replay import LINEAR, Backfill, Order, Queue, replay
from tests.oracles.queue import Replayed, plain_replay

EASY = Backfill()
MANY = Backfill(reservations=100)
# A until 10 holds 3 of 4 processors, and B, which needs all, is reserved at 10. Limits of C and D end at 10 and 23.
SHORT_AND_LONG = (Job(0, 10, 3), Job(1, 10, 4), Job(2, 5, limit=8), Job(3, 5, limit=20))


def linear(q: Queue, slope: float = 1.0, static: Sequence[float] | None = None) -> Order:
    return Order(LINEAR, np.zeros(len(q.submit)) if static is None else np.array(static, dtype=float), slope=slope)


def plain(q: Queue, order: Order | None = None, backfill: Backfill = EASY) -> Replayed:
    order = linear(q) if order is None else order
    return plain_replay(q, order, backfill, q.submit, np.argsort(q.submit, kind="stable"))


def starts(q: Queue, order: Order | None = None, backfill: Backfill = EASY) -> list[float]:
    """The starts of both, which have to be the same."""
    order = linear(q) if order is None else order
    found = plain(q, order, backfill).start
    compiled = replay(q, order, backfill, q.submit, np.argsort(q.submit, kind="stable"))
    assert compiled.tolist() == found
    return found


def test_a_short_job_is_backfilled_and_one_that_would_delay_the_reservation_waits() -> None:
    q = queue([4], *SHORT_AND_LONG)
    assert starts(q) == [0, 10, 2, 20]
    assert plain(q).reserved[1] == [10, 10, 10, 10]  # at 1, 2, 3 and 7


def test_without_a_reservation_every_job_that_fits_starts() -> None:
    """At 10 A and C have ended, and D still holds 1 of 4."""
    q = queue([4], Job(0, 10, 2), Job(1, 10, 4), Job(2, 5), Job(3, 50))
    assert starts(q, backfill=Backfill(reservations=0)) == [0, 53, 2, 3]
    assert starts(q) == [0, 10, 2, 20]


def test_a_long_job_is_backfilled_on_what_the_reservation_leaves_and_the_next_one_waits() -> None:
    """B needs 3 of 4 at 10, so that one of C and D may run on beside it."""
    assert starts(queue([4], Job(0, 10, 2), Job(1, 10, 3), Job(2, 20), Job(3, 20))) == [0, 10, 2, 20]


def test_partitions_on_separate_machines_do_not_block_each_other() -> None:
    jobs = (Job(0, 100, 2), Job(1, 10, 2), Job(2, 10, 1, partition=1), Job(3, 10, 2, partition=1))
    q = queue([2, 2], *jobs, Job(4, 20, 1, partition=1), members=[[0], [1]])
    assert starts(q) == [0, 100, 2, 12, 22]  # also D has a reservation, of its own partition: E, which fits at 4, waits


def test_a_higher_tier_comes_first_whatever_the_priorities() -> None:
    jobs = (Job(0, 10, 2), Job(1, 10, 2), Job(2, 10, 2, partition=1))
    assert starts(queue([2], *jobs, members=[[0], [0]], tier=[0, 1])) == [0, 20, 10]
    assert starts(queue([2], *jobs, members=[[0], [0]])) == [0, 10, 20]


def test_jobs_take_the_first_machines_with_room_of_every_resource() -> None:
    """B needs 3 processors, of which the first machine has 2 left. D needs two machines at once, C's among them."""
    jobs = (Job(0, 10, (2, 4)), Job(0, 10, (3, 1)), Job(1, 5, (2, 4)), Job(2, 5, (1, 1), nodes=2))
    q = queue([(4, 8), (4, 2)], *jobs)
    assert starts(q) == [0, 0, 1, 6]
    assert plain(q).machines == [[0], [1], [0], [0, 1]]


def test_a_backfilled_job_takes_a_machine_that_is_not_reserved() -> None:
    """B needs both processors of the first machine at 10; C, which fits on either now, runs until 22 on the second."""
    jobs = (Job(0, 10, 1), Job(1, 10, 2, partition=1), Job(2, 20, 1))
    q = queue([2, 1], *jobs, members=[[0, 1], [0]])
    assert starts(q) == [0, 10, 2]
    assert plain(q).machines == [[0], [0], [1]]


def test_many_reservations_protect_every_waiting_job() -> None:
    """B is reserved at 10 and C at 20. D, for 100 s, leaves room for B and not for C."""
    q = queue([4], Job(0, 10, 2), Job(1, 10, 3), Job(2, 10, 4), Job(3, 100))
    assert starts(q) == [0, 10, 103, 3]
    assert starts(q, backfill=MANY) == [0, 10, 20, 30]


def test_the_limit_of_a_job_that_overruns_it_is_doubled() -> None:
    """A's limit is 10, from 12 on 20, from 21 on 40: C, until 18, and D, until 36, do not delay B."""
    q = queue([2], Job(0, 35, limit=10), Job(1, 10, 2), Job(12, 5, limit=6), Job(21, 5, limit=15))
    assert starts(q) == [0, 35, 12, 21]
    assert plain(q).reserved[1] == [10, 20, 20, 40, 40]


def test_a_pass_looks_at_no_more_jobs_than_it_may() -> None:
    """Of one: at 10 B starts, at 20 C and when it ends, at 25, D."""
    assert starts(queue([4], *SHORT_AND_LONG), backfill=Backfill(tested=1)) == [0, 10, 20, 25]


def test_no_reservation_is_beyond_the_window() -> None:
    q = queue([5], Job(0, 10, 3), Job(1, 10, 5), Job(2, 5, limit=8), Job(3, 5, limit=20))
    assert starts(q) == [0, 10, 2, 20]
    assert starts(q, backfill=Backfill(window=5.0)) == [0, 10, 2, 3]  # at 3, B would be reserved 7 s ahead
    assert starts(q, backfill=Backfill(window=7.0)) == [0, 10, 2, 20]


def test_priorities_come_before_submissions_and_numbers_decide_among_equals() -> None:
    jobs = (Job(0, 10), Job(1, 10), Job(2, 10), Job(2, 10))
    q = queue([1], *jobs)
    assert starts(q, linear(q, slope=0.0)) == [0, 10, 20, 30]
    assert starts(q, linear(q, slope=0.0, static=[0, 0, 1, 1])) == [0, 30, 10, 20]
    # At 10 the second has waited 9 s and the third 8 s.
    assert starts(q, linear(q, slope=1.0, static=[0, 0, 1.5, 0])) == [0, 20, 10, 30]
    assert starts(q, linear(q, slope=2.0, static=[0, 0, 1.5, 0])) == [0, 10, 20, 30]


def test_a_job_that_has_waited_too_long_comes_first() -> None:
    q = queue([1], Job(0, 100), Job(1, 50), Job(60, 5), Job(62, 5))
    shortest = Order(LINEAR, -q.limit)
    assert starts(q, shortest) == [0, 110, 100, 105]
    assert starts(q, shortest._replace(longest=90.0)) == [0, 100, 150, 155]
    assert starts(q, shortest._replace(longest=99.0)) == [0, 105, 100, 155]  # at 100 for 99 s, which is not longer


def test_the_user_who_has_used_less_comes_first() -> None:
    """At 10, A's user has used all that was used, and a share is a half: 2^(-1 / 0.5) is 0.25.

    So it takes B's own priority 0.75 to come before C, whose user has used nothing.
    """
    q = queue([1], Job(0, 10), Job(1, 10), Job(2, 10, user=1))
    order = linear(q, slope=0.0)._replace(fair_share=1.0, half_life=10.0)
    assert starts(q, order._replace(fair_share=0.0)) == [0, 10, 20]
    assert starts(q, order) == [0, 20, 10]
    assert starts(q, order._replace(static=np.array([0, 0.74, 0]))) == [0, 20, 10]
    assert starts(q, order._replace(static=np.array([0, 0.76, 0]))) == [0, 10, 20]


def test_users_without_a_job_have_shares_and_have_used_nothing() -> None:
    """At 10, with two more users, A's user has used all, which is four times its share: 2^-4; in Fair Tree 1/4.

    C's user has used nothing, so its factor is 1. For B to come first, its own priority must exceed the difference.
    """
    q = queue([1], Job(0, 10), Job(1, 10), Job(2, 10, user=1))
    order = linear(q, slope=0.0)._replace(fair_share=1.0, half_life=10.0, users=4)
    for tree, least in ((False, 1 - 2**-4), (True, 1 - 1 / 4)):
        for own, expected in ((least - 0.01, [0, 20, 10]), (least + 0.01, [0, 10, 20])):
            found = order._replace(fair_tree=tree, static=np.array([0, own, 0]))
            assert starts(q, found) == expected


def test_fair_tree_ranks_users_by_usage_however_little_they_differ() -> None:
    """At 10, A's user has used 10 s and D's none: 1/2 and 1 of the users have not used less.

    At 11, both have used something: D's user 1 s, which still leaves 1/2 for A's.
    """
    q = queue([1], Job(0, 10), Job(1, 10), Job(2, 1, user=1), Job(3, 1, user=1))
    order = linear(q, slope=0.0)._replace(fair_share=1.0, half_life=1e18, fair_tree=True)
    assert starts(q, order) == [0, 12, 10, 11]
    for own, expected in ((0.49, [0, 12, 10, 11]), (0.51, [0, 10, 20, 21])):
        assert starts(q, order._replace(static=np.array([0, own, 0, 0]))) == expected
    equal = queue([2], Job(0, 10), Job(0, 10, user=1), Job(1, 10, user=2), Job(2, 10, user=1), Job(3, 10))
    assert starts(equal, linear(equal, slope=0.0)._replace(fair_share=1.0, half_life=1.0, fair_tree=True)) == [
        0, 0, 10, 10, 20,
    ]  # fmt: skip


def test_factors_are_those_of_the_last_multiple_of_the_period() -> None:
    """At 10, A has run, but factors of a period of 100 are those of time 0, when nobody had used anything."""
    q = queue([1], Job(0, 10), Job(1, 10), Job(2, 10, user=1))
    for tree in (False, True):
        order = linear(q, slope=0.0)._replace(fair_share=1.0, half_life=10.0, fair_tree=tree)
        assert starts(q, order._replace(period=100.0)) == [0, 10, 20]
        assert starts(q, order._replace(period=4.0)) == [0, 20, 10]


def test_past_usage_decays() -> None:
    """At 30, users 0 and 1 have used 10 seconds each, the former ten and the latter no half-lives ago, and 2 none."""
    q = queue([1], Job(0, 10), Job(20, 10, user=1), Job(25, 10, user=1), Job(26, 10), Job(27, 10, user=2))
    order = linear(q, slope=0.0)._replace(fair_share=1.0, half_life=1.0)
    assert starts(q, order) == [0, 20, 50, 40, 30]
    assert starts(q, order._replace(half_life=1e18)) == [0, 20, 40, 50, 30]  # a tie of 0 and 1: the first job


def test_a_job_that_fits_nowhere_is_an_error_of_the_reference() -> None:
    q = queue([1], Job(0, 10, 2))
    with pytest.raises(AssertionError, match="job 0 does not fit"):
        plain(q)
