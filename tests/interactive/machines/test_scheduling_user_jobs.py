"""A user's jobs on many machines: job tables and logs, and what of them is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from machine_rows import LOG, few, write_log

from pipeline.core.config import Params
from pipeline.core.types import ANY_KIND
from pipeline.errors import UserError
from pipeline.interactive.machines.scheduling import job_columns, park_of
from pipeline.interactive.scheduling.user_jobs import UserJobs, read_user_jobs
from pipeline.problems.machines.env.nouns import Jobs

HEAD = "job,arrival,duration,cpu,memory"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(path: str, params: Params | None = None) -> UserJobs[Jobs]:
    params = few() if params is None else params
    return read_user_jobs(Path(path), job_columns(params.machines_scenario("few"), park_of(params, "few")), rows=2)


def test_a_table_is_read_in_thousandths_and_every_jobset_in_order_of_arrival() -> None:
    Path("jobs.csv").write_text(f"jobset,{HEAD},nodes\nb,007,5,1.5,0.5,0.0001,2\na,1,0,1,1,1,1\nb,8,2,1,4,10,1\n")
    table = read("jobs.csv")
    assert [tuple(row.values()) for row in table.ids.to_pylist()] == [("b", "007"), ("a", "1"), ("b", "8")]
    assert (table.jobsets, table.number.tolist()) == (["b", "a"], [0, 1, 0])
    assert [rows.tolist() for rows in table.rows()] == [[2, 0], [1]]
    jobs = table.taken(table.rows()[0])
    assert jobs.arrival.tolist() == [2, 5]
    assert jobs.demand.tolist() == [[4000, 10000], [500, 1]]
    assert jobs.nodes.tolist() == [1, 2]
    assert (jobs.kinds == ANY_KIND).all()


def test_a_table_without_jobsets_is_one() -> None:
    pd.DataFrame({"job": [1, 2], "arrival": [0, 0], "duration": [1, 2], "cpu": [1, 1], "memory": [0, 0]}).to_parquet(
        "jobs.parquet"
    )
    table = read("jobs.parquet")
    assert (table.jobsets, table.ids["job"].to_pylist(), table.jobs.nodes.tolist()) == (["0"], [1, 2], [1, 1])


def test_estimates_are_what_policies_are_told_where_the_scenario_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    Path("jobs.csv").write_text(f"{HEAD},estimate\n1,0,1,1,1,9\n")
    assert read("jobs.csv").jobs.estimate.tolist() == [1]
    assert "estimate is not used (policies_know: durations)" in capsys.readouterr().err
    logged = few(workload=LOG, policies_know="estimates")
    assert read("jobs.csv", logged).jobs.estimate.tolist() == [9]
    Path("jobs.csv").write_text(f"{HEAD}\n1,0,1,1,1\n")
    with pytest.raises(UserError, match=r"^jobs.csv: columns: missing estimate \(policies_know: "):
        read("jobs.csv", logged)


def test_predictions_are_learned_from_the_first_jobs_of_a_log_and_refused_for_a_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = LOG | {"format": "swf", "path": "log.swf"}
    row = few(workload=own, machines=[{"count": 1, "has": {"cpu": 4}}], policies_know="predictions")
    lines = [f"{k} {9 * k} 0 {50 + k % 7} 1 -1 -1 1 900 -1 1 {k % 3} -1 -1 -1 -1 -1 -1" for k in range(1, 101)]
    Path("log.swf").write_text("\n".join(["; MaxProcs: 4", *lines]) + "\n")
    found = read("log.swf", row).jobs
    assert np.abs(found.estimate - found.duration).max() < 10
    assert "run times are predicted from the first 60 jobs: judge by the jobs after them" in capsys.readouterr().err
    Path("jobs.csv").write_text(f"{HEAD}\n1,0,1,1,1\n")
    with pytest.raises(UserError, match=r"^jobs.csv: a table has no past to predict run times from \(policies_know: "):
        read("jobs.csv", few(workload=LOG, policies_know="predictions"))


def test_a_log_is_known_by_its_content_and_says_what_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    write_log(Path("log.csv"), 5)
    small = few(workload=LOG, machines=[{"count": 2, "has": {"cpu": 2, "memory": 1}}])
    table = read("log.csv", small)
    assert table.jobs.demand[:, 0].tolist() == [2000] * 5
    assert table.jobs.duration.tolist() == [10, 20, 30, 40, 50]
    lines = [f"{k} {k} -1 5 {p} -1 -1 {p} 9 -1 1 1 1 1 1 1 -1 -1\n" for k, p in ((1, 1), (2, 3))]
    Path("log.swf").write_text("".join(lines))
    pooled = few(workload=LOG, machines=[{"count": 3, "has": {"cpu": 2}}])
    assert read("log.swf", pooled).ids["job"].to_pylist() == [1]
    assert "log.swf: left out: 1 of 2 jobs, which the scenario's machines could not run" in capsys.readouterr().err
    own = LOG | {"format": "swf", "path": "log.swf", "per_node": True}
    each = read("log.swf", few(workload=own, machines=[{"count": 3, "has": {"cpu": 2}}]))
    assert (each.jobs.nodes.tolist(), each.jobs.demand[:, 0].tolist()) == ([1, 3], [1000, 1000])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("job,arrival,cpu,memory\n1,0,1,1\n", "jobs.csv: columns: expected jobset, job, arrival, .*; missing duration"),
        (f"{HEAD},gpu\n1,0,1,1,1,1\n", "jobs.csv: columns: .*; unknown gpu"),
        (f"{HEAD}\n", "jobs.csv: expected jobs, found none"),
        (f"{HEAD}\n1,0,1,1,1\n2,0,x,1,1\n", "jobs.csv: duration: expected a number in line 3, got x"),
        (f"{HEAD}\n1,0,0,1,1\n", "jobs.csv: duration: expected above 0, got 0.0 in line 2"),
        (f"{HEAD}\n1,-1,1,1,1\n", "jobs.csv: arrival: expected at least 0, got -1.0 in line 2"),
        (f"{HEAD}\n1,0,1,,1\n", "jobs.csv: cpu: expected a number in line 2, got nan"),
        (f"{HEAD},nodes\n1,0,1,1,1,1.5\n", "jobs.csv: nodes: expected a whole number in line 2, got 1.5"),
        (f"{HEAD}\n1,0,1,1,1\n1,0,1,1,1\n", "jobs.csv: expected each jobset, job once, got the one in line 2 again"),
        (
            f"{HEAD}\n1,0,1,1,1\nbig,0,1,5,1\n",
            "jobs.csv: job big wants cpu 5, memory 1 on 1 machines at once; 0 of",
        ),
        (
            f"{HEAD},nodes\nbig,0,1,2.5,1,4\n",
            "jobs.csv: job big wants cpu 2.5, memory 1 on 4 machines at once; 3",
        ),
    ],
)
def test_a_wrong_table_is_refused_in_one_line(text: str, said: str) -> None:
    Path("jobs.csv").write_text(text)
    with pytest.raises(UserError, match=f"^{said}") as caught:
        read("jobs.csv")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none.csv", None, "none.csv: no such file"),
        ("none.swf", None, "none.swf: cannot be read"),
        (
            "jobs.txt",
            "a b c\n",
            r"jobs.txt: expected a job table \(.csv, .csv.gz, .parquet\) or a log of format swf, openb, ",
        ),
        ("log.swf", "1 1 -1 5 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n", "log.swf: the log has no resource 'memory'"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(name: str, text: str | None, said: str) -> None:
    if text is not None:
        Path(name).write_text(text)
    with pytest.raises(UserError, match=f"^{said}") as caught:
        read(name)
    assert "\n" not in str(caught.value)


def test_machines_drawn_from_a_log_are_those_of_generate() -> None:
    drawn = few(workload=LOG | {"format": "openb", "nodes": "nodes.csv"}, machines={"sample": 2})
    with pytest.raises(UserError, match=r"^data/jobsets/few/machines.json is missing: run 'dvc repro'"):
        park_of(drawn, "few")
    assert np.array(park_of(few(), "few").capacity).tolist() == [[4000, 10000]] * 3
