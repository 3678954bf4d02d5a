"""A user's own jobs in a shared cluster: tables and logs read as jobs of groups, and scheduled, by hand."""

import gzip
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from group_models import HEAD, TABLE, write_controller
from group_rows import LOG, SINUSOIDAL, shared
from log_samples import SAMPLES

from pipeline.core.config import GroupsScenario
from pipeline.errors import UserError
from pipeline.interactive.groups.scheduling import SCHEDULING, from_whole_interval, job_columns, log_settings
from pipeline.interactive.scheduling.schedule import ScheduleRequest, schedule
from pipeline.interactive.scheduling.user_jobs import UserJobs, read_user_jobs
from pipeline.interactive.showing.show import place_of
from pipeline.problems.groups.env.nouns import Jobs
from pipeline.problems.groups.env.tables import SCHEDULE, shares_schema

PARAMS = shared()


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(text: str = TABLE, policy: str = "equal", out: str = "out.csv", **more: Any) -> pd.DataFrame:
    Path("jobs.csv").write_text(text)
    schedule(SCHEDULING, PARAMS, ScheduleRequest(Path("jobs.csv"), "shared", policy, Path(out), **more))
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
    assert "2 jobs, 1 of them never started, because their groups are given too little" in capsys.readouterr().err


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


# Tables


ONE = {"resources": {"cpu": 8}, "workload": SINUSOIDAL | {"demand": {"cpu": [1, 2]}}}
ROW = shared().groups_scenario("shared")


def found_in(name: str, row: GroupsScenario = ROW, rows: int = 2) -> UserJobs[Jobs]:
    return read_user_jobs(Path(name), job_columns(row), rows)


def read(text: str, name: str = "jobs.csv", row: GroupsScenario = ROW) -> list[list[float]]:
    Path(name).write_text(text)
    return [column.tolist() for column in found_in(name, row).jobs]


def test_a_table_becomes_jobs() -> None:
    columns = [[0, 1, 1], [4, 2, 2], [4, 2, 2], [[4, 1], [4, 1], [4, 3]], [0, 0, 1], [0, 0, 1]]
    assert read(TABLE) == columns


def test_a_packed_table_and_a_parquet_are_the_same() -> None:
    plain = read(TABLE)
    Path("jobs.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    pd.read_csv("jobs.csv").to_parquet("jobs.parquet")
    for name in ("jobs.csv.gz", "jobs.parquet"):
        assert [column.tolist() for column in found_in(name).jobs] == plain


def test_queues_may_be_numbers() -> None:
    assert read(f"{HEAD}\n1,0,4,1,1,0,1\n2,1,4,1,1,0,0\n")[5] == [1, 0]


def test_estimates_are_not_told_where_run_times_are_and_that_is_said() -> None:
    assert read(f"{HEAD},estimate\n1,0,4,1,1,0,1,9\n2,1,4,1,1,0,0,3\n")[2] == [4, 4]
    notes = found_in("jobs.csv").notes
    assert list(notes) == ["jobs.csv: estimate is not used (policies_know: durations)"]


def test_a_table_has_no_past_to_predict_from() -> None:
    row = shared(workload=LOG, policies_know="predictions", resources={"cpu": 8}).groups_scenario("shared")
    with pytest.raises(UserError, match=r"^jobs.csv: a table has no past to predict run times from \(policies_know: "):
        read(TABLE, row=row)


def test_where_estimates_are_told_a_table_has_them() -> None:
    row = shared(workload=LOG, policies_know="estimates", resources={"cpu": 8}).groups_scenario("shared")
    head = "job,arrival,duration,group,cpu,queue"
    with pytest.raises(UserError, match=r"^jobs.csv: columns: missing estimate \(policies_know: estimates\)$"):
        read(f"{head}\n1,0,4,1,1,0\n", row=row)
    assert read(f"{head},estimate\n1,0,4,1,1,0,9\n", row=row)[1:3] == [[4], [9]]


def test_jobsets_are_in_order_of_arrival_and_begin_at_a_whole_interval() -> None:
    Path("jobs.csv").write_text(f"jobset,{HEAD}\nx,1,112,4,1,1,0,short\ny,1,3,4,1,1,0,short\nx,2,101.5,4,1,1,0,long\n")
    found = found_in("jobs.csv")
    (first, since), (second, zero) = (from_whole_interval(part.jobs, 5.0) for part in found.parts(most=1))
    assert (since, first.arrival.tolist()) == (100, [1.5, 12])
    assert (zero, second.arrival.tolist()) == (0, [3])


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("a,0,4,1,1,2,short", "group: expected at most 1, got 2 in line 2"),
        ("a,0,4,1,1,-1,short", "group: expected at least 0, got -1 in line 2"),
        ("a,0,4,1,1,0,shrt", "queue: expected one of short, long, got shrt in line 2"),
        ("a,0,4,1,1,0,2", "queue: expected one of short, long, got 2 in line 2"),
        ("a,0,4,9,1,0,short", "cpu: expected at most 8, got 9 in line 2"),
        ("a,0,4,1.5,1,0,short", "cpu: expected a whole number in line 2, got 1.5"),
        ("a,0,0,1,1,0,short", "duration: expected above 0, got 0.0 in line 2"),
        ("a,-1,4,1,1,0,short", "arrival: expected at least 0, got -1.0 in line 2"),
        ("a,now,4,1,1,0,short", "arrival: expected a number in line 2, got now"),
        ("a,0,,1,1,0,short", "duration: expected a number in line 2, got nan"),
    ],
)
def test_a_row_that_is_no_job_is_refused_in_one_line(rows: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        read(f"{HEAD}\n{rows}\n")
    assert said in str(caught.value).replace("jobs.csv: ", "", 1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("job,arrival,cpu,memory,group,queue\na,0,1,1,0,short\n", r"columns: expected .*; missing duration"),
        (f"{HEAD},load\na,0,4,1,1,0,short,60\n", r"columns: expected .*; unknown load"),
        (f"{HEAD}\n", "expected jobs, found none"),
        ("", "expected jobs, found an empty file"),
        (
            f"{HEAD}\na,0,4,1,1,0,short\na,1,4,1,1,0,short\n",
            "expected each jobset, job once, got the one in line 2 again",
        ),
    ],
)
def test_a_table_that_is_none_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(UserError, match=rf"^jobs.csv: {said}"):
        read(text)


def test_a_missing_file_is_told() -> None:
    with pytest.raises(UserError, match=r"^none.csv: no such file$"):
        found_in("none.csv")


def test_a_jobset_is_chosen_by_its_name() -> None:
    Path("jobs.csv").write_text(f"jobset,{HEAD}\nx,1,1,4,1,1,0,short\ny,1,3,4,1,1,0,short\n")
    jobsets = found_in("jobs.csv").jobsets
    assert place_of(jobsets, Path("jobs.csv"), "y") == 1
    with pytest.raises(UserError, match=r"^jobs.csv: choose a jobset by --jobset; there are: x, y$"):
        place_of(jobsets, Path("jobs.csv"), None)
    with pytest.raises(UserError, match=r"^jobs.csv: unknown jobset 'z'; there are: x, y$"):
        place_of(jobsets, Path("jobs.csv"), "z")


# Logs


def swf(*rows: tuple[int, int, int, int, int]) -> str:
    """A log of (id, submitted, run time, processors, user)."""
    return "".join(
        f"{one} {submit} -1 {run} {procs} -1 -1 {procs} {2 * run} -1 1 {user} -1 -1 -1 -1 -1 -1\n"
        for one, submit, run, procs, user in rows
    )


# In the first 60 % of the time, user 7 has more work than user 8.
LINES = swf((11, 1000, 600, 2, 7), (12, 1060, 120, 1, 8), (13, 1300, 60, 1, 7), (14, 1310, 60, 9, 7))


def test_the_users_of_a_log_are_gathered_into_groups() -> None:
    Path("log.swf").write_text(LINES)
    found = found_in("log.swf", shared(**ONE).groups_scenario("shared"))
    assert found.ids["job"].to_pylist() == [11, 12, 13]  # the fourth is too wide
    assert found.jobs.group.tolist() == [0, 1, 0]
    assert found.jobs.queue.tolist() == [1, 0, 0]  # a queue's median is 3 or 12 units of a minute
    assert found.jobs.duration.tolist() == [10, 2, 1]
    assert found.jobs.arrival.tolist() == pytest.approx([1000 / 60, 1060 / 60, 1300 / 60])
    assert found.notes[-1] == "times are in units of 60 s"
    assert "left out: 1 jobs that want more than the cluster has" in found.notes


def test_a_scenario_with_a_log_says_how_logs_are_read() -> None:
    Path("log.swf").write_text(LINES)
    params = shared(resources={"cpu": 8}, workload=LOG | {"bounds": [100.0]}, policies_know="estimates")
    found = found_in("log.swf", params.groups_scenario("shared"))
    assert found.jobs.queue.tolist() == [1, 1, 1]
    assert found.jobs.estimate.tolist() == [1200, 240, 120]
    assert found.notes[-1] == "times are in seconds"


@pytest.mark.parametrize("format", SAMPLES)
def test_a_log_of_any_format_with_users_is_read_and_the_others_are_refused(format: str) -> None:
    once = SAMPLES[format]
    google = once.replace("600000000", "900000000").replace(",7,0,", ",8,0,")
    again = {"swf": LINES, "google2011": google, "slurm": "700,5,10,60,8,1,2,4,0,cpu\n"}.get(format, "")
    Path("log.csv").write_text(once + again)
    row = shared(**ONE | {"resources": {"cpu": 100}}).groups_scenario("shared")
    if again:
        assert len(found_in("log.csv", row).ids) == (5 if format == "swf" else 2)
    else:
        with pytest.raises(UserError, match=r"^log.csv: workload: the log does not say whose its jobs are"):
            found_in("log.csv", row)


def test_a_log_without_a_resource_of_the_cluster_is_refused() -> None:
    Path("log.swf").write_text(LINES)
    with pytest.raises(UserError, match=r"^log.swf: resources: the log has no resource 'memory'; there are: cpu$"):
        found_in("log.swf")


def test_queues_must_rise_for_a_log_to_be_split_between_them() -> None:
    row = shared(workload=SINUSOIDAL | {"run": {"short": 12.0, "long": 3.0}}).groups_scenario("shared")
    with pytest.raises(UserError, match=r"^log.swf: a log has no queues, and the median run times .* do not rise"):
        log_settings(Path("log.swf"), row)
