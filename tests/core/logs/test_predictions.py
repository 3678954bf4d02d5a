"""Predicted run times: the data that they may use, and that they learn."""

import numpy as np
import pytest
from machine_rows import trace

from pipeline.core.logs.predictions import predict_run_times
from pipeline.core.logs.trace import Trace
from pipeline.core.types import FloatArray
from pipeline.errors import UserError

JOBS, LEARNED = 400, np.arange(300)


@pytest.fixture
def _few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boost in a few large steps, which suffice for so few jobs."""
    monkeypatch.setattr("pipeline.core.logs.predictions.TREES", 10)
    monkeypatch.setattr("pipeline.core.logs.predictions.RATE", 0.5)


def two_users() -> Trace:
    """Jobs with limits of an hour: those of one user take about a minute, those of the other nearly the whole hour."""
    rng = np.random.default_rng(1)
    user = rng.integers(0, 2, JOBS)
    run = np.where(user == 0, rng.integers(50, 70, JOBS), rng.integers(3300, 3600, JOBS)).astype(float)
    some = trace(np.arange(JOBS) * 100.0, run.tolist(), [1] * JOBS, estimate=[3600.0] * JOBS)
    return some._replace(user=user, wait_s=np.zeros(JOBS))


@pytest.mark.usefixtures("_few_trees")
def test_predictions_tell_users_apart_where_estimates_do_not() -> None:
    some = two_users()
    found = predict_run_times(some, LEARNED)[300:]
    assert np.abs(np.log(found / some.run_s[300:])).max() < 0.3


@pytest.mark.usefixtures("_few_trees")
def test_a_log_with_users_and_without_estimates_is_predicted() -> None:
    some = two_users()._replace(has_estimates=False)
    found = predict_run_times(some._replace(estimate_s=some.run_s), LEARNED)[300:]
    assert np.abs(np.log(found / some.run_s[300:])).max() < 0.3


@pytest.mark.usefixtures("_few_trees")
def test_predictions_are_whole_seconds_above_0_and_at_most_the_estimate() -> None:
    some = two_users()
    found = predict_run_times(some._replace(estimate_s=np.where(some.user == 0, 0.4, 40.0)), LEARNED)
    assert found[some.user == 0].tolist() == [1.0] * int((some.user == 0).sum())
    assert found.max() == 40.0
    free = predict_run_times(some, LEARNED)
    assert (free == np.round(free)).all()


@pytest.mark.usefixtures("_few_trees")
def test_run_times_behind_the_training_period_teach_nothing() -> None:
    some = two_users()
    late = some._replace(run_s=np.where(np.arange(JOBS) < JOBS - 1, some.run_s, 9.0))
    assert np.array_equal(predict_run_times(some, LEARNED), predict_run_times(late, LEARNED))


@pytest.mark.usefixtures("_few_trees")
def test_what_is_told_of_a_job_that_is_learned_from_is_not_made_from_its_own_run_time() -> None:
    some = two_users()
    before = predict_run_times(some, LEARNED)
    for job in (0, 60, 299):  # of the first part, the second, and the last
        after = predict_run_times(some._replace(run_s=with_another(some, job)), LEARNED)
        assert before[job] == after[job]
        assert not np.array_equal(before, after)


def with_another(some: Trace, job: int) -> FloatArray:
    """The run times, with another one for a single job."""
    return np.where(np.arange(JOBS) == job, 1800.0, some.run_s)


@pytest.mark.usefixtures("_few_trees")
def test_predictions_repeat_to_the_bit_and_do_not_look_at_the_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    some = two_users()
    once = predict_run_times(some, LEARNED)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert once.tobytes() == predict_run_times(some, LEARNED).tobytes()


def test_a_log_without_users_and_estimates_is_refused() -> None:
    said = r"^policies_know: the log has neither users nor estimates to predict from; expected durations$"
    with pytest.raises(UserError, match=said):
        predict_run_times(trace([0, 1], [1, 1], [1, 1]), np.arange(1))
