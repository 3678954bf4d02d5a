"""Each sign of an implausible log, and real logs that show none. Expected numbers are computed by hand."""

from pathlib import Path

import numpy as np
import pytest
from swf_lines import CASES, HPC2N, LUBLIN, TRACES, line, there

from pipeline.core.logs.plausible import check_plausible, implausible, least_held, unconfirmed, word
from pipeline.core.logs.registry import read
from pipeline.core.logs.trace import Trace
from pipeline.errors import UserError

DAY = 86_400
NO_LIMITS = "estimates: the log has no limits of run times, so that policies know run times exactly"
CLOUDSIMPY = TRACES / "alibaba2017_cloudsimpy_jobs.csv.gz"
PODS, NODES = TRACES / "openb_pod_list_default.csv.gz", TRACES / "openb_node_list_all_node.csv.gz"


def log(folder: Path, *lines: str, header: str = "; MaxProcs: 8") -> Trace:
    path = folder / "log.swf"
    path.write_text("\n".join((header, *lines)) + "\n")
    return read(path)


def words(trace: Trace, **capacity: float) -> list[str]:
    return [word(doubt) for doubt in implausible(trace, capacity or None)]


def test_a_log_like_any_other_shows_no_sign(tmp_path: Path) -> None:
    jobs = (line(k, submit=7 * k, run=11 + k, allocated=2, estimate=60) for k in range(20))
    assert log(tmp_path, *jobs).doubts == ()


def test_more_in_use_at_once_than_the_header_says_is_a_sign(tmp_path: Path) -> None:
    # 4 + 5 processors of 8 from 5 to 10 s; up to 8.8 could be due to rounded clocks.
    jobs = (line(1, submit=0, run=10, allocated=4, estimate=10), line(2, submit=1, wait=4, allocated=5, estimate=10))
    (doubt,) = log(tmp_path, *jobs).doubts
    assert doubt == "size: 9 cpu were in use at once, and the machines have 8: are the machines larger?"
    assert log(tmp_path, *jobs, header="; MaxProcs: 9").doubts == ()
    assert words(log(tmp_path, *jobs, header="; MaxNodes: 4")) == ["size", "misfits"]  # nodes of several processors


def test_jobs_that_follow_each_other_within_a_rounded_second_are_not_in_use_at_once(tmp_path: Path) -> None:
    jobs = (line(1, submit=0, run=11, allocated=8, estimate=20), line(2, submit=10, allocated=8, estimate=20))
    assert log(tmp_path, *jobs).doubts == ()


def test_without_waits_only_the_largest_job_says_how_large_the_machine_was(tmp_path: Path) -> None:
    trace = log(tmp_path, *(line(k, wait=-1, allocated=6, estimate=10) for k in range(3)))
    assert least_held(trace, 0) == 6
    assert words(trace, cpu=7.0) == ["load"]  # 18 processors for 10 s each, on 7 until 10 s


def test_a_load_far_above_all_there_is_is_a_sign(tmp_path: Path) -> None:
    # 10 jobs of 4 processors for 100 s, the last one at 90 s, so that 8 processors offer 8 x 190 s: 4000 / 1520.
    jobs = [line(k, submit=10 * k, wait=-1, run=100, allocated=4, estimate=200) for k in range(10)]
    (doubt,) = log(tmp_path, *jobs).doubts
    assert doubt == "load: 263% of 8 cpu, from the first arrival to the last end: are the machines larger?"
    assert words(log(tmp_path, *jobs), cpu=16.0) == []


def test_many_jobs_that_fit_nowhere_are_a_sign(tmp_path: Path) -> None:
    small = [line(k, submit=100 * k, wait=-1, allocated=1, estimate=20) for k in range(30)]
    large = line(31, submit=4000, wait=-1, allocated=9, estimate=20)  # 1 of 31 jobs, with 9 of 39 units of the work
    doubts = log(tmp_path, *small, large).doubts
    assert doubts[-1] == "misfits: 3% of the jobs, with 23% of the work, fit on none of the machines"
    assert "misfits" not in words(log(tmp_path, *small * 3, large))  # 9 of 99 units


@pytest.mark.parametrize("unit", [1000, 1])
def test_arrivals_since_1970_or_later_in_milliseconds_are_a_sign(tmp_path: Path, unit: int) -> None:
    start, lines = 1_700_000_000, ["submit_time,duration,cpu,memory,instances_num"]
    lines += [f"{(start + 7 * k) * unit + k},{k + 1},1,0.1,1" for k in range(9)]
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join(lines) + "\n")
    assert words(read(path)) == (["times", "estimates"] if unit == 1000 else ["estimates"])


def test_seconds_written_as_milliseconds_are_a_sign(tmp_path: Path) -> None:
    jobs = [line(k, submit=3000 * k, run=1000 * (k + 1), estimate=60_000) for k in range(6)]
    (doubt,) = log(tmp_path, *jobs).doubts
    assert doubt == "times: all arrivals and run times are whole thousands of seconds: milliseconds?"
    assert log(tmp_path, *jobs, line(7, submit=30_000, run=1500, estimate=60_000)).doubts == ()


def test_run_times_of_many_days_are_a_sign(tmp_path: Path) -> None:
    jobs = (line(k, submit=9 * k, run=11 * DAY + k, estimate=20 * DAY) for k in range(5))
    assert log(tmp_path, *jobs).doubts == ("times: half of the jobs ran for more than 11 days: milliseconds?",)
    shorter = (line(k, submit=9 * k, run=9 * DAY + k, estimate=20 * DAY) for k in range(5))
    assert log(tmp_path, *shorter).doubts == ()


def test_a_log_of_more_than_50_years_is_a_sign(tmp_path: Path) -> None:
    jobs = (line(1, submit=2 * DAY, estimate=20), line(2, submit=52 * 365.25 * DAY, estimate=20))
    assert words(log(tmp_path, *jobs)) == ["times"]


def test_limits_in_minutes_are_a_sign(tmp_path: Path) -> None:
    # Limits of 60 minutes; 3 of 4 jobs run for 1800 s, 30 times the number 60, and one for 30 s.
    runs = (1800, 1800, 1800, 30)
    jobs = [line(k, submit=3600 * k, run=run, estimate=60) for k, run in enumerate(runs)]
    (doubt,) = log(tmp_path, *jobs).doubts
    assert doubt.startswith("limits: 75% of the jobs ran far longer than their limit (the median is 30 times):")
    assert log(tmp_path, *(job.replace(" 60 ", " 3600 ") for job in jobs)).doubts == ()


def test_a_few_jobs_beyond_their_limit_are_no_sign(tmp_path: Path) -> None:
    jobs = [line(k, submit=3600 * k, run=1800, estimate=60 if k == 1 else 3600) for k in range(4)]
    assert log(tmp_path, *jobs).doubts == ()


def test_a_log_without_limits_is_reported_and_not_refused(tmp_path: Path) -> None:
    trace = log(tmp_path, line(1), line(2, submit=30))
    assert trace.doubts == (NO_LIMITS,)
    assert unconfirmed(trace, ()) == ()


def test_what_is_accepted_is_confirmed_and_what_is_not_is_refused_in_one_line(tmp_path: Path) -> None:
    trace = log(tmp_path, line(1, allocated=64, estimate=10), line(2, submit=3, allocated=64, estimate=10))
    assert words(trace) == ["size", "load", "misfits"]
    assert unconfirmed(trace, ("size", "load", "misfits")) == ()
    doubts = unconfirmed(trace, ("size", "misfits"))
    check_plausible((), "params.yaml: workload")
    with pytest.raises(UserError) as caught:
        check_plausible(doubts, "params.yaml: workload")
    assert str(caught.value) == (
        "params.yaml: workload: implausible log: load: 1,231% of 8 cpu, from the first arrival to the last end: "
        "are the machines larger?; correct this, or confirm it by accept: [load] there"
    )


def test_notes_for_people_say_what_is_doubtful(tmp_path: Path) -> None:
    assert log(tmp_path, line(1)).notes[-1] == f"doubtful: {NO_LIMITS}"


def test_the_reported_log_without_a_header_needs_a_machine_of_6272_processors() -> None:
    trace = read(CASES / "headerless.swf")
    assert (trace.machines, least_held(trace, 0), trace.doubts) == (None, 6272, ())
    assert words(trace, cpu=512.0) == ["size", "load"]
    assert words(trace, cpu=6272.0, gpu=4.0) == []  # the log has no data on GPUs


def test_the_reported_log_of_1024_processors_shows_no_sign() -> None:
    assert read(CASES / "maxprocs_thousands.swf").doubts == ()


def test_real_logs_show_no_sign_but_missing_limits() -> None:
    for path in (HPC2N, LUBLIN, CLOUDSIMPY, PODS, NODES):
        there(path)
    assert read(HPC2N).doubts == ()  # 243 of 240 processors in use at once, and 0.8 % of the jobs far beyond limits
    assert read(LUBLIN).doubts == read(CLOUDSIMPY).doubts == (NO_LIMITS,)
    assert read(PODS).doubts == read(PODS, nodes=NODES).doubts == (NO_LIMITS,)


def test_limits_of_a_real_log_in_minutes_are_a_sign() -> None:
    trace = read(there(HPC2N))
    minutes = trace._replace(estimate_s=np.where(trace.estimate_s == trace.run_s, trace.run_s, trace.estimate_s / 60))
    assert words(minutes) == ["limits"]


def test_nodes_that_are_too_few_for_the_pods_are_a_sign(tmp_path: Path) -> None:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text("cpu_milli,memory_mib,gpu,model\n8000,8192,0,\n")
    head = "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time\n"
    pods.write_text(head + "".join(f"6000,1024,0,0,,{k},{k + 100},{k}\n" for k in range(3)))
    size, load = read(pods, nodes=nodes).doubts[1:]  # 3 x 6 cores for 100 s, on 8 until 102 s
    assert size == "size: 18 cpu were in use at once, and the machines have 8: are the machines larger?"
    assert load.startswith("load: 221% of 8 cpu")
