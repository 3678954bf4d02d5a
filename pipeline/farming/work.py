"""Work: one command of DVC, in a process group that ends with the process that began it, however that ends."""

import fcntl
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue

from pipeline.execution.beginning import GROUP

FIRST_FREE = 10  # number of a file that sh leaves alone
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

    @property
    def code(self) -> int:
        """Return how it ended: its exit code, or less than 0 the signal that ended it."""
        return self._process.wait()

    def tidy(self) -> None:
        """End what is left of the group if the command itself has ended, a stage that outlived DVC above all."""
        if self._process.poll() is not None:
            self._kill()

    def stop(self) -> None:
        """Tell all of it to end."""
        self._send(signal.SIGTERM)

    def stopped(self) -> None:
        """Wait a while until all of it has ended, as none of it says anything any more; then make it."""
        self._listener.join(STOP_S)
        self._kill()
        self._process.wait()

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
