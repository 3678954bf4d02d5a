"""What a controller wrote down becomes a log that scenarios and `schedule` play, and a table of its decisions."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from builders import REPOSITORY
from steered import steered

from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import slurm, why_not
from pipeline.core.logs.registry import read
from pipeline.errors import UserError
from pipeline.steering.journal import Journal
from pipeline.steering.journal_import import run

UNITS = {"cpu": 4.0, "memory": 2.0, "gpu": 0.0}


def recorded(folder: Path) -> None:
    journal = Journal(folder)
    for job, start, end, limit in ((1, 20.0, 30.0, 60.0), (2, 5.0, 5.5, None), (1, 20.0, 30.0, 60.0)):
        journal.add("ran", end, job=job, array=job, user="0123456789ab", partition="work", submit=5.0, eligible=10.0,
                    start=start, end=end, limit_s=limit, nodes=2, units={**UNITS})  # fmt: skip
    journal.add("left", 40.0, job=9)
    pool = {"partitions": ["work"], "waiting": 2, "policy": "sjf", "digest": "d"}
    journal.add("tick", 11.0, pools=[pool | {"order": [2, 1], "drawn": {"temperature": 2.0, "head": 0.7, "log": -0.5}}])
    journal.add("tick", 12.0, pools=[pool | {"same": True}])
    journal.add("tick", 13.0, pools=[pool | {"order": [1]}, pool | {"fell_back": True, "why": "slow"}])
    journal.close()
    with (folder / "journal.jsonl").open("ab") as stream:
        stream.write(b'{"kind": "ra')


def test_jobs_and_decisions_are_those_of_the_journal(tmp_path: Path) -> None:
    recorded(tmp_path)
    found, said = run(tmp_path, tmp_path / "out")
    assert said[0] == "2 jobs of 1 users; 2 decisions, 1 of them drawn"
    assert (found["jobs"], found["users"]) == (2, 1)
    jobs = pd.read_csv(tmp_path / "out" / "jobs.csv")
    assert jobs.to_dict("list") == {
        "job": [2, 1],
        "arrival": [0, 5],
        "duration": [1, 10],
        "estimate": [365 * 86400, 60],
        "nodes": [2, 2],
        "cpu": [2, 2],
        "memory": [1, 1],
    }
    account = pd.read_csv(tmp_path / "out" / "account.csv")
    assert dict(zip(account["why"].str.split(":").str[0], account["rows"], strict=True)) == {
        "started before it was eligible": 1,
        "ran less than a second": 1,
        "no time limit": 1,
        "the same run again": 1,
        "gone without being seen to run": 1,
        "a line that was never written whole": 1,
    }
    told = pd.read_csv(tmp_path / "out" / "decisions.csv", dtype=str)
    assert told[["first", "order", "temperature", "probability", "log_probability"]].to_numpy().tolist() == [
        ["2", "2 1", "2", "0.7", "-0.5"],
        ["1", "1", "0", "1", "0"],
    ]


def test_jobs_that_arrive_together_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for job in (10, 9, 100):
        journal.add("ran", 30.0, job=job, partition="work", submit=5.0, eligible=10.0, start=20.0, end=30.0,
                    limit_s=60.0, nodes=1, units={**UNITS})  # fmt: skip
    journal.close()
    run(tmp_path, tmp_path / "out")
    assert pd.read_csv(tmp_path / "out" / "jobs.csv")["job"].to_list() == [9, 10, 100]


def test_a_folder_without_a_journal_or_without_jobs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"journal.jsonl: not found; expected the --folder of a controller"):
        run(tmp_path, tmp_path / "out")
    Journal(tmp_path).close()
    with pytest.raises(UserError, match=r"journal.jsonl: expected jobs that ran, found none"):
        run(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.slow
def test_a_real_steered_run_becomes_a_log_that_is_played(tmp_path: Path) -> None:
    with slurm(Cluster(nodes=4, cpus=1)) as cluster, steered(cluster, tmp_path / "steering") as one:
        controller = one.steer("--draw", "30")
        one.slurm.until(lambda: bool(one.journal("tick")), "a first tick", 240)
        for limit in (5, 1, 3, 2, 4, 1):
            one.waits(limit, script="sleep 2")
        one.slurm.until(lambda: not one.slurm.states(), "all jobs to end", 240)
        one.slurm.until(lambda: len(one.journal("ran")) == 6, "six jobs in the journal", 60)
        controller.terminate()
        one.ended(controller)
    words = [sys.executable, "-m", "pipeline"]
    done = subprocess.run([*words, "import", "journal", str(one.folder), "--out", str(tmp_path / "site")],
                          cwd=REPOSITORY, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.stdout.startswith("6 jobs of 1 users; "), done.stderr
    decisions = pd.read_csv(tmp_path / "site" / "decisions.csv")
    assert (decisions["temperature"] == 30.0).all()
    assert decisions["probability"].between(0.0, 1.0, inclusive="right").all()
    assert (decisions["log_probability"] < 0.0).any()
    trace = read(tmp_path / "site" / "log.swf")
    assert sorted(trace.estimate_s) == [60, 60, 120, 180, 240, 300]
    played = subprocess.run(
        [*words, "schedule", str(tmp_path / "site" / "jobs.csv"), "--scenario", "machines", "--policy", "sjf", "--out",
         str(tmp_path / "plan.csv")], cwd=REPOSITORY, capture_output=True, text=True, check=False,
        env=os.environ | {"COLUMNS": "200"})  # fmt: skip
    assert played.returncode == 0, played.stderr
    assert len(pd.read_csv(tmp_path / "plan.csv")) == 6
