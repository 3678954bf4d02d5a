"""A command that would run for a minute, and its processes."""

import time
from pathlib import Path

import psutil

# A parent and its child write their numbers; both would live for a minute.
LONG = ["sh", "-c", "echo begun; sh -c 'echo $$ >> pids; sleep 60' & echo $$ >> pids; wait"]


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
