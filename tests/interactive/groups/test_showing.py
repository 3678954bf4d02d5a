"""One jobset under two policies, as a picture."""

from pathlib import Path

import numpy as np
import pytest
from group_builders import CLUSTER, Job, jobset
from group_models import TABLE, write_controller, write_test_jobsets
from group_rows import shared
from matplotlib.figure import Figure
from readable import faults

from pipeline.errors import UserError
from pipeline.interactive.groups.showing import SHOWING, bands_of, grid
from pipeline.interactive.showing.drawing import Window, side_by_side
from pipeline.interactive.showing.show import Picture, ShowRequest, draw
from pipeline.problems.groups.env.evaluation.play import Trajectory, controlled, trajectory
from pipeline.problems.groups.env.teachers import equal
from pipeline.problems.groups.plots import OTHERS
from pipeline.problems.groups.plots import SHOWN as BANDS

PARAMS = shared()


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text(TABLE)
    return tmp_path


def show(asked: ShowRequest, *policies: str) -> Picture:
    return draw(SHOWING, PARAMS, asked, policies or ("equal", "drf"), ())


def test_a_job_table_is_drawn_the_same_twice() -> None:
    asked = ShowRequest(Path("jobs.csv"), "shared")
    picture = show(asked)
    assert picture.title == "jobs.csv, jobset 0, on the cluster of scenario shared: 3 jobs"
    assert picture.halves[0] == (
        "equal: mean slowdown 1.50, mean wait 1.0\nlast job ends at 6, shares changed at 0 of 2 intervals"
    )
    assert picture.content.startswith(b"\x89PNG")
    assert show(asked).content == picture.content


def test_a_test_jobset_is_drawn_under_a_learned_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.interactive.showing.show.png", lambda _: b"")
    write_controller(PARAMS, Path("models/mine/policy"))
    jobsets = write_test_jobsets(PARAMS)
    picture = show(ShowRequest(None, "shared", 120, "2"), "models/mine", "proportional")
    count = len(jobsets[120][2].arrival)
    assert picture.title == f"Scenario shared, load 120 %, test jobset 2: {count} jobs"
    assert picture.halves[0].startswith("models/mine: mean slowdown ")


def test_people_may_name_the_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.interactive.showing.show.png", lambda _: b"")
    picture = draw(SHOWING, PARAMS, ShowRequest(Path("jobs.csv"), "shared"), ["equal", "drf"], ["all alike", "fair"])
    assert [half.split(":")[0] for half in picture.halves] == ["all alike", "fair"]


def test_a_part_of_the_time_is_another_picture() -> None:
    whole, part = (show(ShowRequest(Path("jobs.csv"), "shared", end=end)) for end in (None, 5))
    assert whole.content != part.content
    assert whole.halves == part.halves


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (ShowRequest(None, "shared"), "scenario 'shared': choose a load by --load; there are: 60, 120"),
        (ShowRequest(None, "shared", 90), "scenario 'shared': unknown load 90; there are: 60, 120"),
        (
            ShowRequest(None, "shared", 60, "3"),
            "scenario 'shared', load 60: unknown test jobset '3'; there are: 0 to 2",
        ),
        (
            ShowRequest(Path("jobs.csv"), "shared", 60),
            "--load: not in scenario 'shared': only policies of pooled clusters use it",
        ),
        (ShowRequest(Path("jobs.csv"), "shared", None, "x"), "jobs.csv: unknown jobset 'x'; there are: 0"),
        (
            ShowRequest(Path("jobs.csv"), "shared", None, None, 20, 30),
            "time 20 to 30: nothing to draw; the jobset runs from 0 to 10",
        ),
        (
            ShowRequest(Path("jobs.csv"), "shared", None, None, 4, 4),
            "time 4 to 4: nothing to draw; the jobset runs from 0 to 10",
        ),
    ],
)
def test_what_is_not_there_is_told_in_one_line(asked: ShowRequest, said: str) -> None:
    if asked.jobs is None:
        write_test_jobsets(PARAMS)
    with pytest.raises(UserError) as caught:
        show(asked)
    assert str(caught.value) == said


# What is drawn


JOBS = jobset(Job(0, 15, 2, group=0), Job(1, 4, 2, group=0), Job(2, 5, 1, group=1))
SHOWN = Window(100, 120)


def drawn(shown: Window, **trajectories: Trajectory) -> Figure:
    """The picture of trajectories that begin at 100."""
    found = grid({"cpu": 4}, 10.0, 100.0, list(trajectories.values()), shown)
    return side_by_side("title", list(trajectories), found, shown)


@pytest.fixture
def course() -> Trajectory:
    return trajectory(controlled(equal(CLUSTER, 0)), JOBS, CLUSTER)


def test_a_policy_is_a_column_and_times_are_the_users(course: Trajectory) -> None:
    figure = drawn(SHOWN, one=course, other=course)
    assert list(faults(figure)) == []
    left, right, *queues = figure.axes
    assert (left.get_title(loc="left"), right.get_title(loc="left")) == ("one", "other")
    assert left.get_xlim() == (100, 120)
    assert len(queues) == 2


def test_use_is_drawn_within_shares_one_upon_the_other(course: Trajectory) -> None:
    axes = drawn(SHOWN, one=course).axes[0]
    steps = [patch.get_data() for patch in axes.patches]
    share, used = steps[0:4:2], steps[1:4:2]
    assert [one.values.tolist() for one in share] == [[2, 2], [4, 4]]
    assert np.asarray(share[1].baseline).tolist() == [2, 2]
    assert used[0].values == pytest.approx([2, 1.8])
    assert used[1].values == pytest.approx([2.5, 2])
    assert steps[4].values == pytest.approx([2.5, 1.8])  # all jobs


def test_use_beyond_a_share_is_left_to_the_line_of_all_jobs(course: Trajectory) -> None:
    less = course._replace(share=np.array([[[1], [3]], [[1], [3]]]))
    steps = [patch.get_data() for patch in drawn(SHOWN, one=less).axes[0].patches]
    assert steps[1].values.tolist() == [1, 1]
    assert steps[4].values == pytest.approx([2.5, 1.8])


def test_only_what_is_asked_for_is_drawn(course: Trajectory) -> None:
    axes = drawn(Window(110, 120), one=course).axes[0]
    assert axes.patches[0].get_data().edges.tolist() == [110, 120]


def test_of_many_groups_those_that_use_most_have_a_band() -> None:
    used = np.zeros((1, 20, 1))
    used[0, :, 0] = np.arange(20)
    none = np.zeros(0)
    bands = bands_of([Trajectory(none, none, np.zeros(1), used.astype(int), used, np.zeros((1, 20), int))])
    assert bands.names == [*(f"group {g}" for g in range(20 - BANDS, 20)), OTHERS]
    assert bands.sums(used[:, :, 0])[:, 0].tolist() == [*range(20 - BANDS, 20), sum(range(20 - BANDS))]
