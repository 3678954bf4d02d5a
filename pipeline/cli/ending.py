"""The end of a command: a user's mistake, a full disk or a signal prints one line on stderr, never a traceback."""

import os
import signal
import sys
import time
from concurrent.futures.process import BrokenProcessPool

import typer
from typer.exceptions import TyperException

from pipeline.cli.base import app
from pipeline.errors import UserError, missing_packages_named
from pipeline.progress import say

STOPPED = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
RETRY_S = 15.0  # after a signal that was lost
CLEANUP_S = 600.0  # limit for removing half-written files


class Stopped(BaseException):
    """A signal ends the process; unlike KeyboardInterrupt, no library handles it."""


def main(program: typer.Typer = app) -> None:
    """Run a command; exit with 2 after a user's mistake or a full disk, and with 128 plus its number after a signal.

    Half-written files are removed on the way out.
    """
    for number in STOPPED:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores signals
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
        if line:
            say(f"error: {' '.join(line.split())}")
        raise SystemExit(2) from None
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
    raise SystemExit(code)


def _line(error: Exception) -> str | None:
    """Return the message of a mistake or a lack of resources; empty after help was shown, None for our own faults."""
    line = None
    match error:
        case UserError():
            line = str(error)
        case TyperException():
            line = f"{wrong.rstrip('.')} (--help shows what there is)" if (wrong := error.format_message()) else ""
        case OSError():
            line = f"{error.filename or 'the system'}: {error.strerror or error}"
        case MemoryError():
            line = f"out of memory ({error})"
        case BrokenProcessPool():
            line = "a process was killed, maybe for lack of memory; run again"
        case RuntimeError() if "no locator available" in str(error):  # numba's words
            line = "no folder for compiled code can be written to: set NUMBA_CACHE_DIR to one that can"
    return line


def _stop(number: int, _: object) -> None:
    _repeat(number, time.monotonic() + CLEANUP_S)
    raise Stopped(number)


def _repeat(number: int, at_last: float) -> None:
    """Raise again at intervals: an exception raised while compiled code calls back into Python is lost."""

    def raise_again(*_: object) -> None:
        _repeat(number, at_last)
        error, seen = sys.exc_info()[1], list[BaseException]()  # the exception being handled, then its contexts
        while error is not None and not isinstance(error, Stopped) and error not in seen:
            seen.append(error)
            error = error.__context__
        if not isinstance(error, Stopped) or time.monotonic() > at_last:  # do not interrupt the cleanup
            raise Stopped(number)

    signal.signal(signal.SIGALRM, raise_again)
    signal.setitimer(signal.ITIMER_REAL, RETRY_S)
