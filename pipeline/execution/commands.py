"""Commands, each in a process group that ends with this process, however it ends."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

# Run a command as leader of a process group that ends with the process that started it, even when that is killed: the
# end of that process closes the pipe, and a second process in the group, which reads from it, then ends the group.
# POSIX sh, as ["/bin/sh", "-c", GROUP, NAME, *words] in a session of its own, with that pipe as its standard input.
GROUP = """
exec 3<&0 </dev/null
{ trap '' TERM; read gone <&3; kill -TERM 0; sleep 5; kill -KILL 0; } >/dev/null 2>&1 &
exec "$@" 3<&-
"""
KILLED = 128 + 9  # exit code of a killed process
TICK_S = 0.5
STOP_S = 8.0  # for removing incomplete files

LineCallback = Callable[[str], object]


def nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Job:
    """A command to be run where the user's setting says: a whole stage, or a worker of a stage."""

    title: str
    words: Sequence[str]
    given: Mapping[str, str]  # variables added to the environment
    threads: int
    numbered: bool = False  # several copies run, and each has its number as a last word

    def command(self, copy: int) -> list[str]:
        """Return the words of a copy."""
        return [*self.words, *([str(copy)] if self.numbered else [])]

    def name(self, copy: int) -> str:
        """Return the name of a copy."""
        return f"{self.title}-{copy}" if self.numbered else self.title


@dataclass(eq=False)
class _Group:
    process: "subprocess.Popen[str]"
    reader: threading.Thread  # of its output, which ends with the last process of the group


class Commands:
    """Commands that threads run at the same time; the end of the block ends those that still run."""

    def __init__(self, held: Sequence[int] = ()) -> None:
        """Run nothing yet; `held` are file descriptors above 9 that stay open while a command runs."""
        self._held = held
        self._running: set[_Group] = set()
        self._ending = False
        self._lock = threading.Lock()

    def run(
        self,
        words: Sequence[str],
        on_line: LineCallback,
        more: Mapping[str, str] | None = None,
        folder: Path | None = None,
        on_tick: Callable[[], None] = nothing,
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
        group = _Group(process, threading.Thread(target=_read, args=(process.stdout, on_line), daemon=True))
        group.reader.start()
        with self._lock:
            self._running.add(group)
            if self._ending:
                os.killpg(process.pid, signal.SIGTERM)
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(TICK_S)
            on_tick()
        return self._finish(group)

    def __enter__(self) -> "Commands":
        return self

    def __exit__(self, *_: object) -> None:
        """Ask all running commands to end, and wait for it."""
        with self._lock:
            self._ending = True
            running = list(self._running)
            for group in running:
                with suppress(ProcessLookupError):
                    os.killpg(group.process.pid, signal.SIGTERM)
        for group in running:
            self._finish(group)

    def _finish(self, group: _Group) -> int:
        """Kill the rest of a group, such as a stage that outlived DVC; return the exit code of its command."""
        group.reader.join(STOP_S if self._ending else 0)
        with self._lock:
            if group in self._running:  # later its number may be another's
                with suppress(ProcessLookupError):
                    os.killpg(group.process.pid, signal.SIGKILL)
                self._running.remove(group)
        group.reader.join()
        if group.process.stdin:
            group.process.stdin.close()
        return group.process.wait()


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
    >>> reason(["gate: started"], -9)
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
