"""A user's own jobs, scheduled in a shared cluster, by hand."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from group_models import HEAD, TABLE, write_controller
from group_rows import shared

from pipeline.errors import UserError
from pipeline.problems.groups.tables import SCHEDULE, shares_schema
from pipeline.problems.groups.user_schedule import schedule_jobs
from pipeline.problems.parts import ScheduleRequest

PARAMS = shared()


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(text: str = TABLE, policy: str = "equal", out: str = "out.csv", **more: Any) -> pd.DataFrame:
    Path("jobs.csv").write_text(text)
    schedule_jobs(PARAMS, ScheduleRequest(Path("jobs.csv"), "shared", policy, Path(out), **more))
    return pd.read_parquet(out) if out.endswith("parquet") else pd.read_csv(out, dtype={"jobset": str, "job": str})


def test_every_job_has_a_row_in_the_order_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    found = run()
    assert list(found.columns) == list(SCHEDULE.columns)
    assert found["jobset"].tolist() == ["0"] * 3
    assert found["job"].tolist() == ["a", "b", "c"]
    assert found["queue"].tolist() == ["short", "short", "long"]
    assert found["start"].tolist() == [0, 4, 1]
    assert found["finish"].tolist() == [4, 6, 3]
    assert found["slowdown"].tolist() == [1, 2.5, 1]
    assert found["wait"].tolist() == [0, 3, 0]
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "out.csv: 3 jobs, mean slowdown 1.5 and mean wait 1 under equal"


def test_shares_and_use_are_beside_it() -> None:
    run(out="plan.parquet")
    found = shares_schema(["cpu", "memory"]).validate(pd.read_parquet("plan_shares.parquet"))
    assert found[["begin", "group"]].to_numpy().tolist() == [[0, 0], [0, 1], [5, 0], [5, 1]]
    assert found["share_cpu"].tolist() == [4] * 4
    assert found["share_memory"].tolist() == [3] * 4
    assert found["used_cpu"].tolist() == pytest.approx([4, 8 / 5, 4 / 5, 0])
    assert found["used_memory"].tolist() == pytest.approx([1, 6 / 5, 1 / 5, 0])
    assert found["waiting"].tolist() == [1, 0, 0, 0]


def test_times_are_those_of_the_user() -> None:
    late = TABLE.replace(",0,4,", ",1000000000,4,").replace(",1,2,", ",1000000001,2,")
    found = run(late)
    assert (found["start"] - 10**9).tolist() == [0, 4, 1]
    assert found["wait"].tolist() == [0, 3, 0]
    assert pd.read_csv("out_shares.csv")["begin"].tolist() == [10**9, 10**9, 10**9 + 5, 10**9 + 5]


def test_jobsets_do_not_meet() -> None:
    rows = [line.split(",", 1) for line in TABLE.splitlines()[1:]]
    text = "\n".join([f"jobset,{HEAD}", *(f"{name},{job},{rest}" for name in "xy" for job, rest in rows)])
    found = run(text)
    assert found["jobset"].tolist() == ["x"] * 3 + ["y"] * 3
    assert found["start"].tolist() == [0, 4, 1] * 2


def test_a_job_that_never_starts_has_no_times(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(f"{HEAD}\na,0,4,5,1,0,short\nb,0,4,1,1,1,short\n")
    assert found["start"].isna().tolist() == [True, False]
    assert "2 jobs, 1 of them never started, for their groups are given too little" in capsys.readouterr().err


def test_a_learned_controller_schedules(capsys: pytest.CaptureFixture[str]) -> None:
    write_controller(PARAMS, Path("models/mine/policy"))
    found = run(policy="models/mine", out="out.csv.gz")
    assert (found["finish"] - found["start"]).tolist() == [4, 2, 2]
    assert Path("out_shares.csv.gz").is_file()
    assert capsys.readouterr().err.splitlines()[-1].endswith("under models/mine")


def test_the_same_schedule_is_the_same_bytes() -> None:
    run(policy="drf")
    before = Path("out.csv").read_bytes(), Path("out_shares.csv").read_bytes()
    run(policy="drf")
    assert (Path("out.csv").read_bytes(), Path("out_shares.csv").read_bytes()) == before


@pytest.mark.parametrize("option", ["capacity", "slots", "horizon", "samples", "tries"])
def test_what_makes_no_sense_here_is_refused_with_the_reason(option: str) -> None:
    name = "search" if option == "tries" else option
    with pytest.raises(UserError, match=rf"^--{name}: not in scenario 'shared': [^\n]+$"):
        run(**{option: 3})
    assert not Path("out.csv").exists()


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("out", "out: expected a name that ends in .csv, .csv.gz or .parquet"),
        ("jobs.csv", "jobs.csv: the jobs are read from it: name another file for the schedule"),
    ],
)
def test_a_place_that_is_none_is_refused_before_any_work(out: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        run(out=out)
    assert str(caught.value) == said
    assert Path("jobs.csv").read_text() == TABLE
