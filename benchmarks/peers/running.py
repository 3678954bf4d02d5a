"""One run of a simulator as a process of its own, with a limit of processor time."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers.simulators import Ready

MARK = "RESULT "
LATE = (-signal.SIGXCPU, -signal.SIGKILL)
# A small process starts the simulator: after `exec`, a process's peak memory includes that of the process before it.
WATCH = """
import resource, subprocess, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))  # also of processes that the simulator starts
code = subprocess.call(sys.argv[2:])
print("\\nENDED", code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


class Run(NamedTuple):
    """Cost and result of one run; None if it was stopped at the limit."""

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
        ValueError: it failed for a reason other than the limit.
    """
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    if ready.path is not None:
        environment["PYTHONPATH"] = ready.path
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "output").open("w+b") as output:
        words = [*ready.command, *([folder] if ready.folder else []), *arguments]
        watched = [sys.executable, "-I", "-S", "-c", WATCH, str(limit_s), *words]
        subprocess.run(watched, stdout=output, stderr=subprocess.STDOUT, env=environment, check=True)
        output.seek(0)
        text, _, ended = output.read().decode(errors="replace").rpartition("\nENDED ")
    code, peak = int(ended.split()[0]), int(ended.split()[1]) / 1024
    if code in LATE or f"ended with {LATE[0]}" in text or f"ended with {LATE[1]}" in text:
        return Run(None, None, None, None, None, peak)
    if code:
        raise ValueError(f"{' '.join(words)} ended with {code}: {text[-2000:]}")
    found = parse(text)
    return Run(found["jobs"], found["decisions"], found["wall_s"], found["cpu_s"], found["mean"], peak)
