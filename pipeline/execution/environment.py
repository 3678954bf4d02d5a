"""Environment of worker processes, their end with the process that started them, and the version of the code."""

import functools
import hashlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import parent_process
from multiprocessing.connection import wait
from pathlib import Path

import pipeline
from pipeline.errors import UserError

# Run a command as leader of a process group that ends with the process that started it, even when that is killed: the
# end of that process closes the pipe, and a second process in the group, which reads from it, then ends the group.
# POSIX sh, as ["/bin/sh", "-c", GROUP, NAME, *words] in a session of its own, with that pipe as its standard input.
GROUP = """
exec 3<&0 </dev/null
{ trap '' TERM; read gone <&3; kill -TERM 0; sleep 5; kill -KILL 0; } >/dev/null 2>&1 &
exec "$@" 3<&-
"""
KILLED = 128 + 9  # exit code of a killed process
PREFIXES = ("NUMBA_", "OMP_", "GOMP_", "MKL_", "OPENBLAS_", "DVC_ROOT", "PIPELINE_")
# Packages whose arithmetic or files are part of a result.
PACKAGES = ("numpy", "numba", "llvmlite", "torch", "pandas", "pyarrow", "ortools", "scikit-learn")
SHOWN = 12  # digits of a digest
THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def environment(threads: int) -> dict[str, str]:
    """Return our variables for a worker, with as many threads as the stage itself has."""
    package = str(Path(__file__).parents[2])
    given = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != package]
    ours = {name: value for name, value in os.environ.items() if name.startswith(PREFIXES)}
    no_more = {"PIPELINE_TRACKING": "off", "PIPELINE_EXECUTOR": "serial"}  # a worker has no workers of its own
    pinned = dict.fromkeys(THREADS, str(threads))
    return ours | no_more | pinned | {"PYTHONPATH": os.pathsep.join([package, *given])}


def begin_child(given: Mapping[str, str]) -> None:
    """Set up a child process of the stage, before any import that reads the number of threads: numpy, numba, torch.

    Only the stage answers Ctrl-C; the child ends with it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ |= given
    for path in reversed(given["PYTHONPATH"].split(os.pathsep)):
        if path not in sys.path:
            sys.path.insert(0, path)
    end_with_parent()


def end_with_parent() -> None:
    """End this process as soon as its parent ends."""

    def watch(sentinel: int) -> None:
        wait([sentinel])
        os._exit(1)

    if parent := parent_process():
        threading.Thread(target=watch, args=(parent.sentinel,), daemon=True).start()


@functools.cache
def code_digest() -> str:
    """Return a digest of this package's sources, of Python and of the packages that results depend on."""
    here = Path(pipeline.__file__).parent
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
