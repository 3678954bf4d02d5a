"""Ahead: the last stage's record is sent by a process that loads MLflow while the stage still counts.

Loading MLflow and sending what earlier stages left takes about as long as the last stage itself, which needs one core.
"""

import subprocess
import sys

SENDING = "pipeline.tracking.sending"
WHOLE, CUT = "whole", "cut"
ENDED = "the process that sends to MLflow has ended before its time"


class Ahead:
    """The process: it sends what earlier stages of a pipeline run left and, when told, what the last one left."""

    def __init__(self, pipeline: str) -> None:
        """Begin it.

        Args:
            pipeline: title of the pipeline run.

        Raises:
            OSError: no process can be begun.
        """
        self._process = subprocess.Popen(
            [sys.executable, "-m", SENDING, pipeline],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # an interrupt is for the stage; that it was interrupted is sent all the same
        )

    def end(self, whole: bool) -> str:
        """Have it send the rest, and wait for that.

        Args:
            whole: is the run complete, and are its agents to be registered?

        Returns:
            Why MLflow misses something, "" if it does not.
        """
        said, _ = self._process.communicate(f"{WHOLE if whole else CUT}\n")
        return said.strip() or (ENDED if self._process.returncode else "")
