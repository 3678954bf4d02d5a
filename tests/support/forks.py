"""A process that has imported what takes seconds, and forks for each run: it has a process of its own all the same."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

# The child leaves the loop and ends as any process does, with all that is to be done at its end.
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


class Ended(NamedTuple):
    code: int
    out: str
    err: str


class Forks:
    """The process that forks."""

    def __init__(self, place: Path, ready: str, environment: Mapping[str, str]) -> None:
        """Begin it.

        Args:
            place: a folder for what is said.
            ready: code that imports what takes long, and begins no thread.
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
        """Run code in a process of its own, as `python -c` does, and wait for its end."""
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
        """End it."""
        self._process.communicate()
        assert self._process.returncode == 0
