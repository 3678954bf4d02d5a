"""Commands of DVC, each in a process group that ends with the process that began it, however that ends."""

import fcntl
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from types import TracebackType
from typing import TextIO

from pipeline.execution.environment import GROUP
from pipeline.progress import LINES_EVERY_S, say

FIRST_FREE = 10  # number of a file that sh leaves alone
TICK_S = 0.5
STOP_S = 8.0  # for what is half written to be cleared away

Said = tuple[str, str | None]  # the name of some work, and a line that it said; None behind its last


@dataclass(frozen=True)
class Task:
    """A command, and where it runs."""

    words: Sequence[str]
    place: Path = Path()
    more: Mapping[str, str] = field(default_factory=dict)  # of the environment


class Work:
    """A command that runs."""

    def __init__(self, name: str, task: Task, said: "Queue[Said]", held: int) -> None:
        """Begin.

        Args:
            name: what its lines come under.
            task: the command.
            said: takes its lines as they come, and None when all of its processes have ended.
            held: a file that stays open, and what is locked stays locked, for as long as it runs.
        """
        self.name = name
        kept = fcntl.fcntl(held, fcntl.F_DUPFD, FIRST_FREE)  # or the shell would put the pipe in its place
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", GROUP, "farm", *task.words],
            cwd=task.place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **task.more},
            pass_fds=(kept,),
            start_new_session=True,
        )
        os.close(kept)
        self._group_is_ours = True  # until it is ended: its number may then be another's
        self._listener = threading.Thread(target=self._listen, args=(said,), daemon=True)
        self._listener.start()

    def tidy(self) -> None:
        """End what is left of the group if the command itself has ended, a stage that outlived DVC above all."""
        if self._process.poll() is not None:
            self._kill()

    def stop(self) -> None:
        """Tell all of it to end."""
        self._send(signal.SIGTERM)

    def stopped(self) -> int:
        """Wait a while until all of it has ended, then end it; return its exit code, or below 0 its signal."""
        self._listener.join(STOP_S)
        self._kill()
        return self._process.wait()

    def _kill(self) -> None:
        self._send(signal.SIGKILL)
        self._group_is_ours = False

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            if self._group_is_ours:
                os.killpg(self._process.pid, number)

    def _listen(self, said: "Queue[Said]") -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                said.put((self.name, line.decode(errors="replace").rstrip()))
        finally:
            said.put((self.name, None))  # else it would be waited for without end


class Crew:
    """Commands that run at the same time."""

    def __init__(self, held: TextIO) -> None:
        """Begin with none; a file stays open, and locked, for as long as one runs."""
        self._held = held
        self._said: Queue[Said] = Queue()
        self._works: dict[str, Work] = {}

    def __len__(self) -> int:
        return len(self._works)

    def begin(self, name: str, task: Task) -> None:
        """Run one more command."""
        self._works[name] = Work(name, task, self._said, self._held.fileno())

    def lines(self, status: Callable[[float], str]) -> Iterator[Said]:
        """Yield every line under the name of its command, and None after its last; say the status now and then."""
        shown_s = time.monotonic()
        while self._works:
            for work in self._works.values():
                work.tidy()
            with suppress(Empty):
                said = self._said.get(timeout=TICK_S)
                yield said
                shown_s = shown_s if said[1] is not None else time.monotonic()
            if (now_s := time.monotonic()) - shown_s >= LINES_EVERY_S:
                shown_s = now_s
                say(status(now_s))

    def dismiss(self, name: str) -> int:
        """Return how one that said its last line ended: its exit code, or below 0 the signal that ended it."""
        return self._works.pop(name).stopped()

    def __enter__(self) -> "Crew":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop all that still run, and wait until they have ended."""
        for work in self._works.values():
            work.stop()
        for work in self._works.values():
            work.stopped()
