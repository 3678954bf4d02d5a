"""Recorded dumps are imported: each row is a job or is counted with its reason, and times are those of the dump."""

import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import REPOSITORY
from slurm_imports import DUMPS, Imported

from pipeline.core.config import load_params
from pipeline.core.logs import slurm, swf
from pipeline.errors import UserError
from pipeline.interactive.machines.scheduling import job_columns, park_of
from pipeline.interactive.scheduling.user_jobs import read_user_jobs

SACCT, JOBCOMP = DUMPS / "sacct.txt", DUMPS / "jobcomp.txt"
HEADER = "JobIDRaw|User|Submit|Start|End|State|AllocCPUS"
ROW = "{id}|{user}|2026-01-01T00:00:00|2026-01-01T00:00:05|{end}|{state}|1"


def rows(*changes: dict[str, str]) -> str:
    usual = {"user": "anna", "end": "2026-01-01T00:01:05", "state": "COMPLETED"}
    given = [usual | {"id": str(k)} | change for k, change in enumerate(changes, 1)]
    return "\n".join([HEADER, *(ROW.format(**row) for row in given), ""])


GOOD = rows({}, {"user": "bo"})


def test_each_row_of_sacct_is_a_job_or_counted(imported: Imported) -> None:
    jobs = imported.run(SACCT)
    assert imported.counts("dropped") == {
        "a step of a job": 3,
        "waiting or running when the dump was made": 2,
        "ended before it started, as when cancelled": 1,
    }
    read = len(SACCT.read_text().splitlines()) - 1
    assert len(jobs) + sum(imported.counts("dropped").values()) == read
    assert sorted(jobs.index) == [
        "100",
        "100-2",
        "101",
        "102",
        "103",
        "104",
        "106",
        "107",
        "107-2",
        "108",
        "109",
        "112",
    ]
    assert imported.counts("fixed") == {
        "task of an array: a job of its own": 2,
        "part of a heterogeneous job: a job of its own": 1,
        "End less Start is not ElapsedRaw (clock changed, or suspended): ElapsedRaw taken": 1,
        "ran less than a second: 1 s taken": 1,
        "eligible after its submission (dependency, begin time, hold): arrives when eligible": 2,
        "time limit without end: 365 days taken, as backfill does": 2,
        "time limit unknown: 365 days taken": 1,
        "CPUs are no multiple of nodes: each node holds the mean": 1,
        "ran again after a requeue: each run is a job": 1,
        "id given again: another job": 1,
    }


def test_jobs_of_sacct_have_its_times_and_amounts(imported: Imported) -> None:
    jobs = imported.run(SACCT)
    assert jobs.loc["100"].to_list() == [0, 600, 3600, 1, 4, 15.625, 0]
    assert jobs.loc["103"].to_list() == [20, 3600, 7200, 2, 8, 128, 2]  # of each node
    assert jobs.loc["104", "arrival"] == 62 * 60  # not before it was eligible
    assert jobs.loc["104", "memory"] == pytest.approx(10 * 2000 / 1024 / 3)  # 2000Mc of 10 CPUs
    assert jobs.loc["106", "memory"] == 16  # 16Gn
    assert jobs.loc["107", "duration"] == 110
    assert jobs.loc["107-2"].to_list()[:3] == [421, 300, 1800]
    assert jobs.loc["108", "duration"] == 3000  # by the clock, it ended before it started
    assert jobs.loc["112", "estimate"] == 26 * 3600
    log = imported.swf()
    assert log.loc["100"].to_list()[:5] == [1, 0, 10, 600, 4]
    assert log.loc["103"].to_list()[7:11] == [16, 7200, 16 * 2**20, 0]  # GiB per CPU, in KB; timed out counts as failed
    assert log.loc["106", 11] == 5
    assert imported.header("MaxProcs") == "23"  # 100, 103, 106 and 107 from 08:03:10 on


def test_the_file_without_a_database_is_read_too(imported: Imported) -> None:
    jobs = imported.run(JOBCOMP)  # written by a real Slurm cluster
    assert len(jobs) == 22
    assert imported.counts("dropped") == {"ended before it started, as when cancelled": 1}
    assert imported.counts("fixed")["ran again after a requeue: each run is a job"] == 2
    assert jobs.loc["5", ["arrival", "duration"]].to_list() == [0, 1]  # its state is PENDING, because it was requeued
    assert jobs.loc["5-2", ["arrival", "duration"]].to_list() == [123, 2]
    assert jobs.loc["7", ["nodes", "cpu"]].to_list() == [2, 2]
    assert jobs.loc["9", "cpu"] == 4  # a whole node, though it asked for one CPU
    assert jobs.loc["8", "estimate"] == 60


def test_chunks_make_no_difference(imported: Imported, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = imported.run(SACCT, JOBCOMP)
    files = {path.name: path.read_bytes() for path in imported.out.iterdir()}
    monkeypatch.setattr("pipeline.core.logs.rows.CHUNK", 300)
    monkeypatch.setattr("pipeline.accounting.dumps.ROWS", 3)
    assert whole.equals(imported.run(SACCT, JOBCOMP))
    assert {path.name: path.read_bytes() for path in imported.out.iterdir()} == files


def test_the_log_keeps_what_the_job_table_and_the_swf_say(imported: Imported) -> None:
    imported.run(SACCT)
    table, log = imported.table("jobs.csv"), imported.swf()
    trace = slurm.read(imported.out / "log.csv")
    assert trace.nodes.tolist() == table["nodes"].to_list()
    for place, name in enumerate(("cpu", "memory", "gpu")):
        assert trace.demand[:, place] / 1000 == pytest.approx(table[name].to_numpy(), abs=0.001), name
    assert (trace.submit_s - trace.submit_s[0]).tolist() == log[2].to_list()
    assert trace.wait_s.tolist() == log[3].to_list()
    assert (trace.run_s.tolist(), trace.estimate_s.tolist()) == (log[4].to_list(), log[9].to_list())
    assert trace.user.tolist() == log[12].to_list()
    names = pd.read_csv(imported.out / "log.csv")["partition"].fillna("")
    assert pd.factorize(names)[0].tolist() == pd.factorize(log[16])[0].tolist()
    accounts, qos = zip(*(trace.group_names[group] for group in trace.group), strict=True)
    assert accounts == tuple(str(one) if one > 0 else "" for one in log[13])
    assert pd.factorize(pd.Series(qos))[0].tolist() == pd.factorize(log[15])[0].tolist()


def test_a_log_is_read_as_it_was_written(imported: Imported) -> None:
    jobs = imported.run(SACCT)
    trace = swf.read(imported.out / "log.swf")
    assert trace.dropped == ()
    assert trace.run_s.tolist() == jobs["duration"].to_list()
    assert trace.submit_s.tolist() == jobs["arrival"].to_list()
    assert trace.demand[:, 0].tolist() == (1000 * imported.swf()[5]).to_list()
    np.testing.assert_allclose(trace.demand[:, 1] / 1000, jobs["memory"] * jobs["nodes"], atol=0.001)
    assert len(np.unique(trace.user)) == 3


def test_schedule_reads_the_job_table(imported: Imported) -> None:
    imported.run(JOBCOMP)
    params = load_params(REPOSITORY / "params.yaml")
    found = read_user_jobs(
        imported.out / "jobs.csv", job_columns(params.machines_scenario("machines"), park_of(params, "machines"))
    )
    assert len(found.jobs.arrival) == 22
    assert found.jobs.duration.sum() == imported.table("jobs.csv")["duration"].sum()


def test_dumps_that_overlap_give_each_run_once(imported: Imported) -> None:
    alone = imported.run(SACCT)
    lines = SACCT.read_text().splitlines(keepends=True)
    again = imported.dump("".join([*lines[:1], *lines[1:8], *lines[:1], *lines[8:]]))
    assert imported.run(SACCT, again).equals(alone)
    counts = imported.counts("dropped")
    assert (
        counts["the same run again, as in dumps that overlap"],
        counts["the first line again: dumps put together"],
    ) == (12, 1)


def test_users_are_numbers_that_a_key_gives(imported: Imported, tmp_path: Path) -> None:
    imported.run(SACCT)
    first, key = imported.swf()[12], imported.out / "users.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert "anna" not in "".join(path.read_text() for path in imported.out.iterdir())
    imported.run(SACCT)
    assert imported.swf()[12].equals(first)  # with the same key
    other = tmp_path / "other.key"
    other.write_text("0123456789abcdef0123456789abcdef")
    other.chmod(0o600)
    imported.run(SACCT, key_file=other, name_users=True)
    mine = imported.swf()[12]
    assert not set(mine) & set(first)
    assert mine.nunique() == 3
    users = imported.table("users.csv").set_index("user")["number"]
    assert users["cleo"] == mine["107"] == mine["100-2"]


def test_a_part_of_a_log_is_taken_where_one_says_so(imported: Imported) -> None:
    cut = imported.dump(rows({}, {})[:-9])
    jobs = imported.run(cut, partial=True)
    assert jobs.index.to_list() == ["1"]
    assert imported.counts("dropped") == {"last line is cut": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD[:-9], "dump.txt:3: expected a whole last line"),
        (GOOD.rstrip(), "dump.txt:3: expected a whole last line"),  # its last field may be cut
        (rows({}), "expected the jobs of all users, found a single user"),
        (rows({"state": "FAILED"}, {"user": "bo", "state": "TIMEOUT"}), "found none among 2 (FAILED 1, TIMEOUT 1)"),
        (rows({"end": "Unknown", "state": "RUNNING"}), "expected jobs that ran, found none (1 waiting or running"),
        (rows({"end": "01.01.2026 00:01:05"}, {"user": "bo"}), "dump.txt:2: expected a time as 2026-01-31T08:00:00"),
        (GOOD.replace("|1\n", "|1,0\n"), "dump.txt:2: expected a whole number (sacct --noconvert) as AllocCPUS"),
        (GOOD.replace("bo", "b|o"), "dump.txt:3: expected 7 fields, as its first line names, found 8"),
        (GOOD.replace("AllocCPUS", "Comment"), "dump.txt:1: expected the field AllocTRES"),
        (GOOD.replace("|End|", "|Comment|"), "dump.txt:1: expected the field End"),
        (GOOD.replace("User", "State"), "dump.txt:1: expected each field once, found State twice"),
        (GOOD.split("\n", 1)[1], "dump.txt:1: expected the names of fields"),
        ("", "expected jobs, found an empty file"),
        (HEADER + "\n", "expected jobs that ran, found none"),
        ("JobId=1 UserId=anna\n", "dump.txt:1: expected JobId=... to ExitCode=..."),
        (rows({"user": "\0"}), "found zero bytes"),
    ],
)
def test_what_is_no_log_of_a_site_is_refused_and_nothing_written(imported: Imported, text: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        imported.run(imported.dump(text))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not imported.out.exists()


@pytest.mark.parametrize(("content", "mode", "said"), [("short", 0o600, "16 bytes"), ("k" * 64, 0o644, "mode 644")])
def test_a_key_that_is_none_is_refused(imported: Imported, content: str, mode: int, said: str) -> None:
    key = imported.dump(content, "my.key")
    key.chmod(mode)
    with pytest.raises(UserError, match=said):
        imported.run(SACCT, key_file=key)
    with pytest.raises(UserError, match="cannot be read"):
        imported.run(SACCT, key_file=key.with_name("none.key"))
    assert not imported.out.exists()
