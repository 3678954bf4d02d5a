"""Typical faults of dumps: lines that cannot be read, fields with arbitrary content, states that have not ended."""

from pathlib import Path

import pytest
from slurm_imports import DUMPS, Imported

from pipeline.accounting.dumps import BROKEN
from pipeline.errors import UserError

CASES = Path(__file__).parent / "cases"
HEAD = "JobIDRaw|User|Submit|Start|End|State|AllocCPUS"
TIMES = "2026-01-01T00:00:00|2026-01-01T00:00:05|2026-01-01T00:01:05"
FILETXT = (CASES / "filetxt_ok.log").read_text().splitlines()[0]


def row(job: int | str, state: str = "COMPLETED", cpus: str = "1", times: str = TIMES, user: str = "anna") -> str:
    return f"{job}|{user}|{times}|{state}|{cpus}"


def lines(*rows: str, head: str = HEAD) -> str:
    return "\n".join([head, *rows, ""])


def whole(count: int, user: str = "bo") -> list[str]:
    return [row(1000 + k, user=user) for k in range(count)]


@pytest.mark.parametrize("name", ["filetxt_ok", "filetxt_group", "filetxt_latin1", "filetxt_oldpack"])
def test_what_is_not_read_of_filetxt_may_hold_anything(imported: Imported, name: str) -> None:
    jobs = imported.run(CASES / f"{name}.log")
    assert jobs.loc["11"].to_list() == [0, 1800, 3600, 1, 4, 8]
    assert jobs.loc["12"].to_list() == [60, 1500, 3600, 1, 4, 8]
    assert imported.counts("dropped") == {}
    assert imported.counts("fixed") == (
        {"part of a heterogeneous job: a job of its own": 1} if name == "filetxt_oldpack" else {}
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Name=a ", "Name=a b=c | JobState=RUNNING SubmitTime=x UserId=eve(0) Account=none "),
        ("Name=a ", "Name=two\nlines "),
        ("Name=a ", "Name=two\n\n\nJobState=lines "),
        ("WorkDir=/home/anna ", "WorkDir=/home/an na/JobState=x Account=none ProcCnt=9 "),
        ("WorkDir=/home/anna ", "WorkDir=/home/\nanna "),
        ("UserId=anna(1001)", "UserId=anna(1001) SomeNewKey=with words "),
        ("WcKey= ", ""),
        ("DerivedExitCode=0:0 ", "Comment=what a day McsLabel= DerivedExitCode=0:0 "),
        ("EligibleTime=2026-01-01T08:00:00", "EligibleTime=2026-01-01T08:00:00 HetJobId=11 HetJobOffset=0"),
        ("JobId=11", "\0\0\0\ufeffJobId=11"),
        ("JobId=11", "JobId=10 UserId=anJobId=11"),  # the disk was full
        ("ExitCode=0:0 \n", "ExitCode=0:0\r\n"),
    ],
)
def test_a_job_of_filetxt_is_read_whatever_its_names_hold(imported: Imported, old: str, new: str) -> None:
    text = "\n".join([FILETXT.replace("=11 ", f"={k} ") for k in range(20, 30)] + [FILETXT, ""])
    text = text.replace("anna", "bo", 2)
    place = text.index("JobId=11")
    changed = imported.dump(text[:place] + text[place:].replace(old, new, 1))
    assert old in text[place:]
    jobs = imported.run(changed, name_users=True)
    assert jobs.loc["11"].to_list() == [0, 1800, 3600, 1, 4, 8]
    assert set(imported.table("users.csv")["user"]) == {"anna", "bo"}
    assert len(jobs) == 11
    assert imported.counts("dropped") == (
        {"a line that the next one follows before its end": 1} if "UserId=anJobId" in new else {}
    )


def test_old_versions_of_filetxt_write_no_submission(imported: Imported) -> None:
    begin, _, _ = FILETXT.partition(" ReservationName=")
    jobs = imported.run(imported.dump(f"{begin} \n{(CASES / 'filetxt_ok.log').read_text()}"))
    assert len(jobs) == 2
    assert imported.counts("dropped") == {"no time of submission (old versions of jobcomp/filetxt write none)": 1}
    with pytest.raises(UserError, match=r"found none .*old versions"):
        imported.run(imported.dump(f"{begin} \n"))


def test_gres_of_old_versions_is_of_each_node(imported: Imported) -> None:
    old = FILETXT.replace("NodeCnt=1", "NodeCnt=2").replace("Tres=cpu=4,mem=8G,node=1,billing=4", "Gres=gpu:tesla:2")
    jobs = imported.run(imported.dump(f"{old}\n"), partial=True)
    assert jobs.loc["11", ["nodes", "cpu", "gpu"]].to_list() == [2, 2, 2]
    head = "JobID|User|Submit|Start|End|State|AllocTRES|NNodes|AllocGRES"
    held = (("cpu=4,node=2", "gpu:2"), ("cpu=4,gres/gpu:a100=2,node=2", "gpu:a100:1"), ("cpu=4,node=2", ""))
    rows = [f"{k}|anna|{TIMES}|COMPLETED|{tres}|2|{gres}" for k, (tres, gres) in enumerate(held)]
    assert imported.run(imported.dump(lines(*rows, head=head)), partial=True)["gpu"].to_list() == [2, 1, 0]


def test_a_line_break_in_a_name_of_sacct_is_no_end(imported: Imported) -> None:
    jobs = imported.run(CASES / "sacct_newline.txt")
    assert jobs.loc["1"].to_list() == [0, 3600, 7200, 1, 4, 7.8125]
    assert jobs.loc["2"].to_list() == [300, 3300, 7200, 1, 4, 7.8125]
    assert imported.counts("fixed") == {BROKEN: 1}
    assert "line break" in "\n".join(imported.said)


@pytest.mark.parametrize("name", ["two\nlines", "a\nb\n\nc", "a|b", "|a=b||", "Gr\udcfc", "JobID|State"])
def test_a_name_of_sacct_may_hold_anything(imported: Imported, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    head = HEAD.replace("User", "User|JobName|WorkDir")
    text = lines(row(1, user=f"anna|{name}|/a"), row(2, user="bo|x|/b"), head=head)
    path = imported.folder / "dump.txt"
    path.write_bytes(text.encode(errors="surrogateescape"))
    for chunk in (1 << 24, 300):
        monkeypatch.setattr("pipeline.core.logs.rows.CHUNK", chunk)
        jobs = imported.run(path, name_users=True)
        assert jobs["duration"].to_dict() == {"1": 60, "2": 60}
        assert set(imported.table("users.csv")["user"]) == {"anna", "bo"}


def test_a_line_break_in_what_is_read_is_not_joined(imported: Imported) -> None:
    jobs = imported.run(imported.dump(lines(*whole(30), row(1, user="an\nna"), row(2))))
    assert "1" not in jobs.index
    assert sum(imported.counts("dropped").values()) == 2
    assert "line break" in next(iter(imported.counts("dropped")))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (row(1, cpus="1.024"), "expected a whole number (sacct --noconvert) as AllocCPUS, found '1.024'"),
        (row(1, times="yesterday|a|b"), "expected a time as 2026"),
        ("1|anna", "expected 7 fields, as its first line names, found 2"),
        (row(1, user="an|na"), "expected 7 fields, as its first line names, found 8"),
        (row(1, user="an\0na"), "found zero bytes"),
        (row(""), "expected the number of a job"),
        ("slurm_load_jobs error: Unable to contact slurm controller", "found 1 (a cut line"),
    ],
)
def test_a_small_part_that_cannot_be_read_is_left_out_and_a_large_one_refused(
    imported: Imported, bad: str, said: str
) -> None:
    jobs = imported.run(imported.dump(lines(row(2), *whole(8), bad)))  # one of ten lines
    assert sorted(jobs.index) == sorted(["2", *(str(1000 + k) for k in range(8))])
    ((reason, count),) = imported.counts("dropped").items()
    assert said in reason
    assert count == 1
    with pytest.raises(
        UserError, match=r"dump\.txt:10: .* \(1 of 9 lines are so; up to a tenth is left out"
    ) as refused:
        imported.run(imported.dump(lines(row(2), *whole(7), bad)))
    assert said in str(refused.value)
    few = imported.dump(lines(row(2), bad))
    assert list(imported.run(few, partial=True).index) == ["2"]
    with pytest.raises(UserError, match="2 of 3 lines are so"):
        imported.run(imported.dump(lines(row(2), bad, bad)), partial=True)


def test_jobs_that_have_not_ended_are_none_though_an_end_is_written(imported: Imported) -> None:
    jobs = imported.run(CASES / "running_end.txt", partial=True)
    assert list(jobs.index) == ["101"]
    assert imported.counts("dropped") == {
        "waiting or running when the dump was made": 2,
        "ended before it started, as when cancelled": 1,
    }
    going = ("RUNNING", "RUNNING+", "PENDING", "SUSPENDED", "COMPLETING", "CONFIGURING", "CONFIGURI+", "STOPPED")
    ended = ("COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_ME+", "PREEMPTED", "BOOT_FAIL", "DEADLINE",
             "CANCELLED by 1000", "CANCELLED+", "REQUEUED")  # fmt: skip
    rows = [row(k, state) for k, state in enumerate((*ended, *going))]
    assert len(imported.run(imported.dump(lines(*rows)), partial=True)) == len(ended)
    assert imported.counts("dropped") == {"waiting or running when the dump was made": len(going)}


def test_what_was_cancelled_before_it_started_never_ran(imported: Imported) -> None:
    times = "2026-01-01T00:00:00|2026-01-01T00:05:00|2026-01-01T00:05:00"
    never = [
        row(1, "CANCELLED by 7", times=times),
        row(2, "CANCELLED", times=times.replace("|2026-01-01T00:05:00", "|None", 1)),
    ]
    jobs = imported.run(imported.dump(lines(*never, row(3), row(4, times=times))), partial=True)
    assert jobs["duration"].to_dict() == {"3": 60, "4": 1}
    assert imported.counts("dropped") == {"ended before it started, as when cancelled": 2}


def test_memory_by_slurms_flag_is_of_each_cpu(imported: Imported) -> None:
    jobs = imported.run(CASES / "mem_flag.txt")
    assert jobs["memory"].to_dict() == {"301": 8 * 3000 / 1024, "302": 4000 / 1024}


def test_times_of_1970_are_unknown(imported: Imported) -> None:
    jobs = imported.run(CASES / "year1970.txt", partial=True)
    assert list(jobs.index) == ["1"]
    assert imported.counts("dropped") == {
        "no time of submission (old versions of jobcomp/filetxt write none)": 1,
        "no time of its end": 1,
    }


def test_arrays_are_tasks(imported: Imported) -> None:
    jobs = imported.run(CASES / "arrays.txt")
    assert jobs[["duration", "cpu"]].T.to_dict("list") == {"500_1": [1740, 4], "501+0": [1740, 4], "501+1": [1740, 8]}


def test_tasks_that_share_an_id_are_jobs_each(imported: Imported) -> None:
    head = HEAD.replace("JobIDRaw", "JobIDRaw|JobID")
    rows = [row(f"500|500_{task}") for task in range(3)]
    jobs = imported.run(imported.dump(lines(*rows, rows[0], row("501|501"), head=head)), partial=True)
    assert list(jobs.index) == ["500_0", "500_1", "500_2", "501"]
    assert imported.counts("dropped") == {"the same run again, as in dumps that overlap": 1}


def test_jobs_of_several_clusters_are_asked_for_by_name(imported: Imported) -> None:
    head = HEAD.replace("User", "Cluster|User")
    both = imported.dump(lines(row(1, user="big|anna"), row(1, user="small|bo"), row(2, user="big|bo"), head=head))
    with pytest.raises(UserError, match=r"found big \(2 jobs\), small \(1 jobs\); choose one with --cluster"):
        imported.run(both)
    assert not imported.out.exists()
    assert list(imported.run(both, cluster="big").index) == ["1", "2"]
    assert imported.counts("dropped") == {"a job of another cluster": 1}
    with pytest.raises(UserError, match=r"found none \(3 a job of another cluster"):
        imported.run(both, cluster="none")
    text = (DUMPS / "jobcomp.txt").read_text()  # its cluster is unknown
    text += text.replace("JobId=", "JobId=9").replace("Cluster=unknown", "Cluster=big")
    assert len(imported.run(imported.dump(text))) == 44


@pytest.mark.parametrize(("delimiter", "mark", "end"), [(";", "", "\n"), ("\t", "", "\r\n"), ("^^", "\ufeff", "\n\n")])
def test_other_delimiters_marks_and_line_ends_are_read(imported: Imported, delimiter: str, mark: str, end: str) -> None:
    text = lines(row(1), row(2, user="bo"), head=mark + HEAD).replace("|", delimiter).replace("\n", end)
    assert imported.run(imported.dump(text))["duration"].to_list() == [60, 60]


def test_dumps_put_together_may_name_their_fields_in_another_order(imported: Imported) -> None:
    other = "\ufeffState|Extra|JobIDRaw|AllocCPUS|Submit|Start|End|User\nCOMPLETED|new\nline|2|7|" + TIMES + "|bo\n"
    jobs = imported.run(imported.dump(lines(row(1)) + other + lines(row(3, user="cleo"))))
    assert jobs["cpu"].to_dict() == {"1": 1, "2": 7, "3": 1}
    assert imported.counts("dropped") == {"the first line again: dumps put together": 2}


def test_a_cut_last_line_is_left_out_of_both_forms(imported: Imported) -> None:
    for text in (lines(row(1), row(2))[:-9], "\n".join([FILETXT, FILETXT.replace("=11", "=12")])[:-9]):
        assert len(imported.run(imported.dump(text), partial=True)) == 1
        assert imported.counts("dropped") == {"last line is cut": 1}
