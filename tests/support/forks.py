"""A process that imports slow modules once and forks for each run, so that each run still has its own process."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

# The child leaves the loop and ends like any other process, including everything that is done at exit.
SERVER = """
import json, os, sys

exec(sys.argv[1])
for line in sys.stdin:
    run = json.loads(line)
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.chdir(run["folder"])
    os.environ.clear()
    os.environ.update(run["environment"])
    for number, name in enumerate(("/dev/null", run["out"], run["err"])):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
    sys.argv = ["-c", *run["words"]]
    exec(run["code"], {"__name__": "__main__"})
    break
"""


def forked(target: Callable[..., object], *words: object) -> BaseProcess:
    """Begin a process of its own that calls a function; it has all that this one imported, and must use no threads."""
    process = get_context("fork").Process(target=target, args=words)
    process.start()
    return process


class Ended(NamedTuple):
    code: int
    out: str
    err: str


class Forks:
    """The process that forks for each run."""

    def __init__(self, place: Path, ready: str, environment: Mapping[str, str]) -> None:
        """Start the process.

        Args:
            place: a folder for the output.
            ready: code that imports slow modules and starts no thread.
            environment: of those imports.
        """
        self._place, self._runs = place, 0
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER, ready],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str, *words: str, folder: Path, environment: Mapping[str, str]) -> Ended:
        """Run code in a separate process, as `python -c` does, and wait for its end."""
        self._runs += 1
        out, err = (self._place / f"{self._runs}.{name}" for name in ("out", "err"))
        run = {"code": code, "words": words, "folder": str(folder), "environment": dict(environment)}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(run | {"out": str(out), "err": str(err)}) + "\n")
        self._process.stdin.flush()
        ended = int(self._process.stdout.readline())
        return Ended(ended, out.read_text(), err.read_text())

    def end(self) -> None:
        """End the process."""
        self._process.communicate()
        assert self._process.returncode == 0
