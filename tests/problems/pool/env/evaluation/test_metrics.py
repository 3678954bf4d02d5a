"""Metrics of schedules small enough to work by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.problems.pool.env.evaluation.metrics import job_results, jobset_results
from pipeline.problems.pool.env.nouns import JobBatch, JobSet, Schedule, batch
from pipeline.problems.pool.env.tables import JOB_RESULTS, JOBSET_RESULTS
from pipeline.simulation.results import percentile

STEP_LIMIT = 10
LOAD, JOBSET = np.array([70, 130]), np.array([0, 4])


def jobs(arrival: list[int], duration: list[int]) -> JobSet:
    return JobSet(np.array(arrival), np.array(duration), np.ones((len(arrival), 2), dtype=np.int64))


def played() -> tuple[JobBatch, Schedule]:
    """One episode that ended, and one cut at step 10: a job still runs, one waits, one had not yet arrived."""
    jobsets = batch([jobs([0, 0, 1], [2, 1, 4]), jobs([0, 9, 12], [4, 5, 2])])
    schedule = Schedule(
        start=np.array([0, 2, 2, 7, -1, -1], dtype=np.int32),
        finish=np.array([2, 3, 6, -1, -1, -1], dtype=np.int32),
        withheld=np.array([0, 1, 2, 0, 0, 0], dtype=np.int32),
        steps=np.array([6, 10], dtype=np.int32),
        withheld_steps=np.array([3, 0], dtype=np.int32),
        used=np.array([3.0, 12.0]),
    )
    return jobsets, schedule


def test_slowdown_is_time_in_the_system_over_duration() -> None:
    table = JOB_RESULTS.validate(job_results("sjf", LOAD, JOBSET, *played(), STEP_LIMIT))
    assert table["slowdown"].tolist()[:3] == [2 / 2, 3 / 1, 5 / 4]
    assert table["finish"].tolist()[:3] == [2, 3, 6]
    assert table["duration"].tolist()[:3] == [2, 1, 4]
    assert table["withheld"].tolist()[:3] == [0, 1, 2]
    assert not table["unfinished"][:3].any()


def test_an_unfinished_job_counts_as_if_it_finished_at_the_step_limit() -> None:
    table = job_results("sjf", LOAD, JOBSET, *played(), STEP_LIMIT)[3:]
    assert table["unfinished"].all()
    assert table["start"].tolist() == [7, -1, -1]
    assert table["finish"].tolist() == [10, 10, 13]  # the last one is due at 12, after the cut
    assert table["slowdown"].tolist() == [10 / 4, 1.0, 1.0]


def test_jobs_are_named_by_episode_and_numbered_within_it() -> None:
    table = job_results("sjf", LOAD, JOBSET, *played(), STEP_LIMIT)
    assert table["load"].tolist() == [70, 70, 70, 130, 130, 130]
    assert table["jobset"].tolist() == [0, 0, 0, 4, 4, 4]
    assert table["job"].tolist() == [0, 1, 2, 0, 1, 2]


def test_metrics_of_a_jobset_that_ended() -> None:
    row = JOBSET_RESULTS.validate(jobset_results("sjf", LOAD, JOBSET, *played(), STEP_LIMIT)).iloc[0]
    assert (row["policy"], row["load"], row["jobset"], row["jobs"]) == ("sjf", 70, 0, 3)
    assert row["mean_slowdown"] == pytest.approx((1 + 3 + 1.25) / 3)
    assert row["p50_slowdown"] == 1.25
    assert row["p99_slowdown"] == pytest.approx(1.25 + 0.98 * 1.75)
    assert row["worst_slowdown"] == 3.0
    assert row["completion_time"] == pytest.approx((2 + 3 + 5) / 3)
    assert row["makespan"] == 6
    assert row["utilisation"] == pytest.approx(3.0 / (2 * 6))
    assert row["not_work_conserving"] == pytest.approx(3 / 6)
    assert row["unfinished"] == 0


def test_metrics_of_a_jobset_that_was_cut() -> None:
    row = jobset_results("sjf", LOAD, JOBSET, *played(), STEP_LIMIT).iloc[1]
    assert row["mean_slowdown"] == pytest.approx((2.5 + 1 + 1) / 3)
    assert row["worst_slowdown"] == 2.5
    assert row["completion_time"] == pytest.approx((10 + 1 + 1) / 3)
    assert row["makespan"] == 10
    assert row["utilisation"] == pytest.approx(12 / 20)
    assert row["unfinished"] == 3


@given(st.lists(st.lists(st.floats(1, 1e6), min_size=1, max_size=9), min_size=1, max_size=5), st.floats(0, 1))
def test_percentiles_are_those_of_numpy(runs: list[list[float]], share: float) -> None:
    first = np.cumsum([0, *(len(run) for run in runs)])
    ordered = np.concatenate([np.sort(run) for run in runs])
    expected = [np.percentile(run, 100 * share) for run in runs]
    np.testing.assert_allclose(percentile(ordered, first, share), expected, rtol=1e-6)


def test_a_name_too_few_is_refused() -> None:
    with pytest.raises(ValueError, match="load has 1 episodes; the batch has 2"):
        jobset_results("sjf", LOAD[:1], JOBSET, *played(), STEP_LIMIT)


def test_a_jobset_without_jobs_is_refused() -> None:
    _, schedule = played()
    with pytest.raises(ValueError, match="jobset 4 of load 130 has no jobs"):
        jobset_results("sjf", LOAD, JOBSET, batch([jobs([0], [1]), jobs([], [])]), schedule, STEP_LIMIT)
