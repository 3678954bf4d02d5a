"""What a farm leaves for the next one."""

import subprocess
import sys
from pathlib import Path

import pytest
from builders import REPOSITORY

from pipeline.errors import UserError
from pipeline.farming import notes
from pipeline.farming.notes import Notes, cut, exclusive, keep

LOCK = b"schema: '2.0'\nstages:\n  draw:\n    cmd: draw\n  learn:\n    cmd: learn\n    outs:\n    - path: model\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / notes.FOLDER).mkdir(parents=True)
    (tmp_path / "dvc.yaml").touch()
    return tmp_path


def test_notes_are_read_as_they_were_written_and_damaged_ones_are_none() -> None:
    Notes(seconds={"draw": 2.5}, order=["draw"]).write()
    assert Notes.read() == Notes(seconds={"draw": 2.5}, order=["draw"])
    (notes.FOLDER / "notes.json").write_text("{")
    assert Notes.read() == Notes()


def test_a_lock_that_was_cut_anywhere_is_put_back_and_a_whole_one_stays() -> None:
    assert cut(LOCK[:40]) is None  # nothing was kept
    keep(LOCK)
    assert cut(LOCK) is None
    assert cut(LOCK + b"  judge:\n    cmd: judge\n") is None
    lines = [LOCK[: at + 1] for at, byte in enumerate(LOCK) if byte == ord("\n")]
    before_learn = [part for part in lines if b"learn:" not in part]
    assert len(before_learn) == 4
    assert [cut(part) for part in before_learn] == [LOCK] * 4
    assert [cut(LOCK[:at]) for at in range(len(LOCK)) if LOCK[at - 1 : at] != b"\n"] == [LOCK] * (len(LOCK) - 7)


def test_another_farm_is_refused_while_one_lives_and_not_behind_it(folder: Path) -> None:
    code = "import time; from pipeline.farming import notes\n"
    code += "with notes.exclusive(): print('mine', flush=True); time.sleep(60)"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, env={"PYTHONPATH": str(REPOSITORY)}, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "mine\n"
        with pytest.raises(UserError, match=rf"another one is at work here \(process {other.pid}\)"), exclusive():
            pass
        other.kill()
        other.wait()
    with exclusive() as held:
        assert not held.closed
