"""The unit that systemd reads is one, and names what there is."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from builders import REPOSITORY

from pipeline.cli import app

UNIT = REPOSITORY / "docs" / "operate" / "steer-slurm.service"


def options() -> set[str]:
    group = typer.main.get_command(app).commands["steer"]  # type: ignore[attr-defined]
    return {name for option in group.commands["slurm"].params for name in option.opts if name.startswith("--")}


def test_the_unit_calls_the_command_with_options_that_there_are() -> None:
    (line,) = [line for line in UNIT.read_text().splitlines() if line.startswith("ExecStart=")]
    words = shlex.split(line.removeprefix("ExecStart="))
    assert words[1:5] == ["-m", "pipeline", "steer", "slurm"]
    assert {word for word in words if word.startswith("--")} <= options()
    assert "KillMode=process" in UNIT.read_text()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    here = tmp_path / UNIT.name
    here.write_text(UNIT.read_text().replace("/opt/deeprm/.venv/bin/python", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", str(here)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
