"""How a command ends: a mistake, a full disk or a signal is one line on stderr, and never a traceback."""

import os
import signal
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from typing import NoReturn

import typer
from typer.exceptions import TyperException

from pipeline.cli.base import app
from pipeline.errors import UserError, missing_packages_named

STOPPED = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
AGAIN_S = 15.0  # behind a signal that was lost
CLEARED_S = 600.0  # in which what is half written is cleared away; else it is stopped, too


class Stopped(BaseException):
    """The process was told to end; no library takes this for an error of its own, as some do a KeyboardInterrupt."""


def main(program: typer.Typer = app) -> None:
    """Run a command; a user's mistake or a full disk ends it with exit code 2, a signal with its number and 128.

    What is half written is cleared away on the way out.
    """
    for number in STOPPED:
        if signal.getsignal(number) != signal.SIG_IGN:  # as it is behind nohup
            signal.signal(number, _stop)
    try:
        with missing_packages_named():
            if os.environ.get("DVC_STAGE"):
                from pipeline.execution.relay import end_with_dvc

                end_with_dvc()
            code = program(standalone_mode=False)
    except Stopped as stopped:
        sys.stderr.write(f"{STOPPED[stopped.args[0]]}; run again to resume\n")
        raise SystemExit(128 + stopped.args[0]) from None
    except Exception as error:
        line = _line(error)
        if line is None:
            raise
        _end(line)
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
    raise SystemExit(code)


def _line(error: Exception) -> str | None:
    """Return what a mistake, a want of room or a library's refusal is to the user; nothing where it is our fault."""
    said = None
    match error:
        case UserError():
            said = str(error)
        case TyperException():
            said = f"{wrong.rstrip('.')} (--help shows what there is)" if (wrong := error.format_message()) else ""
        case OSError():
            said = f"{error.filename or 'the system'}: {error.strerror or error}"
        case MemoryError():
            said = f"out of memory ({error})"
        case BrokenProcessPool():
            said = "a process was ended from outside, maybe for want of memory; run again"
        case RuntimeError() if "no locator available" in str(error):  # numba's words
            said = "no folder for compiled code can be written to: set NUMBA_CACHE_DIR to one that can"
    return said


def _stop(number: int, _: object) -> None:
    _come_again(number, time.monotonic() + CLEARED_S)
    raise Stopped(number)


def _come_again(number: int, at_last: float) -> None:
    """Stop once more in a while, and then again: what is raised while compiled code calls back into Python is lost."""

    def come(*_: object) -> None:
        _come_again(number, at_last)
        if not _has_got_through() or time.monotonic() > at_last:  # whoever clears away because of it is let do so
            raise Stopped(number)

    signal.signal(signal.SIGALRM, come)
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)


def _has_got_through() -> bool:
    error, seen = sys.exc_info()[1], list[BaseException]()  # what is handled just now, and within what it was raised
    while error is not None and not isinstance(error, Stopped) and error not in seen:
        seen.append(error)
        error = error.__context__
    return isinstance(error, Stopped)


def _end(said: str) -> NoReturn:
    """End with one line; with none where help was shown instead."""
    sys.stderr.write(f"error: {' '.join(said.split())}\n" if said else "")
    raise SystemExit(2) from None
