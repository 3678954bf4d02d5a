"""Run times are drawn as shares of the estimate, from past jobs with the nearest estimates."""

import numpy as np
import pytest
from machine_learning import some_jobs
from numba import njit

from pipeline.core.types import FloatArray
from pipeline.problems.machines.lookahead.futures import NEAREST, arrival_model, run_time, run_time_shares


@njit
def _drawn(estimates: FloatArray, share: FloatArray, estimate: float, elapsed: float, keys: np.ndarray) -> FloatArray:
    found = np.empty(len(keys))
    for i in range(len(keys)):
        found[i] = run_time(estimates, share, estimate, 500.0 - elapsed, 500.0, keys[i], 3)
    return found


def drawn(past: tuple[FloatArray, FloatArray], estimate: float, elapsed: float = 0.0, count: int = 2000) -> FloatArray:
    keys = np.random.default_rng(5).integers(0, 2**53, count).astype(np.uint64)
    return np.asarray(_drawn(*past, estimate, elapsed, keys))


def three_kinds() -> tuple[FloatArray, FloatArray]:
    """Of the jobs with estimate 100, half run 10 and half 90; those with 1,000 run a fifth of it, those with 7 all."""
    estimate = np.repeat([100.0, 1000.0, 7.0], 2 * NEAREST)
    duration = np.concatenate(
        [np.repeat([10.0, 90.0], NEAREST), np.full(2 * NEAREST, 200.0), np.full(2 * NEAREST, 7.0)]
    )
    return run_time_shares(estimate, duration)


def test_only_past_jobs_with_the_same_estimate_are_drawn_from() -> None:
    found, count = np.unique(drawn(three_kinds(), 100.0), return_counts=True)
    assert found.tolist() == [10.0, 90.0]
    assert abs(count[0] - 1000) < 5 * 500**0.5
    assert set(drawn(three_kinds(), 1000.0)) == {200.0}


def test_an_unknown_estimate_has_the_shares_of_its_neighbours() -> None:
    assert set(drawn(three_kinds(), 2000.0)) == {400.0}
    assert set(drawn(three_kinds(), 3.0)) == {3.0}


def test_few_of_a_time_are_joined_by_their_neighbours() -> None:
    estimate = np.concatenate([[50.0], np.full(NEAREST, 40.0), np.full(NEAREST, 60.0), np.full(NEAREST, 900.0)])
    share = np.where(estimate == 40.0, 0.5, np.where(estimate == 60.0, 0.25, 1.0))
    assert set(drawn(run_time_shares(estimate, share * estimate), 50.0)) == {12.5, 25.0, 50.0}


def test_a_job_that_runs_has_not_outlived_what_is_drawn() -> None:
    assert set(drawn(three_kinds(), 100.0, elapsed=30.0)) == {90.0}


def test_one_of_few_that_ran_so_long_is_drawn_as_often_as_another() -> None:
    estimate, share = np.full(200, 100.0), np.full(200, 0.1)
    share[:4] = [0.6, 0.7, 0.8, 0.9]
    found, count = np.unique(
        drawn(run_time_shares(estimate, share * estimate), 100.0, elapsed=50.0), return_counts=True
    )
    np.testing.assert_allclose(found, [60.0, 70.0, 80.0, 90.0])
    assert (np.abs(count - 500) < 5 * 375**0.5).all()


def test_the_estimate_of_a_job_that_outlived_all_is_doubled_until_it_exceeds_the_present() -> None:
    assert set(drawn(three_kinds(), 100.0, elapsed=95.0)) == {100.0}
    assert set(drawn(three_kinds(), 100.0, elapsed=250.0)) == {400.0}


def test_at_the_longest_times_as_many_are_drawn_from_as_elsewhere() -> None:
    known = np.arange(1.0, 4 * NEAREST + 1)
    past = run_time_shares(known, known * np.linspace(0.5, 1.0, len(known)))
    for estimate in (0.5, 1e6):
        assert len(set(drawn(past, estimate, count=20_000))) == NEAREST


@pytest.mark.parametrize("estimate", [0.37, 12.0, 1e6])
def test_exact_past_estimates_make_exact_draws(estimate: float) -> None:
    known = np.exp(np.random.default_rng(1).uniform(0, 9, 300))
    assert set(drawn(run_time_shares(known, known), estimate, elapsed=0.3 * estimate)) == {estimate}


def test_an_arrival_model_has_past_run_times_and_estimates() -> None:
    past = [some_jobs(100, k, 12) for k in range(2)]
    past = [jobs._replace(estimate=4.0 * jobs.duration) for jobs in past]
    jobs = arrival_model(past).past
    np.testing.assert_array_equal(jobs.duration, np.concatenate([jobs.duration for jobs in past]))
    assert (np.diff(jobs.estimates) >= 0).all()
    np.testing.assert_allclose(jobs.share, 0.25)
