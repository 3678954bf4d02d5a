"""Sending: what the process of `ahead` does; it says in one line why something could not be sent."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

from pipeline.config import load_params
from pipeline.tracking.ahead import WHOLE
from pipeline.tracking.delivery import reason, send_earlier, send_waiting
from pipeline.tracking.store import open_store
from pipeline.tracking.stored_outputs import StoredOutputs


def send(pipeline: str, asked: TextIO) -> None:
    """Send what earlier stages of a pipeline run left and, once that is asked for, what the last one left.

    Args:
        pipeline: title of the pipeline run.
        asked: the stage says here how it ended; one that was killed says nothing, and `publish` sends its record.
    """
    store = open_store()
    send_earlier(store, pipeline)
    from pipeline.tracking.registry import register_here  # pandas, loaded while the stage still counts

    word = asked.readline().strip()
    if not word:
        return
    with TemporaryDirectory() as scratch:
        for _ in send_waiting(store, StoredOutputs(Path(scratch)).find, pipeline):
            pass
    if word == WHOLE:
        register_here(store, load_params(), pipeline)


if __name__ == "__main__":
    try:
        send(sys.argv[1], sys.stdin)
    except Exception as error:
        sys.stdout.write(f"{reason(error)}\n")
    sys.stdout.flush()
    os._exit(0)  # taking down every module takes longer than what was sent last
