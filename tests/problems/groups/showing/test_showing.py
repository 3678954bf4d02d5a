"""One jobset under two policies, as a picture."""

from pathlib import Path

import pytest
from group_models import TABLE, write_controller, write_test_jobsets
from group_rows import shared

from pipeline.errors import UserError
from pipeline.problems.groups.showing.showing import draw
from pipeline.problems.parts import Picture, ShowRequest

PARAMS = shared()


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text(TABLE)
    return tmp_path


def show(asked: ShowRequest, *policies: str) -> Picture:
    return draw(PARAMS, asked, policies or ("equal", "drf"), ())


def test_a_job_table_is_drawn_the_same_twice() -> None:
    asked = ShowRequest(Path("jobs.csv"), "shared")
    picture = show(asked)
    assert picture.title == "jobs.csv, jobset 0, on the cluster of scenario shared: 3 jobs"
    assert picture.halves[0] == (
        "equal: mean slowdown 1.50, mean wait 1.0\nlast job ends at 6, shares changed at 0 of 2 intervals"
    )
    assert picture.content.startswith(b"\x89PNG")
    assert show(asked).content == picture.content


def test_a_test_jobset_is_drawn_under_a_learned_controller() -> None:
    write_controller(PARAMS, Path("models/mine/policy"))
    jobsets = write_test_jobsets(PARAMS)
    picture = show(ShowRequest(None, "shared", 120, "2"), "models/mine", "proportional")
    count = len(jobsets[120][2].arrival)
    assert picture.title == f"Scenario shared, load 120 %, test jobset 2: {count} jobs"
    assert picture.halves[0].startswith("models/mine: mean slowdown ")


def test_people_may_name_the_policies() -> None:
    picture = draw(PARAMS, ShowRequest(Path("jobs.csv"), "shared"), ["equal", "drf"], ["all alike", "fair"])
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
            "--load is one of the scenario's own jobsets; a job table has none",
        ),
        (ShowRequest(Path("jobs.csv"), "shared", None, "x"), "jobs.csv: unknown jobset 'x'; there are: 0"),
        (
            ShowRequest(Path("jobs.csv"), "shared", None, None, 20, 30),
            "times 20 to 30: nothing to draw; the jobset runs from time 0 to 10",
        ),
        (
            ShowRequest(Path("jobs.csv"), "shared", None, None, 4, 4),
            "times 4 to 4: nothing to draw; the jobset runs from time 0 to 10",
        ),
    ],
)
def test_what_is_not_there_is_told_in_one_line(asked: ShowRequest, said: str) -> None:
    write_test_jobsets(PARAMS)
    with pytest.raises(UserError) as caught:
        show(asked)
    assert str(caught.value) == said
