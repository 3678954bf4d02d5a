"""Commands: real processes, which end with the one that began them."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from long_commands import LONG, ended, numbers

from pipeline.execution.commands import Commands


@contextmanager
def begun(place: Path, *words: str) -> "Iterator[tuple[Commands, list[str], Future[int]]]":
    """A command that runs in a folder, its lines and its exit code."""
    said = list[str]()
    with ThreadPoolExecutor(1) as pool, Commands() as commands:
        yield commands, said, pool.submit(commands.run, words, said.append, folder=place)


def test_lines_and_the_exit_code_are_told(tmp_path: Path) -> None:
    with begun(tmp_path, "sh", "-c", "echo one; echo two >&2; read nothing; exit 3") as (_, said, code):
        assert code.result(timeout=30) == 3
        assert said == ["one", "two"]


def test_what_outlives_its_parent_is_ended_with_it(tmp_path: Path) -> None:
    with begun(tmp_path, *LONG) as (_, said, code):
        one, other = numbers(tmp_path)
        parent, child = (one, other) if psutil.Process(other).ppid() == one else (other, one)
        os.kill(parent, signal.SIGKILL)  # as DVC may be, and its stage not
        assert code.result(timeout=30) == -signal.SIGKILL
        assert said == ["begun"]
        assert ended([parent, child])


def test_a_stop_ends_all_of_it(tmp_path: Path) -> None:
    with begun(tmp_path, *LONG) as (_, said, code):
        pids = numbers(tmp_path)
    assert code.result(timeout=1) != 0
    assert said == ["begun"]
    assert ended(pids)


def test_a_stop_waits_for_those_that_clear_away_what_they_began(tmp_path: Path) -> None:
    clears = "trap 'sleep 0.5; echo cleared; exit' TERM; echo $$ >> pids; while :; do sleep 0.1; done"
    words = ("sh", "-c", f"echo $$ >> pids; sh -c '{clears.replace(chr(39), chr(34))}' & wait")
    with begun(tmp_path, *words) as (_, said, code):
        numbers(tmp_path)
    assert said[-1] == "cleared"
    assert code.done()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_lines_that_cannot_be_shown_hold_up_no_command() -> None:
    def fails(line: str) -> None:
        raise BrokenPipeError(line)

    with Commands() as commands:
        assert commands.run(["sh", "-c", "while echo line; do :; done; exit 3"], fails) != 0
