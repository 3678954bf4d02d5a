"""What takes long to set up is set up once for all processes of a test run, as pytest-xdist's documents describe."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

SAID = "said.txt"


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], str]) -> tuple[Path, str]:
    """The folder that `make` fills, and what it says; whoever comes first makes it, and the others wait.

    Nobody may change what is in it, for others read it at the same time.
    """
    own = factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    place, whole = shared / name, shared / name / SAID
    with FileLock(shared / f"{name}.lock"):
        if not whole.exists():
            shutil.rmtree(place, ignore_errors=True)  # of one who failed
            place.mkdir()
            whole.write_text(make(place))
    return place, whole.read_text()
