"""Run a whole command on the user's cluster, by srun or as a task of Ray: a training run is one indivisible task.

Its lines arrive here one by one, and its files are in the folder that all machines share. A killed command resumes at
its last checkpoint. `end_with_dvc` ends a stage when its DVC ends: otherwise the stage would run next to a later DVC's.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from pipeline.errors import UserError
from pipeline.execution.commands import KILLED, Job, environment, setting
from pipeline.execution.executor import launch
from pipeline.execution.worker import check_code, code_digest
from pipeline.progress import say

RELAYED = "PIPELINE_RELAYED"  # digest of the sender's code, and its folder
KEPT = ("PIPELINE_", "MLFLOW_", "AWS_", "DVC_")  # of the environment: where runs are recorded
LOST = 3  # times that a command may be killed from outside
COMMAND = (sys.executable, "-m", "pipeline")
SHELLS = ("sh", "bash", "dash", "zsh", "fish", "ksh")  # DVC runs a command in one; most then become the command
LOOK_S = 1.0
CLEARED_S = 60.0  # to clear away unfinished work


def elsewhere() -> bool:
    """Return whether whole commands run on a cluster, so that this machine's cores are no limit."""
    place = setting()
    return place.backend == "slurm" or (place.backend == "ray" and bool(place.address))


def relay(threads: int, *words: str) -> bool:
    """Run `python -m pipeline` with some words on the user's cluster; return False if it must run here.

    Raises UserError: the cluster cannot be reached, or this is a node with another folder or version of the code.
    SystemExit: the command failed there and reported why.
    """
    here = Path.cwd()
    if sent := os.environ.get(RELAYED):
        code, folder = sent.split("@", 1)
        if not Path(folder).is_dir() or not here.samefile(folder):
            raise UserError(
                f"executor: {socket.gethostname()} is in {here}; expected {folder}, in a folder that all nodes share"
            )
        check_code(code)
        return False
    if not elsewhere():
        return False
    given = environment(threads) | {"PIPELINE_TRACKING": ""}
    given |= {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    given |= {"PIPELINE_EXECUTOR": "serial", RELAYED: f"{code_digest()}@{here}", "PYTHONUNBUFFERED": "1"}
    job, lost = Job("-".join(words), [*COMMAND, *words], given, threads, cores=threads), 0
    while codes := [code for code in launch(setting(), [job], say) if code]:
        lost += 1
        if codes[0] != KILLED or lost == LOST:
            raise SystemExit(codes[0] if codes[0] > 0 else 128 - codes[0])
        say(f"executor: {' '.join(words)} was ended from outside; it begins again where it was")
    return True


def end_with_dvc(environment: Mapping[str, str] = os.environ) -> None:
    """End this process when its DVC ends; a relayed process, or one started by hand, has no DVC to follow."""
    if not environment.get("DVC_STAGE") or RELAYED in environment:
        return
    own, line = os.getpid(), [os.getppid()]
    while _parent_and_name(line[-1])[1] in SHELLS:
        line.append(_parent_and_name(line[-1])[0])
    if line[-1] <= 1 and not _parent_and_name(1)[1].startswith(("dvc", "python")):  # it is gone already
        os.kill(own, signal.SIGTERM)
    threading.Thread(target=_watch, args=([own, *line],), daemon=True).start()


def _watch(line: list[int]) -> None:
    own, parent, *_ = line
    while os.getppid() == parent and all(_parent_and_name(at)[0] == up for at, up in pairwise(line[1:])):
        time.sleep(LOOK_S)
    os.kill(own, signal.SIGTERM)
    time.sleep(CLEARED_S)
    os._exit(128 + signal.SIGTERM)


def _parent_and_name(process: int) -> tuple[int, str]:
    """Return the parent and the name of a process; (0, "") if it is gone."""
    with suppress(OSError, ValueError, IndexError):
        name, _, rest = Path(f"/proc/{process}/stat").read_text().partition("(")[2].rpartition(")")
        return int(rest.split()[1]), name
    asked = subprocess.run(["ps", "-o", "ppid=,comm=", "-p", str(process)], check=False, capture_output=True, text=True)
    parent, _, name = asked.stdout.strip().partition(" ")
    return int(parent or 0), Path(name.strip()).name.removeprefix("-")
