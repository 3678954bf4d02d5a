"""Only one process at a time does a piece of work."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from forks import forked

from pipeline.core.storage import files as locks
from pipeline.core.storage.files import hold
from pipeline.errors import UserError


def work(root: Path, seconds: float) -> None:
    with hold(root / "work", "work"):
        (root / "begun").touch()
        time.sleep(seconds)


@contextmanager
def other(root: Path, seconds: float) -> Iterator[int]:
    """Start a process that does the work for some seconds."""
    process = forked(work, root, seconds)
    while not (root / "begun").exists():
        assert process.is_alive()
        time.sleep(0.01)
    assert process.pid is not None
    yield process.pid
    process.kill()
    process.join()


@pytest.mark.parametrize("patient", [False, True])
def test_work_that_another_process_does_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patient: bool
) -> None:
    monkeypatch.setattr(locks, "ENDING_S", 0.5)
    with other(tmp_path, 60) as process, pytest.raises(UserError) as refused:
        hold(tmp_path / "work", "finetune plain", patient)
    said = f"finetune plain: another one is at work here (process {process}); wait for it, or end it"
    assert str(refused.value) == said


def test_the_patient_wait_for_a_process_that_is_ending(tmp_path: Path) -> None:
    with other(tmp_path, 1), hold(tmp_path / "work", "work", patient=True) as held:
        assert (tmp_path / "work").read_text() == f"{os.getpid()}\n"
        assert not held.closed


def test_a_process_may_do_its_own_work_twice_and_another_after_it(tmp_path: Path) -> None:
    with hold(tmp_path / "work", "work"), hold(tmp_path / "work", "work"):
        pass
    with other(tmp_path, 60) as process:
        assert (tmp_path / "work").read_text() == f"{process}\n"
