"""Tasks give the same results in the same order in this process and in others, whatever is killed on the way."""

import fcntl
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from executed import broken, count, killed_always, killed_once, refused, sums, surroundings, total, wait_until

from pipeline.errors import UserError
from pipeline.execution import executor as module
from pipeline.execution import worker
from pipeline.execution.commands import FOLDER, THREADS, Setting, cores
from pipeline.execution.executor import Executor, executor
from pipeline.execution.worker import Store, work_file

TWO = Setting(backend="processes", workers=2)


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a stage that has not imported torch: workers need not, either, which takes seconds each."""
    monkeypatch.setattr(worker, "sys", SimpleNamespace(modules={}, version_info=sys.version_info))


def stored(place: Path) -> list[str]:
    return sorted(path.name for path in (place / FOLDER).glob("*"))


@pytest.mark.usefixtures("without_torch")
def test_processes_find_what_is_found_here_and_leave_nothing(place: Path) -> None:
    tasks, told = sums(place, 7), list[float]()
    with executor(1) as alone:
        assert alone.serial
        wanted = alone.map(partial(total, factor=2.0), tasks)
    with executor(1, TWO) as workers:
        found = workers.map(partial(total, factor=2.0), tasks, on_progress=told.append)
        assert len(stored(place)) == 7
    assert [one.tobytes() for one in found] == [one.tobytes() for one in wanted]
    assert told[0] == 0
    assert told[-1] == 7
    assert stored(place) == []


def test_the_serial_way_stores_nothing_and_imports_no_engine() -> None:
    script = (
        "import sys\n"
        "from pipeline.execution.executor import executor\n"
        "with executor(1) as alone: print(alone.map(abs, [-1, -2]))\n"
        "print(sorted({'ray', 'submitit', 'torch', 'numba'} & set(sys.modules)))\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["[1, 2]", "[]"]
    assert not FOLDER.exists()


def test_a_worker_works_where_the_stage_does_alone_and_on_its_threads(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    torch.set_num_threads(3)  # as a command does; more than there may be cores
    with executor(3, TWO) as workers:
        ((found, spinning, (process, folder, place_of_more)),) = workers.map(surroundings, [0])
    assert found == (3, 3, "3")
    assert spinning == ("0" if cores() < 2 * 3 else None)  # or one takes another's core
    assert process != os.getpid()
    assert (folder, place_of_more) == (str(place), "serial")
    assert all(os.environ.get(name) != "3" for name in THREADS)  # ours stay as they are


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_its_task_done_again(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = sums(place, 4)
    with executor(1, TWO) as workers:
        assert workers.map(killed_once, tasks) == [float(task.values.sum()) for task in tasks]
    assert "tasks begin again" in capsys.readouterr().err


@pytest.mark.slow
def test_a_task_that_kills_every_worker_is_given_up(place: Path) -> None:
    with (
        pytest.raises(UserError, match=r"ended from outside 3 times before one of 1 tasks was done"),
        executor(1, TWO) as workers,
    ):
        workers.map(killed_always, sums(place, 1))


@pytest.mark.usefixtures("without_torch")
def test_what_a_task_refuses_is_one_line_and_what_was_done_is_kept(place: Path) -> None:
    one = Setting(backend="processes", workers=1)
    with pytest.raises(UserError, match=r"^task 2: expected another$"), executor(1, one) as workers:
        workers.map(refused, [0, 1, 2])
    assert len(stored(place)) == 2
    with pytest.raises(RuntimeError, match="IndexError: list index out of range"), executor(1, one) as workers:
        workers.map(broken, [-1, 0])


@pytest.mark.usefixtures("without_torch")
def test_a_stage_that_was_ended_goes_on_where_it_was(place: Path) -> None:
    tasks, one = sums(place, 4), Setting(backend="processes", workers=1)
    Executor(one, 1, place).map(total, tasks)  # and is killed before it comes to its end
    assert count(place) == 4
    (place / FOLDER / stored(place)[0]).write_bytes(b"cut")
    with executor(1, one) as workers:
        workers.map(total, [*tasks, *sums(place, 2)])
    assert count(place) == 5  # the cut one again, and two that are the same as the first two
    assert stored(place) == []


@pytest.mark.usefixtures("without_torch")
def test_another_version_of_the_code_is_refused_by_its_digest(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "code_digest", lambda: "0123456789abcdef")
    said = (
        r"^executor: \S+ has another version of the code or of its packages: expected 0123456789ab, found [0-9a-f]{12}$"
    )
    with pytest.raises(UserError, match=said), executor(1, TWO) as workers:
        workers.map(abs, [1])


def test_a_machine_without_this_code_is_one_line(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    said = r"^executor: a worker cannot run this code \(.*/nowhere/python.*not found\); expected the same Python"
    with pytest.raises(UserError, match=said):
        Executor(TWO, 1, place).map(abs, [1])


@pytest.mark.slow
def test_a_worker_that_sees_another_folder_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "work_file", unseen)
    said = r"^executor: \S+ does not see .*tasks and .* as the stage does \(No such file.*that all workers share$"
    with pytest.raises(UserError, match=said):
        Executor(TWO, 1, place).map(abs, [1])


@contextmanager
def unseen(store: Store, *_: object) -> Iterator[Path]:
    """As if another machine had nothing there."""
    yield store.folder / "0.work"


@pytest.mark.usefixtures("without_torch")
def test_workers_take_tasks_that_no_other_has_and_each_its_own_share_first(place: Path) -> None:
    store = Store(place / "tasks")
    tasks = {f"task-{number}": pickle.dumps((abs, -number)) for number in range(4)}
    with work_file(store, tasks, 2) as path, path.open("r+b") as held:
        fcntl.lockf(held, fcntl.LOCK_EX, 1, 3)  # as a worker that is at it; its lock is no bar to its own process
        subprocess.run([sys.executable, "-m", "pipeline.execution.worker", path, place, "1"], check=True)
        assert [store.has(key) for key in tasks] == [True, True, True, False]
        made = sorted(tasks, key=lambda key: store.path(key).stat().st_mtime_ns if store.has(key) else 0)
        assert made == ["task-3", "task-1", "task-0", "task-2"]
    assert store.read("task-2") == (2,)
    assert not path.exists()


DRIVER = """
import sys
from pathlib import Path
import numpy as np
from executed import Sum, total
from pipeline.execution.executor import executor
from pipeline.execution.commands import Setting
if __name__ == "__main__":
    tasks = [Sum(np.full(3, float(k)), Path(sys.argv[1]), 60.0) for k in range(2)]
    with executor(1, Setting(backend="processes", workers=2)) as workers:
        workers.map(total, tasks)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_stage(place: Path, number: int) -> None:
    (place / "driver.py").write_text(DRIVER)
    paths = os.pathsep.join(path for path in sys.path if path)
    words = [sys.executable, str(place / "driver.py"), str(place)]
    driver = subprocess.Popen(words, env=os.environ | {"PYTHONPATH": paths}, stderr=subprocess.DEVNULL)
    wait_until(lambda: count(place) == 2)
    workers = [int(path.name.split("-")[1]) for path in place.glob("begun-*")]
    driver.send_signal(number)
    driver.wait()
    wait_until(
        lambda: (
            not any(
                Path(f"/proc/{one}/cmdline").exists() and Path(f"/proc/{one}/cmdline").read_bytes() for one in workers
            )
        )
    )
