"""Which version of the code a process runs: results of two that differ are not to be mixed."""

import functools
import hashlib
import socket
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pipeline
from pipeline.errors import UserError

# Whose own arithmetic or files are part of a result.
PACKAGES = ("numpy", "numba", "llvmlite", "torch", "pandas", "pyarrow", "ortools", "scikit-learn")
SHOWN = 12  # digits of a digest


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
    """Refuse to work for who has another version.

    Raises:
        UserError: this process has not the digest that is expected.
    """
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
