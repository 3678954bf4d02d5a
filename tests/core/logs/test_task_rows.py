"""Logs of tasks by Alibaba and CloudSimPy; expected numbers are computed by hand from the few rows of each log."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipeline.core.logs import task_rows as parts
from pipeline.core.logs.task_rows import TASK_LOGS
from pipeline.core.types import ANY_KIND
from pipeline.errors import UserError

ALIBABA2017, ALIBABA2018, OF_CLOUDSIMPY = TASK_LOGS["alibaba2017"], TASK_LOGS["alibaba2018"], TASK_LOGS["cloudsimpy"]
CLOUDSIMPY = Path(__file__).parents[4] / "shared" / "traces" / "alibaba2017_cloudsimpy_jobs.csv.gz"
HEADER = ",submit_time,duration,cpu,memory,job_id,task_id,instances_num,disk"
GIB = 2**30


def written(folder: Path, *lines: str) -> Path:
    path = folder / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


# cluster-trace-v2018


def test_a_task_of_2018_arrives_when_it_starts(tmp_path: Path) -> None:
    trace = ALIBABA2018.read(written(tmp_path, "M2_1,3,j_7,1,Terminated,86400,86430.5,150,0.39"))
    assert (trace.id, trace.submit_s, trace.run_s, trace.estimate_s) == (1, 86_400, 30.5, 30.5)
    assert trace.demand.tolist() == [[1500, 390]]  # 1.5 cores; 0.39 percent of a machine
    assert (trace.nodes, trace.user, trace.kinds, np.isnan(trace.wait_s[0])) == (1, -1, ANY_KIND, True)
    assert (trace.resources, trace.units) == (("cpu", "memory"), ("cores", "percent of a machine"))
    assert (trace.has_estimates, trace.machines, trace.kind_names) == (False, None, ("",))


def test_of_2018_only_tasks_that_ended_and_said_what_they_want_are_jobs(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "M1,1,j_1,1,Terminated,100,110,100,0.5",
        "M2,1,j_1,1,Failed,100,90,,",
        "M3,1,j_1,1,Running,100,,100,0.5",
        "M4,1,j_1,1,,100,110,100,0.5",
        "M5,1,j_1,1,Terminated,,110,100,0.5",
        "M6,1,j_1,1,Terminated,100,,100,0.5",
        "M7,1,j_1,1,Terminated,100,100,100,0.5",
        "M8,1,j_1,1,Terminated,100,110,,0.5",
        "M9,1,j_1,1,Terminated,100,110,100,",
        "M10,1,j_1,1,Terminated,100,110,-1,0.5",
        "M11,0,j_1,1,Terminated,100,110,100,0.5",
        "M12,1,j_1,1,Terminated,50,110,100,0.5",
    )
    trace = ALIBABA2018.read(path)
    assert (trace.id.tolist(), trace.run_s.tolist()) == ([12, 1, 7], [60, 10, 1])
    assert trace.dropped == (
        ("status other than Terminated", 3, 2),
        ("time of submission unknown", 1, 5),
        ("run time unknown", 1, 6),
        ("CPU or memory unknown", 2, 8),
        ("CPU or memory below 0", 1, 10),
        ("no instances", 1, 11),
    )
    sorted_, short = ("not in order of arrival: sorted", 1, 0), ("ran less than a second: 1 s taken", 1, 7)
    assert (trace.rows, set(trace.repaired)) == (12, {sorted_, short})


def test_amounts_too_small_to_count_hold_one_thousandth(tmp_path: Path) -> None:
    trace = ALIBABA2018.read(written(tmp_path, "M1,1,j_1,1,Terminated,100,110,0.01,0", "M1,1,j,1,Terminated,1,2,100,1"))
    assert trace.demand.tolist() == [[1000, 1000], [1, 0]]


def test_each_instance_may_be_a_job(tmp_path: Path) -> None:
    rows = ("M1,3,j_1,1,Terminated,100,110,100,0.5", "M2,2,j_1,1,Failed,100,110,100,0.5")
    path = written(tmp_path, *rows, "M3,2,j_1,1,Terminated,90,95,50,1")
    one, each = (ALIBABA2018.read(path, instances=instances) for instances in ("one", "each"))
    assert (one.id.tolist(), each.id.tolist()) == ([3, 1], [3, 3, 1, 1, 1])
    assert each.submit_s.tolist() == [90, 90, 100, 100, 100]
    assert each.demand.tolist() == [[500, 1000]] * 2 + [[1000, 500]] * 3
    assert one.dropped == each.dropped == (("status other than Terminated", 1, 2),)
    assert one.rows == each.rows == 3


def test_more_instances_than_can_be_held_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_JOBS", 4)
    monkeypatch.setattr("pipeline.core.logs.rows.CHUNK", 1)
    path = written(tmp_path, "M1,3,j_1,1,Terminated,1,2,100,0.5", "M1,2,j_1,1,Terminated,1,2,100,0.5")
    assert len(ALIBABA2018.read(path).id) == 2
    with pytest.raises(UserError, match="expected at most 4 instances, found more: read one job a task"):
        ALIBABA2018.read(path, instances="each")


def test_a_log_without_a_task_that_ended_says_so(tmp_path: Path) -> None:
    expected = r"none in 1 rows: status other than Terminated \(1, first in line 1\)$"
    with pytest.raises(UserError, match=expected):
        ALIBABA2018.read(written(tmp_path, "M1,3,j_1,1,Waiting,1,2,100,0.5"))


# cluster-trace-v2017


def test_a_task_of_2017_runs_from_its_creation_to_its_last_change(tmp_path: Path) -> None:
    trace = ALIBABA2017.read(written(tmp_path, "10718,12897,15,64,2003,Terminated,50,0.016007"))
    assert (trace.id, trace.submit_s, trace.run_s) == (1, 10_718, 2179)
    assert trace.demand.tolist() == [[500, 1601]]  # half a core; 1.6007 percent of a machine


def test_of_2017_tasks_that_were_there_before_the_log_are_dropped(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "-10,0,4,7,393,Waiting,,",
        "0,100,4,7,1,Terminated,100,0.1",
        "-5,100,4,7,1,Terminated,100,0.1",
        "50,50,4,7,1,Terminated,100,0.1",
        "50,51,4,7,1,Terminated,,",
        "50,51,4,7,1,Terminated,100,0.1",
    )
    trace = ALIBABA2017.read(path)
    assert (trace.id.tolist(), trace.run_s.tolist()) == ([4, 6], [1, 1])
    assert trace.dropped == (
        ("status other than Terminated", 1, 1),
        ("created before the log begins", 2, 2),
        ("CPU or memory unknown", 1, 5),
    )


# CloudSimPy


def test_a_row_of_cloudsimpy_is_a_task(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER, "0,539,116.5,1.0,0.0054047,1,1,283,0", "1,539,-1,1.0,0.1,1,1,1,0")
    trace = OF_CLOUDSIMPY.read(path)
    assert (trace.id, trace.submit_s, trace.run_s) == (1, 539, 116.5)
    assert trace.demand.tolist() == [[1000, 540]]  # 0.54047 percent of a machine
    assert (trace.dropped, trace.rows) == ((("run time below 0", 1, 3),), 2)
    assert len(OF_CLOUDSIMPY.read(path, instances="each").id) == 283


def test_each_instance_of_a_task_that_ran_for_no_time_runs_for_a_second(tmp_path: Path) -> None:
    trace = OF_CLOUDSIMPY.read(written(tmp_path, HEADER, "0,539,0,1.0,0.1,1,1,3,0"), instances="each")
    assert trace.run_s.tolist() == [1, 1, 1]
    assert (trace.dropped, trace.repaired) == ((), (("ran less than a second: 1 s taken", 1, 2),))


def test_the_log_of_cloudsimpy_is_read_whole() -> None:
    if not CLOUDSIMPY.exists():
        pytest.skip(f"the trace files stand beside the project, and {CLOUDSIMPY} is not there")
    trace = OF_CLOUDSIMPY.read(CLOUDSIMPY)
    assert (len(trace.id), trace.rows, trace.dropped) == (31_756, 31_756, ())
    assert trace.repaired == (("not in order of arrival: sorted", 614, 0),)
    assert (trace.demand.min(axis=0).tolist(), trace.demand.max(axis=0).tolist()) == ([400, 275], [3000, 7432])
    assert (np.diff(trace.submit_s) >= 0).all()
    assert len(OF_CLOUDSIMPY.read(CLOUDSIMPY, instances="each").id) == 2_551_075


# Long logs

MEASURE = """
import resource, sys
from pathlib import Path
from pipeline.core.logs.registry import read
trace = read(Path(sys.argv[1]))
print(len(trace.id), trace.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.slow
def test_ten_million_rows_are_read_in_less_than_two_gib(tmp_path: Path) -> None:
    row = "task_M{0},{1},j_{2},1,{3},{4},{5},{6},0.{7}\n"
    block = "".join(
        row.format(
            k % 7, 1 + k % 9, k, "Failed" if k % 50 == 0 else "Terminated", 9 + k, 19 + k, 50 + k % 2 * 50, 30 + k % 60
        )
        for k in range(100_000)
    )
    path = tmp_path / "batch_task.csv"
    with path.open("w") as log:
        for _ in range(100):
            log.write(block)
    found = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    jobs, rows, resident = map(int, found.stdout.split())
    assert (jobs, rows) == (9_800_000, 10_000_000)
    assert resident < 2 * GIB
