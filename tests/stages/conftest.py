"""Fixture for tests of stages."""

from pathlib import Path

import pytest
from commands import command, place

__all__ = ["command", "here", "place"]


@pytest.fixture
def here(planned: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in the folder that a test file's `planned` made, without tracking."""
    monkeypatch.chdir(planned)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    return planned
