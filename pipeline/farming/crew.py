"""The crew: what works at the same time, heard as one; nobody of it stays when it is left."""

import queue
from types import TracebackType
from typing import TextIO

from pipeline.farming.work import Said, Task, Work

TICK_S = 0.5


class Crew:
    """Commands that run side by side."""

    def __init__(self, held: TextIO) -> None:
        """Begin with nobody; a file stays open, and locked, for as long as anybody works."""
        self._held = held
        self._said: queue.Queue[Said] = queue.Queue()
        self._works: dict[str, Work] = {}

    def __len__(self) -> int:
        return len(self._works)

    def begin(self, name: str, task: Task) -> None:
        """Have one more command run."""
        self._works[name] = Work(name, task, self._said, self._held.fileno())

    def hear(self) -> Said | None:
        """Return who said which line next, behind the last line None; nothing if nobody says anything for a moment."""
        for work in self._works.values():
            work.tidy()
        try:
            return self._said.get(timeout=TICK_S)
        except queue.Empty:
            return None

    def dismiss(self, name: str) -> int:
        """Return how one that said its last line ended: its exit code, or below 0 the signal that ended it."""
        work = self._works.pop(name)
        work.stopped()
        return work.code

    def __enter__(self) -> "Crew":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tell all that still work to end, and wait until they have."""
        for work in self._works.values():
            work.stop()
        for work in self._works.values():
            work.stopped()
