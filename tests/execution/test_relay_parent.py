"""A stage ends when the DVC that runs it is killed, and a process that no DVC runs does not."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from builders import REPOSITORY

from pipeline.execution import relay
from pipeline.execution.relay import end_with_dvc

CHILD = """
import os, time
from pathlib import Path
from pipeline.execution.relay import end_with_dvc

end_with_dvc()
Path("begun").write_text(str(os.getpid()))
time.sleep(120)
"""
ENDED_S = 30.0


def until(path: Path) -> int:
    """The number in a file, once it is there."""
    end = time.monotonic() + 120
    while not path.exists() or not path.read_text():
        assert time.monotonic() < end
        time.sleep(0.05)
    return int(path.read_text())


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
@pytest.mark.parametrize("command", ["{}", "{}; true"], ids=["the shell becomes it", "the shell waits for it"])
def test_a_stage_ends_when_its_dvc_is_killed(tmp_path: Path, shell: str, command: str) -> None:
    (tmp_path / "child.py").write_text(CHILD)
    line = command.format(f"{sys.executable} child.py")
    (tmp_path / "dvc.yaml").write_text(f"stages: {{finetune: {{cmd: '{line}'}}}}\n")
    given = {**os.environ, "PYTHONPATH": str(REPOSITORY), "SHELL": shell, "DVC_NO_ANALYTICS": "1"}
    dvc = [sys.executable, "-m", "dvc"]
    subprocess.run([*dvc, "init", "-q", "--no-scm"], cwd=tmp_path, env=given, check=True)
    with subprocess.Popen([*dvc, "repro"], cwd=tmp_path, env=given, stdout=subprocess.DEVNULL) as running:
        stage = until(tmp_path / "begun")
        assert os.getpgid(stage) == os.getpgid(running.pid)
        running.kill()
        since = time.monotonic()  # it is not waited for: a DVC whose own parent is slow is no less dead
        while Path(f"/proc/{stage}").exists() if sys.platform == "linux" else _lives(stage):
            assert time.monotonic() - since < ENDED_S
            time.sleep(0.1)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("given", [{}, {"DVC_STAGE": "finetune@plain", "PIPELINE_RELAYED": "abc@/shared"}])
def test_what_is_begun_by_hand_or_sent_to_an_engine_watches_nobody(given: dict[str, str]) -> None:
    before = threading.active_count()
    end_with_dvc(given)
    assert threading.active_count() == before


@pytest.mark.parametrize(("first", "sent"), [("systemd", [signal.SIGTERM]), ("dvc", []), ("python", [])])
def test_a_stage_whose_dvc_is_gone_before_it_looks_ends_at_once(
    monkeypatch: pytest.MonkeyPatch, first: str, sent: list[int]
) -> None:
    numbers: list[int] = []
    monkeypatch.setattr(os, "getppid", lambda: 1)
    monkeypatch.setattr(relay, "_parent_and_name", lambda process: (0, first))
    monkeypatch.setattr(relay, "_watch", lambda line: None)
    monkeypatch.setattr(os, "kill", lambda process, number: numbers.append(number))
    end_with_dvc({"DVC_STAGE": "finetune@plain"})
    assert numbers == sent
