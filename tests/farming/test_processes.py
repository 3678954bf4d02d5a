"""Work of a farm: real processes, which end with whoever began them."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from queue import Queue
from types import SimpleNamespace

import psutil
import pytest
from builders import REPOSITORY

from pipeline.farming.processes import Command, Said, Work

# A parent and its child write their numbers; both would live for a minute.
LONG = ["sh", "-c", "echo begun; sh -c 'echo $$ >> pids; sleep 60' & echo $$ >> pids; wait"]
FARM = f"""
import fcntl, sys, time
from queue import Queue
from types import SimpleNamespace
from pipeline.farming.processes import Command, Work
with open("lock", "w") as held:
    fcntl.flock(held, fcntl.LOCK_EX)
    Work("long", Command({LONG!r}), Queue(), held.fileno())
    time.sleep(60)
"""


def lines(said: "Queue[Said]") -> list[str]:
    """All that some work says to its end."""
    found = []
    while (line := said.get(timeout=30)[1]) is not None:
        found.append(line)
    return found


def numbers(place: Path) -> list[int]:
    """The processes of `LONG`, once both have begun."""
    until = time.monotonic() + 30
    while len(found := (place / "pids").read_text().split() if (place / "pids").exists() else []) < 2:
        assert time.monotonic() < until
        time.sleep(0.02)
    return [int(number) for number in found]


def ended(pids: list[int]) -> bool:
    """Do none of some processes run, within some seconds?"""
    until = time.monotonic() + 15
    while alive := [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]:
        if time.monotonic() > until:
            return not alive
        time.sleep(0.05)
    return True


def begin(place: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> "tuple[Work, Queue[Said]]":
    monkeypatch.chdir(place)
    said: Queue[Said] = Queue()
    with (place / "lock").open("w") as held:
        return Work("some", Command(words), said, held.fileno()), said


def test_lines_and_the_exit_code_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, said = begin(tmp_path, monkeypatch, "sh", "-c", "echo one; echo two >&2; read nothing; exit 3")
    while work._process.poll() is None:
        time.sleep(0.02)
    work.clean_up()
    assert lines(said) == ["one", "two"]
    assert work.stopped() == 3


def test_what_outlives_its_parent_is_ended_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, said = begin(tmp_path, monkeypatch, *LONG)
    pids = numbers(tmp_path)
    os.kill(work._process.pid, signal.SIGKILL)  # as DVC may be, and its stage not
    while work._process.poll() is None:
        time.sleep(0.02)
    work.clean_up()
    assert lines(said) == ["begun"]
    assert ended(pids)
    assert work.stopped() == -signal.SIGKILL


def test_a_stop_ends_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, said = begin(tmp_path, monkeypatch, *LONG)
    pids = numbers(tmp_path)
    work.stop()
    work.stopped()
    assert lines(said) == ["begun"]
    assert ended(pids)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_lives_on_when_the_farm_is_killed(tmp_path: Path, sent: signal.Signals) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    farm = subprocess.Popen([sys.executable, "-c", FARM], cwd=tmp_path, env=environment)
    pids = numbers(tmp_path)
    with (tmp_path / "lock").open() as lock:
        farm.send_signal(sent)
        farm.wait()
        with pytest.raises(BlockingIOError):  # its work holds what it had locked, until all of that has ended
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert ended(pids)
        fcntl.flock(lock, fcntl.LOCK_EX)


def test_work_whose_lines_cannot_be_read_is_over_for_who_waits() -> None:
    said: Queue[Said] = Queue()
    work = Work.__new__(Work)
    work.name, closed = "a", Path(os.devnull).open("rb")  # noqa: SIM115  # closed at once
    closed.close()
    work._process = SimpleNamespace(stdout=closed)  # type: ignore[assignment]
    with pytest.raises(ValueError, match="closed file"):
        work._listen(said)
    assert said.get(timeout=1) == ("a", None)
