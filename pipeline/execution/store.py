"""Results of tasks, a file each: written whole or not at all, by whichever worker, and discarded with the stage.

A task's key is a digest of the code, the function, what it is called with, and the inputs it reads.
"""

import dataclasses
import functools
import hashlib
import pickle
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from pipeline.execution.beginning import code_digest
from pipeline.storage.files import discard, write
from pipeline.storage.paths import sha256_of

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
        """Keep the result of a task."""
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


def keys_of(function: Callable[[Any], Any], tasks: Sequence[object], inputs: Sequence[Path] = ()) -> list[str]:
    """Return the key of every task.

    Args:
        function: of a module, or a partial of one; what it holds (parameters, a seed) is part of the key.
        tasks: what it is called with.
        inputs: files and folders that it reads, by what they hold.

    Raises:
        TypeError: something has no digest, as a closure.
    """
    held = [(path.as_posix(), sha256_of(path)) for path in inputs]
    common = _digest((code_digest(), function, held))
    return [hashlib.sha256(common + _digest(task)).hexdigest() for task in tasks]


def _digest(value: object) -> bytes:
    digest = hashlib.sha256()
    for piece in _pieces(value):
        digest.update(len(piece).to_bytes(8, "big") + piece)
    return digest.digest()


def _pieces(value: object) -> Iterator[bytes]:
    """Yield bytes that are the same for equal values in any process, and others for any other value."""
    yield _name_of(type(value)).encode()
    if value is None or isinstance(value, bool | int | float | str | np.generic | Path):
        yield repr(value).encode()
    elif isinstance(value, bytes):
        yield value
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield f"{value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, BaseModel):
        yield value.model_dump_json().encode()
    elif isinstance(value, Mapping):
        yield from _parts([part for item in value.items() for part in item])
    elif isinstance(value, list | tuple):
        yield from _parts(value)
    elif isinstance(value, functools.partial):
        yield from _parts([value.func, value.args, value.keywords])
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from _parts([getattr(value, field.name) for field in dataclasses.fields(value)])
    elif callable(value) and "<" not in _name_of(value):
        yield _name_of(value).encode()
    else:
        raise TypeError(f"a task is given {value!r}, which has no digest")


def _parts(values: Sequence[object]) -> Iterator[bytes]:
    yield str(len(values)).encode()
    for value in values:
        yield from _pieces(value)


def _name_of(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"
