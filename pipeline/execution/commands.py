"""Commands, each in a process group that ends when this process ends or is killed; and where and how they run.

The place is the variable PIPELINE_EXECUTOR, else [executor] of pipeline.toml at the root.
"""

import os
import re
import signal
import subprocess
import threading
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO

from pydantic import Field, ValidationError

from pipeline.core.config import Frozen, repository_root
from pipeline.errors import UserError

VARIABLE, FILE = "PIPELINE_EXECUTOR", Path("pipeline.toml")
FOLDER = Path(".cache/tasks")
LOOKED_S = 1.0  # between two reports of progress
WORD = re.compile(r"(?P<backend>serial|processes|ray|slurm)(:(?P<workers>[1-9][0-9]{0,4}))?(@(?P<at>\S+))?")
ADDRESS = re.compile(r"(?P<host>[^\s:]+):(?P<port>[0-9]{1,5})")
EXPECTED = "expected serial, processes:N, ray:N, ray:N@HOST:PORT, slurm:N or slurm:N@PARTITION"

Backend = Literal["serial", "processes", "ray", "slurm"]
# Run a command as leader of a process group that ends with the process that started it, even if that is killed: the end
# of that process closes a pipe, and a second process in the group, which reads from the pipe, then ends the group.
# POSIX sh, as ["/bin/sh", "-c", GROUP, NAME, *words] in a session of its own, with that pipe as its standard input.
GROUP = """
exec 3<&0 </dev/null
{ trap '' TERM; read gone <&3; kill -TERM 0; sleep 5; kill -KILL 0; } >/dev/null 2>&1 &
exec "$@" 3<&-
"""
KILLED = 128 + 9  # exit code of a killed process
TICK_S = 0.5
STOP_S = 8.0  # for removing incomplete files
PREFIXES = ("NUMBA_", "OMP_", "GOMP_", "MKL_", "OPENBLAS_", "DVC_ROOT", "PIPELINE_")
THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
LineCallback = Callable[[str], object]


class Setting(Frozen):
    """Place where tasks run, and how many run at a time."""

    backend: Backend = "serial"
    workers: int | None = Field(default=None, ge=1)  # None: the number of cores, here or in Ray's cluster
    address: str = ""  # host:port of a Ray cluster; without one, the stage starts and ends a Ray of its own
    partition: str = ""  # of Slurm; without one, its default
    minutes: int = Field(default=60, ge=1)  # time limit of a worker in Slurm
    options: dict[str, str | int | bool] = Field(default={})  # further options of srun, such as {account = "mine"}
    folder: Path = FOLDER  # of task results; every worker must see it under the same path


def setting(default: Setting | None = None) -> Setting:
    """Return the user's setting, or the default; a UserError if it is invalid."""
    if word := os.environ.get(VARIABLE):
        parts = WORD.fullmatch(word)
        if not parts or (parts["at"] and parts["backend"] not in ("ray", "slurm")):
            raise UserError(f"{VARIABLE}: {EXPECTED}, found '{word}'")
        fields: dict[str, Any] = {"backend": parts["backend"]}
        if parts["workers"]:
            fields["workers"] = int(parts["workers"])
        if parts["at"]:
            fields["address" if parts["backend"] == "ray" else "partition"] = parts["at"]
        return _checked(fields, VARIABLE)
    path = repository_root() / FILE
    if not path.exists():
        return default or Setting()
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{FILE}: cannot be read ({error})") from error
    if unknown := sorted(set(tables) - {"executor"}):
        raise UserError(f"{FILE}: expected a table [executor] only, found '{unknown[0]}'")
    if "executor" not in tables:
        return default or Setting()
    if not isinstance(rows := tables["executor"], dict):
        raise UserError(f"{FILE}: expected a table [executor], found {rows!r}")
    return _checked(rows, f"{FILE}: executor")


def _checked(fields: dict[str, Any], where: str) -> Setting:
    try:
        found = Setting.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{where}.{place}: {first['msg']}, found {first['input']!r}") from error
    if found.address and not ADDRESS.fullmatch(found.address):
        raise UserError(f"{where}: expected HOST:PORT of a Ray cluster, found '{found.address}'")
    if found.backend == "slurm" and found.workers is None:
        raise UserError(f"{where}: expected how many workers Slurm runs at a time, as slurm:4")
    return found


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Job:
    """A command to be run where the user's setting says: a whole stage, or a worker of a stage."""

    name: str
    words: Sequence[str]
    given: Mapping[str, str]  # variables added to the environment
    threads: int
    cores: int  # that Ray keeps for it


class Commands:
    """Commands that threads run at the same time; the end of the block ends those that still run."""

    def __init__(self, held: Sequence[int] = ()) -> None:
        """Run nothing yet; `held` are file descriptors above 9 that stay open while a command runs."""
        self._held = held
        # Each with the reader of its output, which ends with the last process of the group.
        self._running: dict[subprocess.Popen[str], threading.Thread] = {}
        self._ending = False
        self._lock = threading.Lock()

    def run(
        self,
        words: Sequence[str],
        on_line: LineCallback,
        more: Mapping[str, str] | None = None,
        folder: Path | None = None,
        on_tick: Callable[[], None] = lambda: None,
    ) -> int:
        """Run a command; return its exit code, or below 0 the signal that ended it.

        `on_line` is called with each line of its output, `on_tick` twice a second. `more` is added to the environment.
        """
        process = subprocess.Popen(
            ["/bin/sh", "-c", GROUP, "group", *words],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(more or {})},
            pass_fds=self._held,
            start_new_session=True,
            text=True,
            errors="replace",
        )
        reader = threading.Thread(target=_read, args=(process.stdout, on_line), daemon=True)
        reader.start()
        with self._lock:
            self._running[process] = reader
            if self._ending:
                os.killpg(process.pid, signal.SIGTERM)
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(TICK_S)
            on_tick()
        return self._finish(process, reader)

    def __enter__(self) -> "Commands":
        return self

    def __exit__(self, *_: object) -> None:
        """Ask all running commands to end, and wait for it."""
        with self._lock:
            self._ending = True
            running = dict(self._running)
            for process in running:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
        for process, reader in running.items():
            self._finish(process, reader)

    def _finish(self, process: "subprocess.Popen[str]", reader: threading.Thread) -> int:
        """Kill the rest of a group, such as a stage that outlived DVC; return the exit code of its command."""
        reader.join(STOP_S if self._ending else 0)
        with self._lock:
            if self._running.pop(process, None):  # later its number may be another process's
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        reader.join()
        if process.stdin:
            process.stdin.close()
        return process.wait()


def _read(output: TextIO, on_line: LineCallback) -> None:
    with output:  # if lines cannot be shown, the command must not wait for a reader
        for line in output:
            on_line(line.rstrip())


def is_failure(code: int) -> bool:
    """Return whether an exit code means that a command failed, and was not killed."""
    return 0 < code < 128


def reason(output: Iterable[str], code: int) -> str:
    """Return the reason of a failure on one line: the command's error, else its signal, else its last line.

    >>> reason(["error: params.yaml: no such key", "ERROR: failed to reproduce 'gate'"], 255)
    'params.yaml: no such key'
    >>> reason(["gate: 50 of 400, time left unknown"], -9)
    'ended by signal 9'
    """
    lines = [line for line in output if line.strip()]
    own = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    own = own or [f"executor: {line}" for line in lines if line.startswith("srun: error: ")]
    if own:
        return own[-1]
    if code < 0:
        return f"ended by signal {-code}"
    return lines[-1].removeprefix("ERROR: ") if lines else f"exit code {code}"


def environment(threads: int) -> dict[str, str]:
    """Return the environment variables for a worker, with as many threads as the stage itself has."""
    package = str(Path(__file__).parents[2])
    given = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != package]
    ours = {name: value for name, value in os.environ.items() if name.startswith(PREFIXES)}
    no_more = {"PIPELINE_TRACKING": "off", "PIPELINE_EXECUTOR": "serial"}  # a worker has no workers of its own
    pinned = dict.fromkeys(THREADS, str(threads))
    return ours | no_more | pinned | {"PYTHONPATH": os.pathsep.join([package, *given])}
