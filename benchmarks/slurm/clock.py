"""A clock that is a multiple faster than the real one, for the processes that are given its environment.

libfaketime replaces the clock and all waits of a process (sleep, poll, condition variables). Its command `faketime`
keeps the beginning of the clock in shared memory, so that all processes of one environment agree on the time.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from pipeline.errors import UserError

BEGIN, BEGIN_S = "2030-01-01 00:00:00", 1_893_456_000.0  # a date after all files; the same in seconds of the Unix clock
SHARED = "FAKETIME_DONT_RESET"  # without it, the clock begins again in each process
PASSED = ("LD_PRELOAD", "FAKETIME", "FAKETIME_SHARED", SHARED)


class FastClock(NamedTuple):
    """A clock, and what processes need to use it."""

    environment: dict[str, str]
    begun: float  # real time of its beginning
    speed: float  # its seconds in a real one

    def shows(self, real: float) -> float:
        """Return the seconds since its beginning at a real time.

        >>> FastClock({}, 1000.0, 200.0).shows(1000.5)
        100.0
        """
        return (real - self.begun) * self.speed


def why_no_clock() -> str:
    """Return why there can be no fast clock here, or an empty string if there can."""
    return "" if shutil.which("faketime") else "no faketime (Debian: apt-get install faketime)"


@contextmanager
def fast_clock(speed: float) -> Iterator[FastClock]:
    """Start a clock, which ends with this context.

    Raises:
        UserError: libfaketime is not installed, or does not start.
    """
    if reason := why_no_clock():
        raise UserError(f"a fast clock: {reason}")
    environment = os.environ | {"TZ": "UTC", SHARED: "1"}
    words = ["faketime", "-m", "-f", f"@{BEGIN} x{speed:g}", "sh", "-c", "date > /dev/null; env -0; echo; exec cat"]
    holder = subprocess.Popen(
        words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        pairs = (word.partition("=")[::2] for word in holder.stdout.readline().decode().split("\0"))
        found = {name: value for name, value in pairs if name in PASSED}
        if found.keys() != set(PASSED):
            raise UserError(f"a fast clock: faketime: expected {', '.join(PASSED)}, found {', '.join(found) or 'none'}")
        yield FastClock(found, _begun(found, speed), speed)
    finally:
        holder.stdin.close()  # ends `cat`, and faketime removes the shared memory
        holder.stdout.close()
        holder.wait()


def _begun(environment: dict[str, str], speed: float) -> float:
    """Return the real time at which the clock began."""
    words, before = ["date", "+%s.%N"], time.time()
    shown = subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, check=True).stdout
    return (before + time.time()) / 2 - (float(shown) - BEGIN_S) / speed
