"""Without Slurm, the error is one line, and no folder is left."""

from pathlib import Path

import pytest

from pipeline.core.config import Params
from pipeline.errors import UserError
from pipeline.stages import serve
from pipeline.steering.settings import Mode, Settings
from pipeline.steering.slurm import Slurm, confirmed_jobs

LOST = """scontrol: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host
scontrol: error: fetch_config: DNS SRV lookup failed
scontrol: fatal: Could not establish a configuration source"""


@pytest.fixture
def lost(tmp_path: Path) -> Path:
    """A scontrol on a machine that belongs to no Slurm cluster."""
    command = tmp_path / "bin" / "scontrol"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\ncat >&2 <<END\n{LOST}\nEND\nexit 1\n")
    command.chmod(0o755)
    return command.parent


def test_a_machine_of_no_slurm_is_told_in_one_line(lost: Path) -> None:
    with pytest.raises(
        UserError, match=r"^scontrol: no Slurm cluster is known here: no slurm\.conf, and none was found by DNS$"
    ):
        Slurm({"PATH": f"{lost}:/usr/bin:/bin"}).check_multifactor()


def test_where_there_is_nothing_to_steer_no_folder_is_left(
    lost: Path, params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{lost}:/usr/bin:/bin")
    with pytest.raises(UserError, match="no Slurm cluster is known here"):
        serve.steer(params, "machines", "sjf", 200.0, Settings(Mode.OBSERVE, tmp_path / "steering"))
    assert not (tmp_path / "steering").exists()


def told_by(folder: Path, script: str) -> Slurm:
    """A Slurm cluster whose scontrol is a line of shell."""
    (folder / "scontrol").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "scontrol").chmod(0o755)
    return Slurm({"PATH": f"{folder}:/usr/bin:/bin", "SLURM_CONF": "/etc/wrong.conf"})


def test_what_scontrol_says_of_a_wrong_slurm_conf_is_passed_on(tmp_path: Path) -> None:
    said = "scontrol: error: _establish_config_source: failed to fetch config from ctl9\nscontrol: fatal: No source"
    slurm = told_by(tmp_path, f"echo '{said}' >&2; exit 1")
    with pytest.raises(UserError, match=r"failed to fetch config from ctl9 .*fatal: No source"):
        slurm.check_multifactor()


def test_what_a_command_said_before_its_time_was_over_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.steering.slurm.PATIENCE_S", 0.5)
    slurm = told_by(tmp_path, "echo 'scontrol: error: cannot stat file /etc/wrong.conf, retrying' >&2; exec sleep 60")
    with pytest.raises(UserError, match=r"no answer within 0.5 s: scontrol: error: cannot stat file /etc/wrong.conf"):
        slurm.check_multifactor()


def test_a_scontrol_that_fails_without_a_word_is_no_success(tmp_path: Path) -> None:
    assert told_by(tmp_path, "cat >/dev/null; exit 3").set({1: 5}) == "ended with 3"


@pytest.mark.parametrize(
    ("complaint", "done"),
    [
        ("", {7, 8}),
        ("Invalid job id specified for job 7\nslurm_suspend error: Invalid job id specified\n", {8}),
        ("Job has already finished for job 8_2\n", {7}),
        ("Invalid job id specified for job 7\nslurm_update error: Unable to contact\n", set()),
        ("ended with 1", set()),
    ],
)
def test_a_complaint_confirms_only_what_it_leaves_no_doubt_of(complaint: str, done: set[int]) -> None:
    assert confirmed_jobs([7, 8], complaint) == done
