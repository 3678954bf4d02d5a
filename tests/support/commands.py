"""Fixtures that run a command within this process, in a folder of its own."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numba
import pytest
from builders import REPOSITORY

from pipeline.cli import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the repository's params.yaml and as many threads as this process already has."""
    threads = numba.config.NUMBA_NUM_THREADS
    text = (REPOSITORY / "params.yaml").read_text()
    (tmp_path / "params.yaml").write_text(re.sub(r"(?m)^threads: \d+", f"threads: {threads}", text))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):  # a command sets these
        monkeypatch.setenv(name, str(threads))
    monkeypatch.delenv("OMP_WAIT_POLICY")
    monkeypatch.delenv("GOMP_SPINCOUNT")
    return tmp_path


@pytest.fixture
def command(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process, and return what the process would: exit code and output."""

    def run(*words: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["pipeline", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return Outcome(code, said.out, said.err)

    return run


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder, by name."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}
