"""`python -m pipeline`, and the console script `deeprm`."""

import atexit
import gc
import os
import sys

from pipeline.errors import UserError, missing_packages_named

sys.modules["hypothesis"] = None  # type: ignore[assignment]  # pandera would import it where tests are run; no command does
ended: list[int] = []


def _leave() -> None:
    """End at once, with what Python would end with: taking down every module of torch takes a third of a second."""
    if not ended:
        return
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):  # None: whoever began this has closed it
            stream.flush()
    except (OSError, ValueError):  # Python meets it again, says so, and ends with another code
        return
    os._exit(ended[0])


def run() -> None:
    """Run a command, as `python -m pipeline` and as the console script `deeprm`."""
    atexit.register(_leave)  # before all others, and so called after them; threads have ended by then
    gc.set_threshold(200_000, 10, 10)  # by default, importing torch and pandas looks for garbage a thousand times
    try:
        with missing_packages_named():
            from pipeline.cli import main
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, int | None):
            ended.append(end.code or 0)
        raise


if __name__ == "__main__":
    run()
