"""Features of a job known at its submission, computed by hand; later facts must not change them."""

import numpy as np
import pytest
from machine_rows import trace

from pipeline.core.logs.predictions import FEATURES, features, submitted_jobs
from pipeline.core.logs.trace import Trace
from pipeline.core.types import FloatArray

SIMILAR = ("present", "longest_running", "running", "similar_present", "similar_running")


def log(*rows: tuple[float, float, float, float, int]) -> Trace:
    """Jobs of (submission, wait, run time, estimate, user), all of one processor."""
    submit, wait, run, estimate, user = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    found = trace(submit.tolist(), run.tolist(), [1] * len(rows), estimate=estimate.tolist())
    return found._replace(wait_s=wait, user=user.astype(np.int64))


def known(some: Trace, job: int, *names: str) -> list[float]:
    row = features(submitted_jobs(some))[job]
    return [float(row[FEATURES.index(name)]) for name in names]


def anyones(jobs: int, seed: int = 0) -> Trace:
    """Random jobs of four users, in order of submission, many in the same second."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 3 * jobs, jobs)).astype(float)
    wait, run = rng.integers(0, 20, jobs), rng.integers(1, 50, jobs)
    columns = (submit, wait, run, run + rng.integers(0, 9, jobs), rng.integers(0, 4, jobs))
    return log(*zip(*(column.tolist() for column in columns), strict=True))


def test_a_job_is_known_once_it_has_ended_by_the_logs_own_schedule() -> None:
    some = log((0, 5, 10, 20, 7), (14, 0, 90, 100, 7), (15, 0, 1, 20, 7))
    # The first job runs from 5 to 15: at 14 it is present and has run for 9, at 15 it has ended.
    assert known(some, 1, "user_count", *SIMILAR) == [0, 1, 9, 1, 0, -1]
    assert known(some, 2, "user_count", "last_0", "user_mean", "user_of_estimate") == [1, 10, 10, 0.5]
    assert known(some, 2, "since_end", "since_submission", "estimate_before") == [0, 1, 5]
    # The second job is present, but with another estimate; the first had the same estimate as this one.
    assert known(some, 2, *SIMILAR, "estimate_count") == [1, 1, 1, 0, -1, 1]


def test_a_job_that_still_waits_has_not_run() -> None:
    some = log((0, 50, 10, 20, 7), (9, 0, 1, 20, 7))
    assert known(some, 1, *SIMILAR) == [1, -1, 0, 1, -1]


def test_of_other_users_nothing_is_known() -> None:
    some = log((0, 0, 1, 20, 7), (9, 0, 1, 20, 8))
    assert known(some, 1, "user_count", "present") == [0, 0]
    assert np.isnan(known(some, 1, "last_0", "since_submission")).all()


def unknown(some: Trace, time: float) -> FloatArray:
    """Return the run times, with other values for all jobs that had not ended by a time."""
    ended = some.submit_s + some.wait_s + some.run_s <= time
    return np.where(ended, some.run_s, 1000.0 + np.arange(len(some.id)))


@pytest.mark.parametrize("seed", range(5))
def test_what_had_not_ended_by_a_submission_changes_nothing_that_is_known_of_the_job(seed: int) -> None:
    some = anyones(60, seed)
    before = features(submitted_jobs(some))
    for job, time in enumerate(some.submit_s):
        after = features(submitted_jobs(some._replace(run_s=unknown(some, time))))
        assert np.array_equal(before[: job + 1], after[: job + 1], equal_nan=True)


def test_without_estimates_and_users_run_times_do_not_stand_in_for_them() -> None:
    found = features(submitted_jobs(trace([0, 3600], [5, 5], [2, 4])))
    told = {
        name: found[:, place].tolist() for place, name in enumerate(FEATURES) if not np.isnan(found[:, place]).all()
    }
    assert told == {"processors": [2, 4], "hour": [0, 1], "weekday": [0, pytest.approx(1 / 24)]}
