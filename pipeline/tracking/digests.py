"""Digests: DVC's md5 of files and folders, by which `dvc.lock` identifies a run's inputs and outputs."""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from pipeline.core.config.parsing import parsed

LOCK = Path("dvc.lock")
HELD = Path(".dvc/tmp/lock")  # DVC's own, released while a stage's command runs
LONGEST_WAIT_S = 60.0
LOOK_S = 0.05


@contextmanager
def dvc_waits() -> Iterator[None]:
    """Wait for DVC, if it is at work here, and keep it waiting.

    It writes dvc.lock in place, which takes a second for a long one; another stage may end while this one reads it.
    """
    try:
        held = HELD.open("rb")
    except OSError:  # no DVC was ever at work here
        yield
        return
    with held:
        until = time.monotonic() + LONGEST_WAIT_S
        while time.monotonic() < until:
            with suppress(BlockingIOError):
                fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
                break
            time.sleep(LOOK_S)
        yield


def read_lock() -> bytes:
    """Return dvc.lock, whole."""
    with dvc_waits():
        return LOCK.read_bytes()


def digest(path: Path) -> str:
    """Return the md5 of an input: from dvc.lock for outputs of earlier stages, else its own."""
    # Only under DVC: a stage that is run by hand may read files that are newer than dvc.lock.
    locked = None
    if os.environ.get("DVC_STAGE") and LOCK.exists():
        written = LOCK.stat()
        locked = _outs(LOCK.resolve(), (written.st_mtime_ns, written.st_size)).get(path.as_posix())
    return locked or measured(path)


def measured(path: Path) -> str:
    """Return the md5 of a file, or of a folder as DVC computes it (ends in .dir; 36 characters)."""
    if not path.is_dir():
        return _file(path)
    inside = (file for file in path.rglob("*") if file.is_file())
    return digest_of_files({file.relative_to(path).as_posix(): _file(file) for file in inside})


def digest_of_files(files: Mapping[str, str]) -> str:
    """Return DVC's md5 of a folder from the md5 of its files."""
    tree = [{"md5": files[name], "relpath": name} for name in sorted(files)]
    return md5_of(json.dumps(tree, sort_keys=True).encode()) + ".dir"


def md5_of(content: bytes) -> str:
    """Return the md5 of some bytes."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


@lru_cache(maxsize=1)  # a stage has many inputs, and dvc.lock is long
def _outs(_lock: Path, _written: tuple[int, int]) -> dict[str, str | None]:
    """Return the md5 of every output of dvc.lock."""
    stages = parsed(read_lock().decode(), str(LOCK), of_dvc=True)["stages"].values()
    return {out["path"]: out.get("md5") for stage in stages for out in stage.get("outs", [])}


def _file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
