"""Where no Slurm is, that is one line, and no folder is left."""

from pathlib import Path

import pytest

from pipeline.config import Params
from pipeline.errors import UserError
from pipeline.stages import steer
from pipeline.steering.asking import Slurm
from pipeline.steering.settings import Mode, Settings

LOST = """scontrol: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host
scontrol: error: fetch_config: DNS SRV lookup failed
scontrol: fatal: Could not establish a configuration source"""


@pytest.fixture
def lost(tmp_path: Path) -> Path:
    """A scontrol on a machine that belongs to no Slurm."""
    command = tmp_path / "bin" / "scontrol"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\ncat >&2 <<END\n{LOST}\nEND\nexit 1\n")
    command.chmod(0o755)
    return command.parent


def test_a_machine_of_no_slurm_is_told_in_one_line(lost: Path) -> None:
    with pytest.raises(
        UserError, match=r"^scontrol: no Slurm is known here: no slurm\.conf, and none was found by DNS$"
    ):
        Slurm({"PATH": f"{lost}:/usr/bin:/bin"}).must_weigh()


def test_where_there_is_nothing_to_steer_no_folder_is_left(
    lost: Path, params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{lost}:/usr/bin:/bin")
    with pytest.raises(UserError, match="no Slurm is known here"):
        steer.run(params, "machines", "sjf", 200.0, Settings(Mode.OBSERVE, tmp_path / "steering"))
    assert not (tmp_path / "steering").exists()
