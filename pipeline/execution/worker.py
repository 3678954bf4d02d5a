"""A worker of a stage: `python -m pipeline.execution.worker FILE FOLDER NUMBER` runs tasks of a file in a folder.

Workers share the file. The worker that runs a task locks the task there, and the lock ends with the worker. Results are
in a store that all workers share. It has a file for each task: whole or absent, and discarded at the end of the stage.
A task's key is a digest of the code, the function, its arguments, and the inputs that it reads.
"""

import fcntl
import functools
import hashlib
import io
import os
import pickle
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel

from pipeline.core.storage.files import discard, write
from pipeline.core.storage.paths import sha256_of
from pipeline.errors import UserError

KEPT_DAYS = 14.0  # of the results of a stage that was never resumed
DAY_S = 86_400.0
SUM = hashlib.sha256().digest_size  # bytes of the checksum in front of the result
# Packages whose arithmetic or files are part of a result.
PACKAGES = ("numpy", "numba", "llvmlite", "torch", "pandas", "pyarrow", "ortools", "scikit-learn")
SHOWN = 12  # digits of a digest


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
        """Return the result of a task in a tuple, or None; a damaged one is removed."""
        try:
            stored = self.path(key).read_bytes()
        except FileNotFoundError:
            return None
        if hashlib.sha256(stored[SUM:]).digest() != stored[:SUM]:
            discard(self.path(key))
            return None
        return (pickle.loads(stored[SUM:]),)

    def sweep(self) -> None:
        """Remove old files of stages that were killed and never run again."""
        for path in self.folder.glob("*"):
            with suppress(OSError):  # another stage did so first
                if path.suffix in (".task", ".work") and time.time() - path.stat().st_mtime > KEPT_DAYS * DAY_S:
                    path.unlink()


def keys_of(function: Callable[[Any], Any], tasks: Sequence[object], inputs: Sequence[Path] = ()) -> list[str]:
    """Return the key of every task: by its function, with the arguments of a partial, and the content of `inputs`."""
    held = [(path.as_posix(), sha256_of(path)) for path in inputs]
    common = _digest((code_digest(), function, held))
    return [hashlib.sha256(common + _digest(task)).hexdigest() for task in tasks]


def _digest(value: object) -> bytes:
    """Return bytes that are equal for equal values in any process, and different for different values."""
    stream = io.BytesIO()
    pickler = _Canonical(stream, protocol=5)
    pickler.fast = True
    pickler.dump(value)
    return hashlib.sha256(stream.getvalue()).digest()


class _Canonical(pickle.Pickler):
    """Pickles parameters without the order of their sets; if `fast`, values without regard to their identity."""

    def reducer_override(self, value: object) -> Any:
        return (type(value), (value.model_dump_json(),)) if isinstance(value, BaseModel) else NotImplemented


@functools.cache
def code_digest() -> str:
    """Return a digest of this package's sources, of Python and of the packages that results depend on."""
    here = Path(__file__).parents[1]
    digest = hashlib.sha256(f"python {sys.version_info[:3]}".encode())
    for name in PACKAGES:
        try:
            found = version(name)
        except PackageNotFoundError:
            found = "none"
        digest.update(f"{name} {found}\n".encode())
    for path in sorted(here.rglob("*.py")):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(here).as_posix()} {len(source)}\n".encode() + source)
    return digest.hexdigest()


def check_code(code: str) -> None:
    """Refuse to work for a stage whose code has another digest: results of two versions must not be mixed."""
    if (mine := code_digest()) != code:
        raise UserError(
            f"executor: {socket.gethostname()} has another version of the code or of its packages: expected"
            f" {code[:SHOWN]}, found {mine[:SHOWN]}"
        )


@contextmanager
def work_file(store: Store, tasks: Mapping[str, bytes], workers: int) -> Iterator[Path]:
    """Yield a file for workers: their number, the digest of the code, torch's threads, and pickled tasks by key."""
    torch: Any = sys.modules.get("torch")
    threads = None if torch is None else int(torch.get_num_threads())
    path = store.folder / f"{secrets.token_hex(6)}.work"
    write(path, pickle.dumps((workers, code_digest(), threads, list(tasks.items()))))
    try:
        yield path
    finally:
        discard(path)


def run_tasks(path: Path, root: Path, number: int) -> None:
    """Run the tasks of a file that no other worker runs or has run, beginning with this worker's share.

    `path` is the file, in the folder of results; `root` is the working directory of the stage. Raises UserError: a task
    raised it, or this machine does not see the folders or has other code.
    """
    try:
        os.chdir(root)
        work = path.open("r+b")
    except OSError as error:
        raise UserError(
            f"executor: {socket.gethostname()} does not see {path.parent} and {root} as the stage does"
            f" ({error.strerror}); expected folders that all workers share"
        ) from error
    with work:
        workers, code, torch_threads, tasks = pickle.load(work)
        check_code(code)
        if torch_threads:  # torch's default is at most the number of cores, and would sum in another order
            import_module("torch").set_num_threads(torch_threads)
        store = Store(path.parent)
        for place in sorted(range(len(tasks)), key=lambda place: (place - number) % workers):
            key, packed = tasks[place]
            if _lock(work, place) and not store.has(key):
                function, argument = pickle.loads(packed)
                store.write(key, function(argument))


def _lock(work: BinaryIO, place: int) -> bool:
    """Lock a task until this process ends; return False if another worker has it."""
    try:
        fcntl.lockf(work, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        pass  # a file system without locks: workers run some tasks twice
    return True


if __name__ == "__main__":
    try:
        run_tasks(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
    except (UserError, OSError, MemoryError) as error:
        sys.stderr.write(f"error: {str(error) or 'out of memory'}\n")
        raise SystemExit(2) from None
