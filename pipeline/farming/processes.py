"""Commands of DVC, each in a process group that ends with its parent process, however that ends."""

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
from typing import TextIO

from pipeline.execution.environment import GROUP
from pipeline.progress import LINES_EVERY_S, say

FIRST_FREE = 10  # file descriptor that sh does not use
TICK_S = 0.5
STOP_S = 8.0  # for removing incomplete files

Said = tuple[str, str | None]  # name of a command and a line of its output; None after its last


@dataclass(frozen=True)
class Command:
    """A command, its folder, and additions to its environment."""

    words: Sequence[str]
    place: Path = Path()
    more: Mapping[str, str] = field(default_factory=dict)


class Work:
    """A running command."""

    def __init__(self, name: str, command: Command, said: "Queue[Said]", held: int) -> None:
        """Begin.

        Args:
            name: name of its lines.
            command: the command.
            said: receives its lines as they come, and None when all of its processes have ended.
            held: a file that stays open, and locked, while it runs.
        """
        self.name = name
        kept = fcntl.fcntl(held, fcntl.F_DUPFD, FIRST_FREE)  # or the shell would put the pipe in its place
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", GROUP, "farm", *command.words],
            cwd=command.place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **command.more},
            pass_fds=(kept,),
            start_new_session=True,
        )
        os.close(kept)
        self._group_is_ours = True  # until it is ended: its number may then be another's
        self._listener = threading.Thread(target=self._listen, args=(said,), daemon=True)
        self._listener.start()

    def clean_up(self) -> None:
        """If the command itself has ended, end the rest of its group: mainly a stage that outlived DVC."""
        if self._process.poll() is not None:
            self._send(signal.SIGKILL)

    def stop(self) -> None:
        """Ask the whole group to end."""
        self._send(signal.SIGTERM)

    def stopped(self) -> int:
        """Wait for the group, then kill it; return the exit code, or below 0 the signal."""
        self._listener.join(STOP_S)
        self._send(signal.SIGKILL)
        return self._process.wait()

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            if self._group_is_ours:
                os.killpg(self._process.pid, number)
        self._group_is_ours &= number != signal.SIGKILL

    def _listen(self, said: "Queue[Said]") -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                said.put((self.name, line.decode(errors="replace").rstrip()))
        finally:
            said.put((self.name, None))  # otherwise the reader would wait forever


class Crew:
    """Commands that run at the same time; a file stays open, and locked, while one runs."""

    def __init__(self, held: TextIO) -> None:
        self._held = held
        self._said: Queue[Said] = Queue()
        self._works: dict[str, Work] = {}

    def __len__(self) -> int:
        return len(self._works)

    def begin(self, name: str, command: Command) -> None:
        """Run one more command."""
        self._works[name] = Work(name, command, self._said, self._held.fileno())

    def lines(self, status: Callable[[float], str]) -> Iterator[Said]:
        """Yield every line with the name of its command, and None after its last; report the status in between."""
        shown_s = time.monotonic()
        while self._works:
            for work in self._works.values():
                work.clean_up()
            with suppress(Empty):
                said = self._said.get(timeout=TICK_S)
                yield said
                shown_s = shown_s if said[1] is not None else time.monotonic()
            if (now_s := time.monotonic()) - shown_s >= LINES_EVERY_S:
                shown_s = now_s
                say(status(now_s))

    def dismiss(self, name: str) -> int:
        """Remove a command after its last line; return its exit code, or below 0 its signal."""
        return self._works.pop(name).stopped()

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        """Stop all running commands, and wait until they have ended."""
        for work in self._works.values():
            work.stop()
        for work in self._works.values():
            work.stopped()
