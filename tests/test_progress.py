"""Progress in plain lines: none for short work, and a remaining time that follows from the work of this process."""

import sys
import time

import pytest

from pipeline import progress as module
from pipeline.progress import progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which tests set; stderr is not a terminal."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    return now


def test_the_time_left_follows_from_what_is_done(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with progress("finetune deeprm", 400) as advance:
        clock[0] += 90  # compiling, and the first step
        advance(50)
        clock[0] += 20
        advance(100, "loss 1")
    assert capsys.readouterr().err.splitlines() == [
        "finetune deeprm: 50 of 400, time left unknown",
        "finetune deeprm: 100 of 400, 120 s left, loss 1",
    ]


def test_short_work_is_silent(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with progress("finetune deeprm", 400) as advance:
        clock[0] += 5
        advance(200)
        clock[0] += 4.9
        advance(400)
    assert capsys.readouterr().err == ""


def test_work_done_before_a_kill_does_not_count_for_the_time_left(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("finetune deeprm", 400, start=100) as advance:
        clock[0] += 5
        advance(101)  # too early for a line
        clock[0] += 19
        advance(120)
        clock[0] += 276
        advance(400)
    assert capsys.readouterr().err.splitlines() == [
        "finetune deeprm: 120 of 400, 280 s left",
        "finetune deeprm: 400 of 400, done in 300 s",
    ]


def test_the_end_is_said_once(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with progress("schedule by sjf", 100) as advance:
        clock[0] += 20
        advance(100, "60 jobs")
        advance(100, "60 jobs")
    assert capsys.readouterr().err == "schedule by sjf: 100 of 100, done in 20 s, 60 jobs\n"


def test_a_long_step_says_where_the_work_is_though_nothing_moves_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "LINES_EVERY_S", 0.05)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    with progress("trial of mine, plays", 80) as advance:
        time.sleep(0.15)  # nothing is done yet, but a log shows what is running
        assert capsys.readouterr().err.startswith("trial of mine, plays: 0 of 80, time left unknown\n")
        advance(1, "fcfs")
        time.sleep(0.4)
    said = capsys.readouterr().err.splitlines()
    assert len(said) >= 2
    assert set(said) == {"trial of mine, plays: 1 of 80, time left unknown, fcfs"}
    time.sleep(0.1)
    assert capsys.readouterr().err == ""  # no output after the end
