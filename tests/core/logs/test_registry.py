"""Formats by name, and each of them as jobs of each problem that accepts it."""

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import group_rows
import machine_rows
import numpy as np
import pytest
from builders import params as read_params
from log_samples import SAMPLES
from swf_lines import CASES, line
from swf_lines import read as read_lines

from pipeline.core.config import PoolLog, check_params
from pipeline.core.logs.registry import FORMATS, check_formats, check_there, distinct, guess, log_format, read
from pipeline.core.types import LOG_NAME, NODES_NAME
from pipeline.errors import UserError
from pipeline.problems.groups.env.workload import source as groups
from pipeline.problems.machines.env.workload import source as machines
from pipeline.problems.pool.env.workload.source import LogSource, source

PODS = "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time"
NODES = "cpu_milli,memory_mib,gpu,model\n8000,8192,2,\n"
TASKS = "submit_time,duration,cpu,memory,instances_num"
SLURM = "submit,wait,run,limit,user,nodes,cpu,memory,gpu,partition"
Row = Callable[[int, int, int, int], Sequence[str]]  # (job, submit_s, run_s, cores): the lines of a job
JOBS = 60
ROWS: dict[str, tuple[str, Row]] = {  # the first line, and the lines of each job
    "swf": (
        "; MaxProcs: 8",
        lambda k, at, run, cpu: [f"{k} {at} 0 {run} {cpu} -1 -1 -1 -1 1048576 1 {k % 3} -1 -1 -1 -1 -1 -1"],
    ),
    "openb": (PODS, lambda k, at, run, cpu: [f"{cpu}000,1024,0,0,,{at},{at + run},{at}"]),
    "alibaba2018": ("", lambda k, at, run, cpu: [f"M1,1,j_1,1,Terminated,{at},{at + run},{cpu}00,5"]),
    "alibaba2017": ("", lambda k, at, run, cpu: [f"{at},{at + run},1,1,1,Terminated,{cpu}00,0.05"]),
    "cloudsimpy": (TASKS, lambda k, at, run, cpu: [f"{at},{run},{cpu},0.05,1"]),
    "slurm": (SLURM, lambda k, at, run, cpu: [f"{at},0,{run},{run},{k % 3},1,{cpu},1,0,p"]),
    "google2011": (
        "",
        lambda k, at, run, cpu: [
            f"{(at + late) * 10**6},,{k},0,,{event},user{k % 3},2,9,0.0{cpu},0.05,0,0"
            for event, late in ((0, 0), (1, 0), (4, run))
        ],
    ),
}
RUN_S = [60 * (k % 3 + 1) for k in range(JOBS)]
CORES = [k % 4 + 1 for k in range(JOBS)]  # or percent of a machine


def written(folder: Path, format: str) -> Path:
    """Make a folder as `log` leaves it: jobs a thousand seconds apart, so that no two run at once."""
    first, row = ROWS[format]
    lines = [line for k in range(JOBS) for line in row(k, 1000 * (k + 1), RUN_S[k], CORES[k])]
    (folder / LOG_NAME).write_text("\n".join([first, *lines][not first :]) + "\n")
    (folder / NODES_NAME).write_text(NODES)
    return folder


@pytest.mark.parametrize("format", FORMATS)
def test_a_pooled_cluster_has_the_jobs_of_a_log_of_every_format(tmp_path: Path, format: str) -> None:
    nodes = "nodes.csv" if format == "openb" else None
    log = PoolLog(name="log", format=format, path="log", nodes=nodes, step_s=60, capacity=8, window=5)
    params = read_params().model_copy(update={"workload": log})
    origin = source(params, "online", written(tmp_path, format))
    assert isinstance(origin, LogSource)
    assert origin.steps.duration.tolist() == [seconds // 60 for seconds in RUN_S]
    assert origin.steps.arrival.tolist() == [1000 * k // 60 for k in range(JOBS)]
    # Eight units are the eight cores of the log's machines; without machines, they are the most held at once: four.
    units = 1 if format in ("swf", "openb") else 2
    assert origin.steps.demand[:, 0].tolist() == [units * cores for cores in CORES]
    assert (origin.steps.demand[:, 1] > 0).all()
    for split, count in (("train", 7), ("validation", 1), ("test", 3)):  # from 36, 9 and 15 jobs
        assert [len(jobs.arrival) for jobs in origin.split(split)[origin.load]] == [5] * count


@pytest.mark.parametrize("format", FORMATS)
def test_machines_have_the_jobs_of_a_log_of_every_format(tmp_path: Path, format: str) -> None:
    log = machine_rows.LOG | {"format": format, "window": 5}
    params = machine_rows.few(machines=[{"count": 2, "has": {"cpu": 4}}], workload=log)
    origin = machines.source(params, "few", written(tmp_path, format))
    assert isinstance(origin, machines.Cut)
    assert origin.fit.jobs.duration.tolist() == RUN_S
    assert origin.fit.jobs.demand[:, 0].tolist() == [1000 * cores for cores in CORES]
    assert [len(jobs.arrival) for jobs in origin.split("test")[60]] == [5] * 3


@pytest.mark.parametrize("format", ["swf", "google2011"])
def test_user_groups_have_the_jobs_of_a_log_that_says_whose_they_are(tmp_path: Path, format: str) -> None:
    params = group_rows.shared(resources={"cpu": 8}, workload=group_rows.LOG | {"format": format}, interval=100.0)
    origin = groups.source(params, "shared", written(tmp_path, format))
    assert isinstance(origin, groups.Cut)
    assert origin.log.jobs.duration.tolist() == RUN_S
    assert origin.log.jobs.demand[:, 0].tolist() == CORES
    assert len(np.unique(origin.log.user)) == 3
    assert set(origin.log.jobs.group.tolist()) == {0, 1}


@pytest.mark.parametrize("format", sorted(set(FORMATS) - {"swf", "slurm", "google2011"}))
def test_user_groups_refuse_a_log_that_does_not_say_whose_jobs_are(tmp_path: Path, format: str) -> None:
    params = group_rows.shared(resources={"cpu": 8}, workload=group_rows.LOG | {"format": format})
    expected = r"^params.yaml: scenarios.shared.workload: the log does not say whose its jobs are, so that there are no"
    with pytest.raises(UserError, match=expected):
        groups.source(params, "shared", written(tmp_path, format))


def test_memory_in_kb_is_not_that_of_a_log_which_counts_in_percent(tmp_path: Path) -> None:
    log = PoolLog(name="log", format="cloudsimpy", path="log", memory_kb=1000)
    expected = "^params.yaml: scenarios.online: workload.memory_kb: the memory of this log is in percent of a machine$"
    with pytest.raises(UserError, match=expected):
        source(read_params().model_copy(update={"workload": log}), "online", written(tmp_path, "cloudsimpy"))


def unknown(section: str) -> dict[str, Any]:
    rows = group_rows.rows() | {"workload": {"name": "log", "format": "swf", "path": "a.swf"}}
    rows["scenarios"]["few"] = machine_rows.ROW | {"workload": dict(machine_rows.LOG)}
    rows["scenarios"]["shared"] |= {"workload": dict(group_rows.LOG)}
    place = rows
    for key in section.split("."):
        place = place[key]
    place["format"] = "pbs"
    return rows


@pytest.mark.parametrize("section", ["workload", "scenarios.few.workload", "scenarios.shared.workload"])
def test_a_format_that_there_is_not_is_refused_with_those_there_are(section: str) -> None:
    expected = rf"^params.yaml: {section}.format: expected one of swf, openb, .*, google2011, got 'pbs'$"
    with pytest.raises(UserError, match=expected):
        check_formats(check_params(unknown(section), "params.yaml"))


# By name, or by appearance


def text(folder: Path, content: str) -> Path:
    path = folder / "log.csv"
    path.write_text(content)
    return path


def test_a_file_like_no_format_is_refused_with_their_names(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot tell its format from its first line: name it, one of swf, openb, "):
        guess(text(tmp_path, "sn,cpu_milli,memory_mib,gpu,model\n"))


def test_a_file_like_no_format_is_refused_with_the_number_of_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "extended.txt"
    path.write_text((CASES / "extended_21_columns.swf").read_text())
    with pytest.raises(UserError, match=r"\(found 21 columns\)$"):
        guess(path)


@pytest.mark.parametrize("name", ["log.swf", "LOG.SWF", "log.swf.gz", "Log.Swf.GZ"])
def test_a_log_that_is_named_as_one_is_read_as_one(tmp_path: Path, name: str) -> None:
    content = (CASES / "extended_21_columns.swf").read_bytes()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.lower().endswith(".gz") else content)
    assert guess(tmp_path / name) == log_format(tmp_path / name) == "swf"
    with pytest.raises(UserError, match=r":1: expected 18 numbers, found 21$"):
        read(tmp_path / name)


def test_a_log_in_utf_16_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_bytes("; MaxProcs: 8\n".encode("utf-16"))
    with pytest.raises(UserError, match=r"bytes that are not plain text .*UTF-16"):
        read(tmp_path / "log.swf")


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_is_looked_at_for_what_is_implausible(tmp_path: Path, format: str) -> None:
    first, row = ROWS[format]
    lines = [line for k in range(JOBS) for line in row(k, 1000 * (k + 1), 11 * 86_400 + k, 1)]
    (tmp_path / LOG_NAME).write_text("\n".join([first, *lines][not first :]) + "\n")
    assert read(tmp_path / LOG_NAME).doubts[0].startswith("times: half of the jobs ran for more than 11 days")


@pytest.mark.parametrize("format", sorted(set(FORMATS) - {"google2011", "swf"}))
def test_times_of_1970_among_those_of_decades_later_are_unknown_in_every_format(tmp_path: Path, format: str) -> None:
    first, row = ROWS[format]
    starts = (5, *range(1_600_000_000, 1_600_000_005))
    lines = [line for k, start in enumerate(starts) for line in row(k, start, 10 + k, 1)]
    (tmp_path / LOG_NAME).write_text("\n".join([first, *lines][not first :]) + "\n")
    trace = read(tmp_path / LOG_NAME)
    assert (trace.id.tolist(), len(trace.dropped)) == ([2, 3, 4, 5, 6], 1)


def test_a_file_without_a_line_has_no_format(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected jobs, found an empty file"):
        guess(text(tmp_path, "\n\n"))


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^format: expected one of swf, openb, .*, google2011, found 'pbs'$"):
        read(text(tmp_path, TASKS), "pbs")


def test_an_option_of_another_format_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "alibaba2018") / LOG_NAME
    with pytest.raises(UserError, match=r"a log of format 'alibaba2018' has no nodes; .* format openb, slurm$"):
        read(path, nodes=tmp_path / "nodes.csv")
    with pytest.raises(UserError, match=r"a log of format 'alibaba2018' has no per_node; expected one of format swf$"):
        read(path, per_node=True)


def test_the_options_of_a_format_reach_its_reader(tmp_path: Path) -> None:
    assert read(written(tmp_path, "openb") / LOG_NAME, nodes=tmp_path / NODES_NAME).machines is not None
    assert read(written(tmp_path, "swf") / LOG_NAME, per_node=True).nodes.tolist() == CORES
    assert len(read(text(tmp_path, f"{TASKS}\n0,5,10,0.02,3\n"), instances="each").id) == 3


def test_a_log_that_is_not_there_is_told_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    params = read_params().model_copy(update={"workload": PoolLog(name="swf", path="site.swf")})
    with pytest.raises(UserError, match=r"^params.yaml: workload.path: site.swf: no such file$"):
        check_there(params)
    (tmp_path / "site.swf").touch()
    check_there(params)


# Files of users


@pytest.mark.parametrize("format", SAMPLES)
def test_a_log_is_known_by_its_first_lines_whatever_its_name(tmp_path: Path, format: str) -> None:
    for name in ("log.csv", "log.txt", "log"):
        (tmp_path / name).write_text(SAMPLES[format])
        assert log_format(tmp_path / name) == format


def test_a_folder_is_a_log_of_parts(tmp_path: Path) -> None:
    assert log_format(tmp_path) == "google2011"


def test_what_looks_like_no_log_is_a_table_if_its_name_says_so(tmp_path: Path) -> None:
    for name, format in (("a.csv", None), ("a.parquet", None), ("a.csv.gz", None), ("a.swf", "swf")):
        (tmp_path / name).write_text("job,arrival\n")
        assert log_format(tmp_path / name) == format
    (tmp_path / "folder.csv").mkdir()
    assert log_format(tmp_path / "folder.csv") is None
    (tmp_path / "a.txt").write_text("job,arrival\n")
    with pytest.raises(
        UserError, match=r"a.txt: expected a job table \(.csv, .csv.gz, .parquet\) or a log of format s"
    ):
        log_format(tmp_path / "a.txt")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none: "):
        log_format(tmp_path / "none")


def test_jobs_of_one_number_are_numbered_by_arrival_and_counted(tmp_path: Path) -> None:
    trace = read_lines(tmp_path, "; MaxProcs: 8", line(7, submit=5), line(7, submit=2), line(8, submit=9))
    assert distinct(trace).id.tolist() == [1, 2, 3]
    assert distinct(trace).repaired[-1] == ("number of another job: all are numbered in order of arrival, from 1", 1, 0)
    assert distinct(read_lines(tmp_path, line(7), line(8))).id.tolist() == [7, 8]
