"""Reader of Google's 2011 trace. Expected numbers are computed by hand from the few events of each log."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from pipeline.core.logs import google2011
from pipeline.core.logs.registry import guess
from pipeline.core.logs.trace import Trace
from pipeline.errors import UserError

SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST, UPDATE = 0, 1, 2, 3, 4, 5, 6, 8


def event(
    seconds: float, kind: int, job: int = 7, index: int = 0, user: str = "bob", cpu: object = 0.5, memory: object = 0.25
) -> str:
    return f"{int(seconds * 1_000_000)},,{job},{index},,{kind},{user},2,9,{cpu},{memory},0.0004,0"


def task(job: int, *kinds: int, begin: float = 100) -> list[str]:
    """Return events of a task, ten seconds apart."""
    return [event(begin + 10 * k, kind, job) for k, kind in enumerate(kinds)]


def written(folder: Path, *lines: str, name: str = "part-00000-of-00500.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def read(folder: Path, *lines: str) -> Trace:
    return google2011.read(written(folder, *lines))


def test_a_task_waits_until_it_is_scheduled_and_runs_until_it_finishes(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        event(600, SUBMIT, user="ann"),
        event(601, SUBMIT, index=1, user="bob", cpu=0.0625, memory=0.0159),
        event(605.5, SCHEDULE),
        event(606, SCHEDULE, index=1),
        event(700, FINISH, index=1),
        event(800.5, FINISH),
    )
    assert trace.id.tolist() == [1, 2]  # the rows of their submissions
    assert trace.submit_s.tolist() == [600, 601]
    assert trace.wait_s.tolist() == [5.5, 5]
    assert trace.run_s.tolist() == [195, 94]
    assert trace.demand.tolist() == [[50_000, 25_000], [6250, 1590]]
    assert trace.user.tolist() == [0, 1]
    assert (trace.resources, trace.units) == (("cpu", "memory"), ("percent of a machine",) * 2)
    assert (trace.rows, trace.dropped, trace.repaired, trace.machines) == (2, (), (), None)


def test_tasks_that_did_not_finish_are_dropped_by_what_ended_them_first(tmp_path: Path) -> None:
    lines = [
        *task(1, SUBMIT, SCHEDULE, EVICT, SUBMIT, SCHEDULE, FINISH),  # lines 1 to 6
        *task(2, SUBMIT, SCHEDULE, FAIL, KILL),  # 7 to 10
        *task(3, SUBMIT, KILL),  # 11, 12
        *task(4, SUBMIT, SCHEDULE, LOST),  # 13 to 15
        *task(5, SUBMIT),  # 16
        *task(6, SUBMIT, SCHEDULE, UPDATE),  # 17 to 19
        *task(7, SCHEDULE, FINISH),  # 20, 21
        *task(8, SUBMIT, SCHEDULE, FINISH, begin=0),  # 22 to 24
        *task(9, SUBMIT, SCHEDULE, FINISH),
    ]
    trace = read(tmp_path, *lines)
    assert (trace.id, trace.rows) == (25, 9)
    assert trace.dropped == (
        ("no event of submission", 1, 20),
        ("submitted before the log begins", 1, 22),
        ("evicted", 1, 1),
        ("failed", 1, 7),
        ("killed", 1, 11),
        ("lost", 1, 13),
        ("never scheduled", 1, 16),
        ("not finished when the log ends", 1, 17),
    )


def test_a_time_that_stands_for_after_the_log_is_no_finish(tmp_path: Path) -> None:
    after = event(0, FINISH).replace("0,", f"{2**63 - 1},", 1)
    assert after.startswith("9223372036854775807,")
    trace = read(tmp_path, *task(1, SUBMIT, SCHEDULE, FINISH), *task(7, SUBMIT, SCHEDULE), after)
    assert trace.dropped == (("not finished when the log ends", 1, 4),)


def test_a_task_that_did_not_say_what_it_wants_is_dropped_and_one_of_no_time_ran_a_second(
    tmp_path: Path,
) -> None:
    lines = [
        *(event(100, kind, 1, cpu="") for kind in (SUBMIT, SCHEDULE)),
        event(110, FINISH, 1, cpu=0.5),
        *(event(100, kind, 2) for kind in (SUBMIT, SCHEDULE, FINISH)),
        *(event(100 + kind, kind, 3, memory=-1) for kind in (SUBMIT, SCHEDULE, FINISH)),
        *task(4, SUBMIT, SCHEDULE, FINISH),
    ]
    trace = read(tmp_path, *lines)
    assert trace.dropped == (
        ("CPU or memory unknown", 1, 1),
        ("CPU or memory below 0", 1, 7),
    )
    assert ("ran less than a second: 1 s taken", 1, 4) in trace.repaired
    assert trace.run_s.min() == 1


def test_of_a_task_that_is_submitted_again_the_first_run_counts(tmp_path: Path) -> None:
    trace = read(tmp_path, *task(1, SUBMIT, SCHEDULE, FINISH, SUBMIT, SCHEDULE, FINISH))
    assert (trace.submit_s, trace.run_s) == (100, 10)
    assert trace.repaired == (("submitted again after it finished: first run taken", 1, 1),)


def test_a_folder_of_parts_is_one_log(tmp_path: Path) -> None:
    written(tmp_path, *task(1, SUBMIT, SCHEDULE), *task(2, SUBMIT, KILL), name="part-00000-of-00500.csv")
    second = "\n".join([event(120, FINISH, 1), event(130, SUBMIT, 3)])
    (tmp_path / "part-00001-of-00500.csv.gz").write_bytes(gzip.compress(second.encode()))
    on_progress = list[float]()
    assert guess(tmp_path) == "google2011"
    trace = google2011.read(tmp_path, lambda percent, note: on_progress.append(percent))
    assert (trace.id, trace.run_s, trace.rows) == (1, 10, 3)
    assert trace.dropped == (("killed", 1, 3), ("never scheduled", 1, 6))
    assert on_progress == [50, 100]


def test_a_folder_without_parts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected files part-\*\.csv or part-\*\.csv\.gz, found none$"):
        google2011.read(tmp_path)


def test_an_event_that_is_none_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"csv:2: expected a number of an event, 0 to 8 as event, found '9\.0'$"):
        read(tmp_path, event(100, SUBMIT), event(101, 9))
    with pytest.raises(UserError, match=r"csv:1: expected a number as job, found nothing$"):
        read(tmp_path, event(100, SUBMIT).replace(",7,", ",,"))


def test_an_unknown_user_has_no_number(tmp_path: Path) -> None:
    lines = [event(100 + kind, kind, job, user=user) for job, user in ((1, ""), (2, "ann")) for kind in (0, 1, 4)]
    assert read(tmp_path, *lines).user.tolist() == [-1, 0]


def test_parts_of_any_size_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    lines = [line for job in range(40) for line in task(job, SUBMIT, SCHEDULE, int(rng.choice([EVICT, FINISH])))]
    path = written(
        tmp_path, *(lines[k] for k in np.argsort([int(line.split(",")[0]) for line in lines], kind="stable"))
    )
    whole = google2011.read(path)
    monkeypatch.setattr("pipeline.core.logs.rows.CHUNK", 1)
    parts = google2011.read(path)
    assert [str(field) for field in whole] == [str(field) for field in parts]
