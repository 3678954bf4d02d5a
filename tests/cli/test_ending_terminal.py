"""Terminal and pipe: lines of at most 80 columns for people, and no chatter for programs."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from importlib.metadata import version
from pathlib import Path

import pytest
from builders import REPOSITORY
from commands import Command

from pipeline import progress

NO_COMMAND = (sys.executable, "-m", "pipeline", "rollback", "onlin")  # no such scenario
LOG = "; MaxProcs: 8\n1 0 5 100 4 -1 -1 4 200 -1 1 3 -1 -1 -1 -1 -1 -1\n"


@pytest.fixture(autouse=True)
def no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """No command here is long, unless code has to be compiled first."""
    monkeypatch.setattr(progress, "LINES_EVERY_S", 600.0)


def on_terminal(words: tuple[str, ...], columns: int) -> str:
    """Return what a command writes to a terminal."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    named = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PIPELINE_TRACKING": "off"}
    named.pop("COLUMNS", None)
    done = subprocess.run(words, check=False, cwd=REPOSITORY, env=named, stdin=its, stdout=its, stderr=its)
    os.close(its)
    said = b""
    try:
        while some := os.read(ours, 65536):
            said += some
    except OSError:  # the end, on Linux
        pass
    os.close(ours)
    assert done.returncode == 2
    return said.decode().replace("\r\n", "\n")


def test_an_error_is_folded_on_a_terminal_and_one_line_in_a_pipe() -> None:
    said = on_terminal(NO_COMMAND, 80)
    named = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PIPELINE_TRACKING": "off"}
    piped = subprocess.run(NO_COMMAND, check=False, cwd=REPOSITORY, env=named, capture_output=True, text=True)
    assert piped.stderr.count("\n") == 1
    assert len(piped.stderr) > 80
    assert max(map(len, said.splitlines())) <= 80
    assert " ".join(said.split()) == piped.stderr.strip()


def test_the_version_is_that_of_the_installed_package(command: Command) -> None:
    done = command("--version")
    assert (done.code, done.out, done.err) == (0, f"deeprm-pipeline {version('deeprm-pipeline')}\n", "")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("site small.swf", 2),  # too short for a site
        ("site small.swf --json", 2),
        ("schedule jobs.csv --scenario online --policy sjf --out out.csv --json", 0),
        ("trace small.swf --json", 0),
    ],
)
def test_without_a_terminal_only_errors_are_printed(command: Command, words: str, code: int) -> None:
    Path("small.swf").write_text(LOG)
    Path("jobs.csv").write_text("jobset,job,arrival,duration,cpu,memory\n0,a,0,3,6,2\n")
    done = command(*words.split())
    assert done.code == code
    errors = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert (done.err.splitlines(), len(errors)) == (errors, int(code != 0))
