"""Tasks, their results in a store that all workers share, and what a worker does with a task.

The store has a file for each task: whole or absent, and discarded at the end of the stage. A task's key is a digest of
the code, the function, its arguments, and the inputs that it reads.
"""

import dataclasses
import functools
import hashlib
import os
import pickle
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from pipeline.core.storage.files import discard, write
from pipeline.core.storage.paths import sha256_of
from pipeline.errors import UserError
from pipeline.execution.environment import check_code, code_digest

KEPT_DAYS = 14.0  # of the results of a stage that was never resumed
DAY_S = 86_400.0
SUM = hashlib.sha256().digest_size  # bytes in front of the result


@dataclass(frozen=True)
class Store:
    """A folder of task results, by key."""

    folder: Path

    def path(self, key: str) -> Path:
        """Return the file of a task's result."""
        return self.folder / f"{key}.task"

    def write(self, key: str, value: object) -> None:
        """Store the result of a task."""
        packed = pickle.dumps(value, protocol=5)
        write(self.path(key), hashlib.sha256(packed).digest() + packed)

    def has(self, key: str) -> bool:
        """Return whether a task has a result."""
        return self.path(key).exists()

    def read(self, key: str) -> tuple[Any] | None:
        """Return the result of a task, or None; a damaged one is removed."""
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
        """Remove old results of stages that were killed and never run again."""
        for path in self.folder.glob("*"):
            with suppress(OSError):  # another stage did so first
                if path.suffix in (".task", ".mark") and time.time() - path.stat().st_mtime > KEPT_DAYS * DAY_S:
                    path.unlink()

    @contextmanager
    def marked(self) -> Iterator[tuple[Path, str]]:
        """Yield a temporary file and its content; a worker that reads this content sees the same folder."""
        word = secrets.token_hex(16)
        path = self.folder / f"{word[:12]}.mark"
        write(path, word.encode())
        try:
            yield path, word
        finally:
            discard(path)


@dataclass(frozen=True)
class StageContext:
    """What every worker of a stage must know."""

    root: Path  # working directory of the stage, absolute
    mark: Path  # a file in the store's folder, absolute
    word: str  # content of the mark
    code: str  # digest of the stage's code
    torch_threads: int | None = None  # None: the stage has not imported torch

    @property
    def store(self) -> Store:
        """Return the store of results."""
        return Store(self.mark.parent)


@dataclass(frozen=True)
class PackedTask:
    """A task on its way to a worker."""

    key: str
    packed: bytes  # the function and its argument, pickled


def run_task(stage: StageContext, task: PackedTask) -> str:
    """Run a task and store its result, unless it has one; return the user's mistake, if any."""
    try:
        _enter(stage)
        if not stage.store.has(task.key):
            function, argument = pickle.loads(task.packed)
            stage.store.write(task.key, function(argument))
    except UserError as error:
        return str(error)
    return ""


def run_tasks(stage: StageContext, tasks: Sequence[PackedTask]) -> str:
    """Run tasks one after another until one fails; return the user's mistake, if any."""
    return next((said for task in tasks if (said := run_task(stage, task))), "")


@functools.cache
def _enter(stage: StageContext) -> None:
    """Check that this worker sees the stage's folders and has its code, and work in its directory."""
    try:
        why = "" if stage.mark.read_text() == stage.word else "other content"
        os.chdir(stage.root)
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise UserError(
            f"executor: {socket.gethostname()} does not see {stage.mark.parent} and {stage.root} as this machine does"
            f" ({why}); expected folders that all workers share"
        )
    check_code(stage.code)
    if stage.torch_threads:  # torch's default is at most the number of cores, and would sum in another order
        import_module("torch").set_num_threads(stage.torch_threads)


def keys_of(function: Callable[[Any], Any], tasks: Sequence[object], inputs: Sequence[Path] = ()) -> list[str]:
    """Return the key of every task.

    Args:
        function: of a module, or a partial of one, whose arguments (parameters, a seed) are part of the key.
        tasks: arguments of the function.
        inputs: files and folders that it reads, by their content.

    Raises:
        TypeError: a value has no digest, such as a closure.
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
    """Yield bytes that are equal for equal values in any process, and different for different values."""
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
    elif callable(value) and "<" not in getattr(value, "__qualname__", "<"):
        yield _name_of(value).encode()
    else:
        members = _members(value)
        yield str(len(members)).encode()
        for member in members:
            yield from _pieces(member)


def _members(value: object) -> Sequence[object]:
    if isinstance(value, Mapping):
        return [part for item in value.items() for part in item]
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    raise TypeError(f"a task is given {value!r}, which has no digest")


def _name_of(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"
