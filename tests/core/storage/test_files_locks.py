"""Only one process at a time does a piece of work."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from builders import REPOSITORY

from pipeline.core.storage import files as locks
from pipeline.core.storage.files import hold
from pipeline.errors import UserError

CODE = """
import sys, time
from pathlib import Path
from pipeline.core.storage.files import hold

held = hold(Path("work"), "work")
print("mine", flush=True)
time.sleep(float(sys.argv[1]))
"""


@contextmanager
def other(root: Path, seconds: float) -> Iterator[int]:
    """Start a process that does the work for some seconds."""
    line = [sys.executable, "-c", CODE, str(seconds)]
    given = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(line, cwd=root, env=given, stdout=subprocess.PIPE, text=True) as begun:
        assert begun.stdout is not None
        assert begun.stdout.readline() == "mine\n"
        yield begun.pid
        begun.kill()


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
