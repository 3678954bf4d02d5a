"""Offline search: the best of several schedules, its order, and what the search makes of it."""

import numpy as np
import pytest
from builders import jobset

from pipeline.problems.pool.env.evaluation.searching import best_of_k, mean_slowdown, order_of, search
from pipeline.problems.pool.env.nouns import Cluster, JobBatch, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.rules import players
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.simulation.rollout import compiled_rule_of, play_compiled

CAPACITY = (10, 10)


def crowd(jobsets: int, count: int = 20) -> JobBatch:
    drawn = []
    for seed in range(jobsets):
        rng = np.random.default_rng(seed)
        duration = np.where(rng.random(count) < 0.8, rng.integers(1, 4, count), rng.integers(10, 16, count))
        demand = rng.permuted(np.column_stack([rng.integers(5, 11, count), rng.integers(1, 3, count)]), axis=1)
        drawn.append(jobset(*((0, *row) for row in np.column_stack([duration, demand]).tolist())))
    return batch(drawn)


def test_slowdown_is_the_mean_over_a_jobset_of_time_in_system_over_duration() -> None:
    jobs = batch([jobset((0, 2, 1), (1, 4, 1)), jobset((3, 1, 1))])
    # (2 - 0) / 2 = 1 and (9 - 1) / 4 = 2; (6 - 3) / 1 = 3.
    assert mean_slowdown(jobs, np.array([0, 5, 5])).tolist() == [1.5, 3.0]


def test_a_schedule_with_a_job_undone_is_worth_nothing() -> None:
    jobs = batch([jobset((0, 2, 1), (1, 4, 1)), jobset((3, 1, 1))])
    assert mean_slowdown(jobs, np.array([0, -1, 5])).tolist() == [np.inf, 3.0]


def test_the_best_is_chosen_jobset_by_jobset() -> None:
    jobs = batch([jobset((0, 2, 3), (0, 1, 3)), jobset((0, 3, 3))])
    starts = np.array([[0, 2, 1], [1, 0, 4], [-1, 0, 0]])
    # Of the first jobset: 2 (1 and 3), 1.25 (1.5 and 1), and one that leaves a job undone; of the second the third.
    assert best_of_k(jobs, starts).tolist() == [1, 0, 0]


def test_of_equal_schedules_the_first_is_taken() -> None:
    jobs = batch([jobset((0, 1, 3), (0, 1, 3))])
    assert best_of_k(jobs, np.array([[0, 1], [1, 0]])).tolist() == [0, 1]


def test_jobs_in_order_of_start_stay_within_their_jobset() -> None:
    jobs = batch([jobset((0, 1, 1), (0, 1, 1), (0, 1, 1)), jobset((0, 1, 1), (0, 1, 1))])
    assert order_of(jobs, np.array([4, -1, 4, 2, 0])).tolist() == [0, 2, 1, 4, 3]


def test_the_search_holds_a_long_job_back() -> None:
    # One unit: the long job first costs (1 + 11 + 12) / 3; last, (1 + 2 + 1.2) / 3 = 1.4.
    jobs = batch([jobset((0, 10, 1), (0, 1, 1), (0, 1, 1))])
    found = search(jobs, (1,), np.arange(3), 50, seed=1)
    assert sorted(found[1:].tolist()) == [0, 1]
    assert found[0] == 2
    assert mean_slowdown(jobs, found).tolist() == pytest.approx([1.4])


def test_a_search_from_a_policys_schedules_is_no_worse_than_the_best_of_them() -> None:
    jobs = crowd(4)
    starts = []
    for name in ("sjf", "packer", "hold"):
        simulator, rule = (
            Batched(jobs, Cluster(CAPACITY, 20, 20, 0, False), 2_000),
            compiled_rule_of(HEURISTICS[name]),
        )
        assert rule is not None
        for _ in play_compiled(simulator, players([rule] * 4, np.zeros(4, dtype=np.uint64))):
            pass
        starts.append(simulator.schedule().start)
    played = np.array([mean_slowdown(jobs, start) for start in starts])
    best = played.min(axis=0)
    order = order_of(jobs, best_of_k(jobs, np.array(starts)))
    assert (mean_slowdown(jobs, search(jobs, CAPACITY, order, 1, seed=1)) <= best + 1e-9).all()
    assert mean_slowdown(jobs, search(jobs, CAPACITY, order, 2_000, seed=1)).mean() < 0.99 * best.mean()


def test_the_same_seed_gives_the_same_bytes_and_another_does_not() -> None:
    jobs = crowd(3)
    one, again, other = (search(jobs, CAPACITY, np.arange(60), 100, seed) for seed in (1, 1, 2))
    assert one.tobytes() == again.tobytes()
    assert one.tobytes() != other.tobytes()


def test_a_search_without_an_evaluation_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        search(crowd(1), CAPACITY, np.arange(20), 0, seed=1)
