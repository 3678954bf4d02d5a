"""Environment of worker processes, and the version of the code."""

import functools
import hashlib
import os
import socket
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pipeline
from pipeline.errors import UserError

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
