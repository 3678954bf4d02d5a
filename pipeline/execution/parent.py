"""A stage ends when the DVC that runs it does: a DVC that was killed would leave it at work next to that of another."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from pipeline.execution.relay import RELAYED

SHELLS = ("sh", "bash", "dash", "zsh", "fish", "ksh")  # by which DVC runs a command; most become the command
LOOK_S = 1.0
CLEARED_S = 60.0  # in which what is half written is cleared away


def end_with_dvc(environment: Mapping[str, str] = os.environ) -> None:
    """Have this process end when DVC does; one that was sent to an engine, or begun by hand, is left alone."""
    if not environment.get("DVC_STAGE") or RELAYED in environment:
        return
    own, line = os.getpid(), [os.getppid()]
    while _of(line[-1])[1] in SHELLS:
        line.append(_of(line[-1])[0])
    if line[-1] <= 1 and not _of(1)[1].startswith(("dvc", "python")):  # it is gone already
        os.kill(own, signal.SIGTERM)
    threading.Thread(target=_watch, args=([own, *line],), daemon=True).start()


def _watch(line: list[int]) -> None:
    own, parent, *_ = line
    while os.getppid() == parent and all(_of(at)[0] == up for at, up in pairwise(line[1:])):
        time.sleep(LOOK_S)
    os.kill(own, signal.SIGTERM)
    time.sleep(CLEARED_S)
    os._exit(128 + signal.SIGTERM)


def _of(process: int) -> tuple[int, str]:
    """Return the parent of a process and its name; 0 and nothing where it is gone."""
    with suppress(OSError, ValueError, IndexError):
        name, _, rest = Path(f"/proc/{process}/stat").read_text().partition("(")[2].rpartition(")")
        return int(rest.split()[1]), name
    asked = subprocess.run(["ps", "-o", "ppid=,comm=", "-p", str(process)], check=False, capture_output=True, text=True)
    parent, _, name = asked.stdout.strip().partition(" ")
    return int(parent or 0), Path(name.strip()).name.removeprefix("-")
