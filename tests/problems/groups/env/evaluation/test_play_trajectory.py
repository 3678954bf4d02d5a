"""What one policy did with one jobset, by hand."""

import numpy as np
import pytest
from group_builders import CLUSTER, Job, drawn_jobs, jobset
from numpy.testing import assert_allclose

from pipeline.problems.groups.env.evaluation.play import STALLED, controlled, mean_use, trajectory
from pipeline.problems.groups.env.teachers import drf, equal

ENDLESS = CLUSTER._replace(time_limit=np.inf)
EQUAL = controlled(equal(CLUSTER, 0))  # two units for each group


def test_a_course_has_every_interval_until_the_last_job_ends() -> None:
    jobs = jobset(Job(0, 15, 2, group=0), Job(1, 4, 2, group=0), Job(2, 5, 1, group=1))
    course = trajectory(EQUAL, jobs, ENDLESS)
    assert course.start.tolist() == [0, 15, 2]
    assert course.finish.tolist() == [15, 19, 7]
    assert course.begin.tolist() == [0, 10]
    assert course.share[:, :, 0].tolist() == [[2, 2], [2, 2]]
    assert_allclose(course.used[:, :, 0], [[2, 0.5], [(5 * 2 + 4 * 2) / 10, 0]])
    assert course.waiting.tolist() == [[1, 0], [1, 0]]
    assert course.wait(jobs).tolist() == [0, 14, 0]
    assert course.slowdown(jobs).tolist() == [1, 18 / 4, 1]


def test_the_last_share_holds_until_the_last_job_ends() -> None:
    course = trajectory(EQUAL, jobset(Job(0, 35, 2, group=0)), ENDLESS)
    assert course.begin.tolist() == [0, 10, 20, 30]
    assert_allclose(course.used[:, 0, 0], [2, 2, 2, 1])
    assert course.share[:, :, 0].tolist() == [[2, 2]] * 4


def test_a_job_that_no_share_allows_never_starts_and_does_not_go_on_for_ever() -> None:
    jobs = jobset(Job(0, 5, 3, group=0), Job(1, 5, 1, group=1))
    course = trajectory(EQUAL, jobs, ENDLESS)
    assert np.isnan(course.start).tolist() == [True, False]
    assert STALLED < len(course.begin) < STALLED + 5
    assert np.isnan(course.slowdown(jobs)).tolist() == [True, False]


def test_an_episode_is_cut_at_the_time_limit() -> None:
    jobs = jobset(Job(0, 30, 2, group=0), Job(1, 5, 2, group=0))
    course = trajectory(EQUAL, jobs, CLUSTER._replace(time_limit=20))
    assert np.isnan(course.finish).tolist() == [True, True]
    assert np.isnan(course.start).tolist() == [False, True]
    assert len(course.begin) == 2


@pytest.mark.parametrize("number", range(3))
def test_use_adds_up_to_the_work_of_all_jobs(number: int) -> None:
    jobs = drawn_jobs(150, number, count=40)
    course = trajectory(controlled(drf(CLUSTER, 0)), jobs, ENDLESS)
    used = course.used.sum(axis=0)[:, 0] * CLUSTER.interval
    work = np.bincount(jobs.group, weights=jobs.duration * jobs.demand[:, 0], minlength=2)
    assert_allclose(used, work)
    assert course.used.sum(axis=1).max() <= CLUSTER.capacity[0] + 1e-9


def test_progress_only_rises() -> None:
    told: list[float] = []
    trajectory(EQUAL, drawn_jobs(100, 1), ENDLESS, told.append)
    assert told == sorted(told)
    assert told[-1] <= 1


def test_jobs_without_units_use_nothing() -> None:
    jobs = jobset(Job(0, 5, 0, group=0))
    assert mean_use(jobs, np.array([0.0]), np.array([5.0]), np.array([0.0, 10.0]), 2).tolist() == [[[0], [0]]]
