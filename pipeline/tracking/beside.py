"""Beside the last stage: a process that loads MLflow and sends what earlier stages left, while the stage still works.

To load MLflow and send the records of a few stages takes as long as to draw the papers' figures, and neither needs the
other; one behind the other, whoever waits for an experiment waits for both.
"""

import signal
import subprocess
import sys

from pipeline.config import load_params
from pipeline.tracking.delivery import reason, send_earlier
from pipeline.tracking.store import open_store

GO = "the stage has ended well\n"
MISSING = "missing: "
OTHERS_S = 60.0  # longest wait for another process that sends records
SENDS = """
import sys

sys.modules["hypothesis"] = None  # as in `python -m pipeline`
from pipeline.tracking.beside import main

main(sys.argv[1])
"""


class Beside:
    """The process, as the stage sees it."""

    def __init__(self, pipeline: str) -> None:
        """Begin it.

        Args:
            pipeline: title of the pipeline run whose records it sends.
        """
        words = [sys.executable, "-c", SENDS, pipeline]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(words, text=True, **pipes)  # type: ignore[call-overload]

    def finish(self) -> str:
        """Have it send the stage's own record and register the agents; return files that could not be had, or nothing.

        Raises:
            OSError: not all was sent; it says why.
        """
        said, _ = self._process.communicate(GO)
        (last,) = str(said).splitlines()[-1:] or [""]
        if self._process.returncode:
            raise OSError(last or f"the process that sends records ended with code {self._process.returncode}")
        return last if last.startswith(MISSING) else ""

    def leave(self) -> None:
        """End it; what it was sending may be sent again."""
        self._process.terminate()
        self._process.communicate()


def main(pipeline: str) -> None:
    """Send what is there, and once more at a word; what goes wrong is one line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the stage hears it, too, and says what is to be done
    try:
        store = open_store()
        send_earlier(store, pipeline)
        if sys.stdin.readline() == GO:
            missing = send_earlier(store, pipeline, OTHERS_S)
            from pipeline.tracking.registry import register_here

            register_here(store, load_params(), pipeline)
            sys.stdout.write(f"\n{MISSING}{missing[0]}" if missing else "")
    except Exception as error:
        sys.stdout.write(f"\n{reason(error)}")
        sys.exit(1)
