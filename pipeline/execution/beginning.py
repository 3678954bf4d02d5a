"""How the process of a worker begins, before anything is imported that looks at threads once: numpy, numba, torch.

And how a command begins in a process group that ends with the process that began it, however that ends; and which
version of the code a process runs, since results of two that differ are not to be mixed.
"""

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

# The command's own first process, and beside it one that waits: a pipe that nobody writes to is closed when who began
# it is gone, killed or not, and then the group is told to end, and made to. What it begins stays in its group.
# POSIX sh, as ["/bin/sh", "-c", GROUP, NAME, *words] in a session of its own, its standard input that pipe.
GROUP = """
exec 3<&0 </dev/null
{ trap '' TERM; read gone <&3; kill -TERM 0; sleep 5; kill -KILL 0; } >/dev/null 2>&1 &
exec "$@" 3<&-
"""

KILLED = 128 + 9  # exit code of what was killed
PREFIXES = ("NUMBA_", "OMP_", "GOMP_", "MKL_", "OPENBLAS_", "DVC_ROOT", "PIPELINE_")
# Packages whose own arithmetic or files are part of a result.
PACKAGES = ("numpy", "numba", "llvmlite", "torch", "pandas", "pyarrow", "ortools", "scikit-learn")
SHOWN = 12  # digits of a digest
THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def environment(threads: int) -> dict[str, str]:
    """Return what the environment of a worker has of ours, its threads pinned to as many as the stage has itself."""
    package = str(Path(__file__).parents[2])
    given = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != package]
    ours = {name: value for name, value in os.environ.items() if name.startswith(PREFIXES)}
    no_more = {"PIPELINE_TRACKING": "off", "PIPELINE_EXECUTOR": "serial"}  # a worker has no workers of its own
    pinned = dict.fromkeys(THREADS, str(threads))
    return ours | no_more | pinned | {"PYTHONPATH": os.pathsep.join([package, *given])}


def begin(given: Mapping[str, str]) -> None:
    """Take on an environment; modules are found where it says."""
    os.environ |= given
    for path in reversed(given["PYTHONPATH"].split(os.pathsep)):
        if path not in sys.path:
            sys.path.insert(0, path)


def begin_child(given: Mapping[str, str]) -> None:
    """Begin as a child of the stage: it alone answers Ctrl-C, and when it is gone, killed or not, so are we."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    begin(given)
    end_with_parent()


def end_with_parent() -> None:
    """Have this process end at once when the one that began it does."""

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
        digest.update(f"{name} {_version(name)}\n".encode())
    for path in sorted(here.rglob("*.py")):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(here).as_posix()} {len(source)}\n".encode() + source)
    return digest.hexdigest()


def must_be(code: str) -> None:
    """Refuse to work for a stage whose code has another digest than this process's."""
    if (mine := code_digest()) != code:
        raise UserError(
            f"executor: {socket.gethostname()} has another version of the code or of its packages: expected"
            f" {code[:SHOWN]}, found {mine[:SHOWN]}"
        )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
