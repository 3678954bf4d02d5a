"""Fixture of this folder's tests: a folder to import into."""

from pathlib import Path

import pytest
from slurm_imports import Imported


@pytest.fixture
def imported(tmp_path: Path) -> Imported:
    return Imported(tmp_path)
