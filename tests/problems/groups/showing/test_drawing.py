"""The picture of shares and their use, by what is in it."""

import numpy as np
import pytest
from group_builders import CLUSTER, Job, jobset

from pipeline.problems.groups.evaluation.play import controlled
from pipeline.problems.groups.evaluation.watching import Course, watch
from pipeline.problems.groups.heuristics.teachers import equal
from pipeline.problems.groups.plots import OTHERS
from pipeline.problems.groups.plots import SHOWN as BANDS
from pipeline.problems.groups.showing.drawing import Half, Scene, bands_of, side_by_side

JOBS = jobset(Job(0, 15, 2, group=0), Job(1, 4, 2, group=0), Job(2, 5, 1, group=1))
SCENE = Scene("title", {"cpu": 4}, 10.0, 100.0, 0.0, 20.0)


@pytest.fixture
def course() -> Course:
    return watch(controlled(equal(CLUSTER, 0)), JOBS, CLUSTER)


def test_a_policy_is_a_column_and_times_are_the_users(course: Course) -> None:
    figure = side_by_side(SCENE, [Half("one", course), Half("other", course)])
    left, right, *queues = figure.axes
    assert (left.get_title(loc="left"), right.get_title(loc="left")) == ("one", "other")
    assert left.get_xlim() == (100, 120)
    assert len(queues) == 2


def test_use_is_drawn_within_shares_one_upon_the_other(course: Course) -> None:
    axes = side_by_side(SCENE, [Half("one", course)]).axes[0]
    steps = [patch.get_data() for patch in axes.patches]
    share, used = steps[0:4:2], steps[1:4:2]
    assert [one.values.tolist() for one in share] == [[2, 2], [4, 4]]
    assert np.asarray(share[1].baseline).tolist() == [2, 2]
    assert used[0].values == pytest.approx([2, 1.8])
    assert used[1].values == pytest.approx([2.5, 2])
    assert steps[4].values == pytest.approx([2.5, 1.8])  # all jobs


def test_use_beyond_a_share_is_left_to_the_line_of_all_jobs(course: Course) -> None:
    less = course._replace(share=np.array([[[1], [3]], [[1], [3]]]))
    steps = [patch.get_data() for patch in side_by_side(SCENE, [Half("one", less)]).axes[0].patches]
    assert steps[1].values.tolist() == [1, 1]
    assert steps[4].values == pytest.approx([2.5, 1.8])


def test_only_what_is_asked_for_is_drawn(course: Course) -> None:
    axes = side_by_side(SCENE._replace(begin=10.0), [Half("one", course)]).axes[0]
    assert axes.patches[0].get_data().edges.tolist() == [110, 120]


def test_of_many_groups_those_that_use_most_have_a_band() -> None:
    used = np.zeros((1, 20, 1))
    used[0, :, 0] = np.arange(20)
    none = np.zeros(0)
    bands = bands_of([Course(none, none, np.zeros(1), used.astype(int), used, np.zeros((1, 20), int))])
    assert bands.names == [*(f"group {g}" for g in range(20 - BANDS, 20)), OTHERS]
    assert bands.sums(used[:, :, 0])[:, 0].tolist() == [*range(20 - BANDS, 20), sum(range(20 - BANDS))]
