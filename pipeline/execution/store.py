"""What tasks found, a file a task: written whole or not at all, by whichever worker, and discarded with the stage."""

import hashlib
import pickle
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.storage.files import discard, write

KEPT_DAYS = 14.0  # what a stage that never went on has left
DAY_S = 86_400.0
SUM = hashlib.sha256().digest_size  # bytes before what is stored


@dataclass(frozen=True)
class Store:
    """A folder of results of tasks, by key."""

    folder: Path

    def path(self, key: str) -> Path:
        """Return where the result of a task is."""
        return self.folder / f"{key}.task"

    def write(self, key: str, value: object) -> None:
        """Keep the result of a task.

        Raises:
            UserError: it cannot be written, as on a full disk.
        """
        packed = pickle.dumps(value, protocol=5)
        write(self.path(key), hashlib.sha256(packed).digest() + packed)

    def has(self, key: str) -> bool:
        """Tell whether a task was carried out."""
        return self.path(key).exists()

    def read(self, key: str) -> tuple[Any] | None:
        """Return the result of a task; nothing if there is none, or it was cut, and then it is removed."""
        try:
            stored = self.path(key).read_bytes()
        except FileNotFoundError:
            return None
        if hashlib.sha256(stored[SUM:]).digest() != stored[:SUM]:
            discard(self.path(key))
            return None
        return (pickle.loads(stored[SUM:]),)

    def discard(self, keys: Iterable[str]) -> None:
        """Remove the results of some tasks."""
        discard(*(self.path(key) for key in keys))

    def sweep(self) -> None:
        """Remove what was left long ago by stages that were killed and never run again."""
        for path in self.folder.glob("*"):
            with suppress(OSError):  # another stage did so first
                if path.suffix in (".task", ".mark") and time.time() - path.stat().st_mtime > KEPT_DAYS * DAY_S:
                    path.unlink()

    @contextmanager
    def marked(self) -> Iterator[tuple[Path, str]]:
        """Yield a file that is there while somebody listens, and the word in it: who reads that sees this folder."""
        word = secrets.token_hex(16)
        path = self.folder / f"{word[:12]}.mark"
        write(path, word.encode())
        try:
            yield path, word
        finally:
            discard(path)
