"""`python -m pipeline`, and the console script `deeprm`."""

import atexit
import gc
import os
import sys

from pipeline.errors import UserError, missing_packages_named
from pipeline.progress import say

sys.modules["hypothesis"] = None  # type: ignore[assignment]  # no command needs it; pandera imports it if installed
ended: list[int] = []


def _leave() -> None:
    """Exit at once with the exit code that Python would return: unloading torch takes a third of a second."""
    if not ended:
        return
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed by the parent process
            stream.flush()
    except (OSError, ValueError):  # Python meets the same error, reports it and exits with another code
        return
    os._exit(ended[0])


def run() -> None:
    """Run a command."""
    atexit.register(_leave)  # registered first, so called last; all threads have ended by then
    gc.set_threshold(200_000, 10, 10)  # by default, importing torch and pandas starts a thousand collections
    try:
        with missing_packages_named():
            from pipeline.cli import main
    except UserError as error:
        say(f"error: {error}")
        sys.exit(2)
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, int | None):
            ended.append(end.code or 0)
        raise


if __name__ == "__main__":
    run()
