"""Slow set-up that is done once for all processes of a test run, as the documentation of pytest-xdist describes."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

SAID = "said.txt"


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], str]) -> tuple[Path, str]:
    """Return the folder that `make` fills, and its text; the first process makes it, and the others wait.

    Tests must not change the folder, because others read it at the same time.
    """
    own = factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    place, whole = shared / name, shared / name / SAID
    with FileLock(shared / f"{name}.lock"):
        if not whole.exists():
            shutil.rmtree(place, ignore_errors=True)  # of a process that failed
            place.mkdir()
            whole.write_text(make(place))
    return place, whole.read_text()
