"""A worker of a stage: `python -m pipeline.execution.worker FILE FOLDER NUMBER` runs tasks of a file in a folder.

Workers share the file. The worker that runs a task locks the task there, and the lock ends with the worker.
"""

import fcntl
import os
import pickle
import secrets
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from pipeline.core.storage.files import discard, write
from pipeline.errors import UserError
from pipeline.execution.tasks import Store, check_code, code_digest


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
