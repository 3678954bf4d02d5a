"""A user's own job tables and logs, read as jobs of groups."""

import gzip
from pathlib import Path

import pandas as pd
import pytest
from group_models import HEAD, TABLE
from group_rows import LOG, SINUSOIDAL, shared
from log_samples import SAMPLES

from pipeline.config import GroupsScenario
from pipeline.errors import UserError
from pipeline.problems.groups.user_jobs import chosen, log_settings, read_jobs
from pipeline.progress import no_progress

ONE = {"resources": {"cpu": 8}, "workload": SINUSOIDAL | {"demand": {"cpu": [1, 2]}}}
ROW = shared().groups_scenario("shared")


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(text: str, name: str = "jobs.csv", row: GroupsScenario = ROW) -> list[list[float]]:
    Path(name).write_text(text)
    return [column.tolist() for column in read_jobs(Path(name), row, no_progress).jobs]


def test_a_table_becomes_jobs() -> None:
    columns = [[0, 1, 1], [4, 2, 2], [4, 2, 2], [[4, 1], [4, 1], [4, 3]], [0, 0, 1], [0, 0, 1]]
    assert read(TABLE) == columns


def test_a_packed_table_and_a_parquet_are_the_same() -> None:
    plain = read(TABLE)
    Path("jobs.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    pd.read_csv("jobs.csv").to_parquet("jobs.parquet")
    for name in ("jobs.csv.gz", "jobs.parquet"):
        assert [column.tolist() for column in read_jobs(Path(name), ROW, no_progress).jobs] == plain


def test_queues_may_be_numbers() -> None:
    assert read(f"{HEAD}\n1,0,4,1,1,0,1\n2,1,4,1,1,0,0\n")[5] == [1, 0]


def test_estimates_are_not_told_where_run_times_are_and_that_is_said() -> None:
    assert read(f"{HEAD},estimate\n1,0,4,1,1,0,1,9\n2,1,4,1,1,0,0,3\n")[2] == [4, 4]
    notes = read_jobs(Path("jobs.csv"), ROW, no_progress).notes
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
    first, second = read_jobs(Path("jobs.csv"), ROW, no_progress).jobsets(5.0)
    assert (first.name, first.since, first.rows.tolist()) == ("x", 100, [2, 0])
    assert first.jobs.arrival.tolist() == [1.5, 12]
    assert (second.name, second.since, second.jobs.arrival.tolist()) == ("y", 0, [3])


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("a,0,4,1,1,2,short", "group: expected at most 1, got 2 in line 2"),
        ("a,0,4,1,1,-1,short", "group: expected at least 0, got -1 in line 2"),
        ("a,0,4,1,1,0,shrt", "queue: expected one of short, long, got shrt in line 2"),
        ("a,0,4,1,1,0,2", "queue: expected one of short, long, got 2 in line 2"),
        ("a,0,4,9,1,0,short", "cpu: expected at most 8, got 9 in line 2"),
        ("a,0,4,1.5,1,0,short", "cpu: expected whole numbers, got 1.5 in line 2"),
        ("a,0,0,1,1,0,short", "duration: expected above 0, got 0.0 in line 2"),
        ("a,-1,4,1,1,0,short", "arrival: expected at least 0, got -1.0 in line 2"),
        ("a,now,4,1,1,0,short", "arrival: expected numbers, got now in line 2"),
        ("a,0,,1,1,0,short", "duration: expected numbers, got nan in line 2"),
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
        read_jobs(Path("none.csv"), ROW, no_progress)


def test_a_jobset_is_chosen_by_its_name() -> None:
    Path("jobs.csv").write_text(f"jobset,{HEAD}\nx,1,1,4,1,1,0,short\ny,1,3,4,1,1,0,short\n")
    jobsets = read_jobs(Path("jobs.csv"), ROW, no_progress).jobsets(5.0)
    assert chosen(jobsets, Path("jobs.csv"), "y").name == "y"
    with pytest.raises(UserError, match=r"^jobs.csv: choose a jobset by --jobset; there are: x, y$"):
        chosen(jobsets, Path("jobs.csv"), None)
    with pytest.raises(UserError, match=r"^jobs.csv: unknown jobset 'z'; there are: x, y$"):
        chosen(jobsets, Path("jobs.csv"), "z")


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
    found = read_jobs(Path("log.swf"), shared(**ONE).groups_scenario("shared"), no_progress)
    (one,) = found.jobsets(5.0)
    assert found.ids["job"].tolist() == ["11", "12", "13"]  # the fourth is too wide
    assert found.jobs.group.tolist() == [0, 1, 0]
    assert found.jobs.queue.tolist() == [1, 0, 0]  # a queue's median is 3 or 12 units of a minute
    assert found.jobs.duration.tolist() == [10, 2, 1]
    assert (one.jobs.arrival + one.since).tolist() == pytest.approx([1000 / 60, 1060 / 60, 1300 / 60])
    assert found.notes[-1] == "times are in units of 60 s"
    assert "left out: 1 jobs that want more than the cluster has" in found.notes


def test_a_scenario_with_a_log_says_how_logs_are_read() -> None:
    Path("log.swf").write_text(LINES)
    params = shared(resources={"cpu": 8}, workload=LOG | {"bounds": [100.0]}, policies_know="estimates")
    found = read_jobs(Path("log.swf"), params.groups_scenario("shared"), no_progress)
    assert found.jobs.queue.tolist() == [1, 1, 1]
    assert found.jobs.estimate.tolist() == [1200, 240, 120]
    assert found.notes[-1] == "times are in seconds"


@pytest.mark.parametrize("format", SAMPLES)
def test_a_log_of_any_format_with_users_is_read_and_the_others_are_refused(format: str) -> None:
    once = SAMPLES[format]
    again = {"swf": LINES, "google2011": once.replace("600000000", "900000000").replace(",7,0,", ",8,0,")}.get(
        format, ""
    )
    Path("log.csv").write_text(once + again)
    row = shared(**ONE | {"resources": {"cpu": 100}}).groups_scenario("shared")
    if again:
        assert len(read_jobs(Path("log.csv"), row, no_progress).ids) == (5 if format == "swf" else 2)
    else:
        with pytest.raises(UserError, match=r"^log.csv: workload: the log does not say whose its jobs are"):
            read_jobs(Path("log.csv"), row, no_progress)


def test_a_log_without_a_resource_of_the_cluster_is_refused() -> None:
    Path("log.swf").write_text(LINES)
    with pytest.raises(UserError, match=r"^log.swf: resources: the log has no resource 'memory'; there are: cpu$"):
        read_jobs(Path("log.swf"), ROW, no_progress)


def test_queues_must_rise_for_a_log_to_be_split_between_them() -> None:
    row = shared(workload=SINUSOIDAL | {"run": {"short": 12.0, "long": 3.0}}).groups_scenario("shared")
    with pytest.raises(UserError, match=r"^log.swf: a log has no queues, and the median run times .* do not rise"):
        log_settings(Path("log.swf"), row)
