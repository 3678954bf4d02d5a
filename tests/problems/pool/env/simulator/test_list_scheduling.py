"""List scheduling: what an order becomes, that starts in order lose nothing, and that the search finds the best."""

from itertools import permutations

import numba
import numpy as np
import pytest
from builders import jobset
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.types import IntArray, keys
from pipeline.problems.pool.env.nouns import JobBatch, JobSet, batch
from pipeline.problems.pool.env.simulator.list_scheduling import improved


def some_jobs(rng: np.random.Generator, count: int, capacity: tuple[int, ...], late: int = 0) -> JobSet:
    arrival = np.sort(rng.integers(0, late + 1, count))
    duration = rng.integers(1, 8, count)
    return JobSet(arrival, duration, np.column_stack([rng.integers(0, units + 1, count) for units in capacity]))


def total_slowdown(jobs: JobBatch, start: IntArray) -> float:
    return float(((start + jobs.duration - jobs.arrival) / jobs.duration).sum())


def assert_valid(jobs: JobBatch, capacity: tuple[int, ...], start: IntArray) -> None:
    assert (start >= jobs.arrival).all()
    for b in range(jobs.episodes):
        mine = range(jobs.first[b], jobs.first[b + 1])
        for step in range(max(int(start[j] + jobs.duration[j]) for j in mine)):
            running = [j for j in mine if start[j] <= step < start[j] + jobs.duration[j]]
            assert (jobs.demand[running].sum(axis=0) <= capacity).all()


def listed(jobs: JobBatch, capacity: tuple[int, ...], orders: IntArray) -> IntArray:
    """The schedule of an order, with no search."""
    return improved(jobs, capacity, orders, evaluations=1)


def plain(jobs: JobSet, capacity: tuple[int, ...], order: IntArray) -> IntArray:
    """List scheduling, written to be read."""
    free = np.tile(capacity, (int(jobs.arrival.max() + jobs.duration.sum()), 1))
    start = np.zeros(len(order), dtype=np.int64)
    for job in order:
        begin = int(jobs.arrival[job])
        while (free[begin : begin + jobs.duration[job]] < jobs.demand[job]).any():
            begin += 1
        free[begin : begin + jobs.duration[job]] -= jobs.demand[job]
        start[job] = begin
    return start


def best_of_all(jobs: JobSet, capacity: tuple[int, ...]) -> float:
    orders = permutations(range(len(jobs.arrival)))
    return min(total_slowdown(batch([jobs]), plain(jobs, capacity, np.array(order))) for order in orders)


def test_a_later_job_fills_the_gap_that_an_earlier_one_left() -> None:
    # Of 3 units: A takes 2 of steps 0-3, B all of 4-5; C needs one unit for 4 steps and fits beside A.
    jobs = batch([jobset((0, 4, 2), (0, 2, 3), (0, 4, 1))])
    assert listed(jobs, (3,), np.array([0, 1, 2])).tolist() == [0, 4, 0]


def test_a_gap_too_short_is_left_open() -> None:
    # As above, but C needs 5 steps: it would overlap B, and begins after it.
    jobs = batch([jobset((0, 4, 2), (0, 2, 3), (0, 5, 1))])
    assert listed(jobs, (3,), np.array([0, 1, 2])).tolist() == [0, 4, 6]


def test_a_job_never_starts_before_it_arrives() -> None:
    jobs = batch([jobset((0, 2, 1), (5, 1, 1), (6, 3, 3))])
    assert listed(jobs, (3,), np.array([2, 1, 0])).tolist() == [0, 5, 6]


def test_every_resource_counts_whatever_word_it_lies_in() -> None:
    for scarce in range(9):
        demand = [3 if r == scarce else 1 for r in range(9)]
        jobs = batch([jobset((0, 2, *demand), (0, 2, *demand))])
        assert listed(jobs, (5,) * 9, np.array([0, 1])).tolist() == [0, 2]
        assert listed(jobs, (6,) * 9, np.array([0, 1])).tolist() == [0, 0]


def test_the_largest_number_of_units_is_taken_and_one_more_is_refused() -> None:
    jobs = batch([jobset((0, 1, 32766, 0), (0, 1, 1, 32767), (0, 1, 1, 0))])
    assert listed(jobs, (32767, 32767), np.arange(3)).tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="at most 32767"):
        listed(jobs, (32768, 32767), np.arange(3))


def test_a_job_that_never_fits_is_refused() -> None:
    jobs = batch([jobset((0, 1, 3, 1), (0, 1, 3, 5))])
    with pytest.raises(ValueError, match=r"job 1 wants \[3, 5\] units; the cluster has \[4, 4\]"):
        listed(jobs, (4, 4), np.arange(2))


@pytest.mark.parametrize("orders", [[0, 0, 2], [0, 2, 1], [0, 1]])
def test_orders_name_every_job_of_their_jobset_once(orders: list[int]) -> None:
    jobs = batch([jobset((0, 1, 1), (0, 1, 1)), jobset((0, 1, 1))])
    with pytest.raises(ValueError, match="every job"):
        listed(jobs, (3,), np.array(orders))


@given(seed=st.integers(0, 10_000), count=st.integers(1, 12), late=st.sampled_from([0, 6]))
def test_the_decoder_agrees_with_the_plain_one(seed: int, count: int, late: int) -> None:
    rng = np.random.default_rng(seed)
    jobs, order = some_jobs(rng, count, (4, 3), late), rng.permutation(count)
    assert listed(batch([jobs]), (4, 3), order).tolist() == plain(jobs, (4, 3), order).tolist()


@given(seed=st.integers(0, 10_000))
def test_listed_by_the_starts_of_any_schedule_no_job_starts_later(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs, delays = some_jobs(rng, 10, (4, 3), late=6), rng.integers(0, 5, 10)
    later = jobs._replace(arrival=jobs.arrival + delays)  # a wasteful schedule: it begins every job late for nothing
    start = plain(later, (4, 3), rng.permutation(10))
    assert (listed(batch([jobs]), (4, 3), np.argsort(start, kind="stable")) <= start).all()


@pytest.mark.parametrize("late", [0, 5])
def test_the_search_finds_the_best_of_all_orders(late: int) -> None:
    for seed in range(6):
        jobs = some_jobs(np.random.default_rng(seed), 6, (4, 3), late)
        worst_first = np.argsort(-jobs.duration)
        start = improved(batch([jobs]), (4, 3), worst_first, 2_000, keys(1, np.array([seed]), np.array([0])))
        assert total_slowdown(batch([jobs]), start) == pytest.approx(best_of_all(jobs, (4, 3)))


def test_what_is_found_is_a_schedule_and_no_worse_than_the_first_order() -> None:
    jobs = batch([some_jobs(np.random.default_rng(seed), 20, (4, 3), late=9) for seed in range(5)])
    orders, key = np.arange(100), keys(7, np.arange(5), np.arange(5))
    first = listed(jobs, (4, 3), orders)
    for evaluations in (1, 2, 10, 300):
        found = improved(jobs, (4, 3), orders, evaluations, key)
        assert_valid(jobs, (4, 3), found)
        for b in range(5):
            mine = jobs.take(np.array([b]))
            rows = slice(jobs.first[b], jobs.first[b + 1])
            assert total_slowdown(mine, found[rows]) <= total_slowdown(mine, first[rows]) + 1e-9


def test_jobsets_do_not_know_of_each_other_and_threads_change_nothing(two_threads: None) -> None:
    sets = [some_jobs(np.random.default_rng(seed), count, (4, 3)) for seed, count in enumerate((9, 1, 14, 2))]
    jobs, key = batch(sets), keys(3, np.arange(4), np.zeros(4, dtype=np.int64))
    together = improved(jobs, (4, 3), np.arange(26), 200, key)
    numba.set_num_threads(1)
    for b, one in enumerate(sets):
        alone = improved(batch([one]), (4, 3), np.arange(len(one.arrival)), 200, key[b : b + 1])
        assert alone.tolist() == together[jobs.first[b] : jobs.first[b + 1]].tolist()


def test_another_key_searches_elsewhere() -> None:
    jobs = batch([some_jobs(np.random.default_rng(0), 30, (4, 3))])
    found = [improved(jobs, (4, 3), np.arange(30), 50, keys(seed, np.array([0]), np.array([0]))) for seed in (1, 2)]
    assert found[0].tolist() != found[1].tolist()
