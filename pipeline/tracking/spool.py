"""Spool: every event of a stage is written to a file of its own before it is sent, and the file goes when all is sent.

Loading MLflow takes longer than most stages, so a short one leaves its file to whoever sends next (see `run`). Nothing
is lost when the server is away or the process is killed: what stays behind, `publish` sends. The process that writes a
file holds a lock on it, which the system takes away when it dies: a file without one is complete, or its stage was
killed.
"""

import fcntl
import glob
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from pipeline.config import repository_root
from pipeline.tracking.record import KILLED, Begin, End, Event, event_of, line_of


def spool_folder() -> Path:
    """Return where the files are: at the root, for a temporary experiment's folder is thrown away."""
    root = repository_root().absolute()
    return root / ".dvc" / "tmp" / "mlflow-spool" if (root / ".dvc").is_dir() else root / "mlflow.db.spool"


class Spool:
    """The file of one stage."""

    def __init__(self, begin: Begin) -> None:
        folder = spool_folder()
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{begin.pipeline.title}.{begin.at}.{begin.id}.jsonl"  # in the order they began
        self._stream: TextIO = self.path.open("a", encoding="utf-8")
        fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.add(begin)

    def add(self, event: Event) -> None:
        """Write an event; once this returns, killing the process does not lose it."""
        self._stream.write(line_of(event))
        self._stream.flush()

    def close(self, sent: bool) -> None:
        """End the file, and remove it if all was sent."""
        if sent:
            self.path.unlink(missing_ok=True)
        with suppress(OSError):
            self._stream.close()


def waiting(pipeline: str = "") -> list[Path]:
    """Return the files that stages left or still write, of one pipeline run or of all."""
    return sorted(spool_folder().glob(f"{glob.escape(pipeline)}*.jsonl"))


@contextmanager
def taken(path: Path) -> Iterator[list[Event] | None]:
    """Give the events of a file; None while its stage still runs. The file is removed if the body raises nothing.

    Raises:
        ValueError: it holds something else.
    """
    with path.open(encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        yield _complete(stream.read().splitlines(), int(path.stat().st_mtime * 1000))
        path.unlink(missing_ok=True)


def _complete(lines: list[str], last_ms: int) -> list[Event]:
    """Return the events of some lines; a stage that did not come to its end was killed."""
    events = [event_of(line) for line in lines[:-1]]
    with suppress(ValueError):  # a kill can cut the last line
        events += [event_of(line) for line in lines[-1:]]
    if events and not isinstance(events[0], Begin):
        raise ValueError("it does not begin with a stage")
    if events and not isinstance(events[-1], End):
        events.append(End(at=last_ms, status=KILLED))
    return events
