"""What tests of stages share."""

from pathlib import Path

import pytest
from commands import command, place

__all__ = ["command", "here", "place"]


@pytest.fixture
def here(planned: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a test file's `planned` made, to be in, without tracking."""
    monkeypatch.chdir(planned)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    return planned
