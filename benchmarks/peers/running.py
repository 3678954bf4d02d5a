"""One run of a simulator as a process of its own, with a limit of processor time."""

import json
import os
import resource
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers.simulators import Ready

MARK = "RESULT "
LATE = (-signal.SIGXCPU, -signal.SIGKILL)


class Run(NamedTuple):
    """What a run needed; None where it was stopped at the limit."""

    done: int | None  # jobs
    decisions: int | None
    wall_s: float | None  # of the simulation, without reading jobs unless the simulator reads them meanwhile
    cpu_s: float | None
    mean: float | None  # wait, s; of environments, slowdown
    peak_mib: float


def parse(text: str) -> dict[str, Any]:
    r"""Return the result in the output of a driver.

    >>> parse("loading ...\nRESULT {\"jobs\": 3}\n")
    {'jobs': 3}

    Raises:
        ValueError: there is no such line.
    """
    for line in reversed(text.splitlines()):
        if line.startswith(MARK):
            found: dict[str, Any] = json.loads(line.removeprefix(MARK))
            return found
    raise ValueError(f"no result, but: {text[-2000:]}")


def run(ready: Ready, arguments: Sequence[str], limit_s: int) -> Run:
    """Run a simulator once.

    Raises:
        ValueError: it failed for another reason than the limit.
    """
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    if ready.path is not None:
        environment["PYTHONPATH"] = ready.path
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "output").open("w+b") as output:
        words = [*ready.command, *([folder] if ready.folder else []), *arguments]
        with subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, env=environment) as child:
            resource.prlimit(child.pid, resource.RLIMIT_CPU, (limit_s, limit_s + 1))  # processes that it starts inherit
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    peak = used.ru_maxrss / 1024
    if child.returncode in LATE or f"ended with {LATE[0]}" in text or f"ended with {LATE[1]}" in text:
        return Run(None, None, None, None, None, peak)
    if child.returncode:
        raise ValueError(f"{' '.join(words)} ended with {child.returncode}: {text[-2000:]}")
    found = parse(text)
    return Run(found["jobs"], found["decisions"], found["wall_s"], found["cpu_s"], found["mean"], peak)
