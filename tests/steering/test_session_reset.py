"""`--reset --held-in` lets all go that is held in a partition, whatever the ledger says."""

import subprocess
from pathlib import Path

import pytest
from faulty_slurm import FaultySlurm

from pipeline.errors import UserError
from pipeline.steering.session import take_back

LOST = (
    '{"jobs": {}, "held": {"2": {"submitted": 1795446088.0, "hold": ""}, "3": {"submitted": 1795446088.0, "hold": ""}}}'
)


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> FaultySlurm:
    found = FaultySlurm({2: "JobHeldUser", 3: "JobHeldAdmin", 4: "JobHeldUser"}, {2: "held", 3: "held", 4: "work"})
    monkeypatch.setattr(subprocess, "run", found.run)
    return found


@pytest.mark.parametrize("ledger", [LOST, "{", None])
def test_all_that_is_held_in_a_partition_is_let_go_and_nothing_else(
    slurm: FaultySlurm, tmp_path: Path, ledger: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the ledger takes holds for somebody else's, cannot be read, or is gone with its folder."""
    folder = tmp_path / "steering"
    if ledger is not None:
        folder.mkdir()
        (folder / "set.json").write_text(ledger)
    take_back(folder, ("held",))
    assert slurm.holds == {2: "", 3: "", 4: "JobHeldUser"}
    assert "steer: 2 held jobs let go" in capsys.readouterr().err.splitlines()
    take_back(folder, ("held",))
    assert f"steer: {folder}: no changes to take back and no job held" in capsys.readouterr().err


def test_without_a_partition_holds_of_others_stay(slurm: FaultySlurm, tmp_path: Path) -> None:
    (tmp_path / "set.json").write_text(LOST)
    take_back(tmp_path)
    assert slurm.holds[2] == "JobHeldUser"


def test_what_an_earlier_version_took_for_let_go_is_let_go_now(slurm: FaultySlurm, tmp_path: Path) -> None:
    entry = '{"submitted": 1795446088.0, "hold": "JobHeldUser", "let_go": 1795446090.0}'
    (tmp_path / "set.json").write_text(f'{{"jobs": {{}}, "held_in": ["held"], "held": {{"2": {entry}}}}}')
    take_back(tmp_path)
    assert slurm.holds[2] == ""


def test_a_partition_that_there_is_not_is_refused_and_nothing_is_touched(slurm: FaultySlurm, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--held-in: unknown partition 'hold': there are held, work"):
        take_back(tmp_path, ("hold",))
    assert set(slurm.holds.values()) == {"JobHeldUser", "JobHeldAdmin"}
