"""A working directory of its own for every test of the executor, where nothing is set."""

import os
from pathlib import Path

import pytest
from builders import REPOSITORY


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("PIPELINE_EXECUTOR", "DVC_ROOT"):
        monkeypatch.delenv(name, raising=False)
    paths = (str(REPOSITORY), str(REPOSITORY / "tests" / "support"))  # where workers find this code, and tasks of tests
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    return tmp_path
