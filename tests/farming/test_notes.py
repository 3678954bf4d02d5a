"""What a farm leaves for the next one."""

import subprocess
import sys
from pathlib import Path

import pytest
from builders import REPOSITORY

from pipeline.errors import UserError
from pipeline.farming import notes
from pipeline.farming.notes import exclusive, is_truncated

LOCK = b"schema: '2.0'\nstages:\n  draw:\n    cmd: draw\n  learn:\n    cmd: learn\n    outs:\n    - path: model\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / notes.FOLDER).mkdir(parents=True)
    (tmp_path / "dvc.yaml").touch()
    return tmp_path


def test_durations_are_read_as_they_were_written_and_damaged_ones_are_none() -> None:
    notes.note({"draw": 2.5})
    assert notes.seconds() == {"draw": 2.5}
    for damaged in ("{", "[]", '{"draw": "long"}'):
        notes.SECONDS.write_text(damaged)
        assert notes.seconds() == {}


def test_a_lock_that_was_cut_anywhere_is_known_and_a_whole_one_stays() -> None:
    assert not is_truncated(LOCK, LOCK)
    assert not is_truncated(LOCK + b"  judge:\n    cmd: judge\n", LOCK)
    lines = [LOCK[: at + 1] for at, byte in enumerate(LOCK) if byte == ord("\n")]
    before_learn = [part for part in lines if b"learn:" not in part]
    assert len(before_learn) == 4
    assert all(is_truncated(part, LOCK) for part in before_learn)
    assert all(is_truncated(LOCK[:at], LOCK) for at in range(len(LOCK)) if LOCK[at - 1 : at] != b"\n")


def test_a_cut_lock_is_put_back_as_it_was_when_a_stage_ended_or_the_farm_began(folder: Path) -> None:
    lock = folder / "dvc.lock"
    lock.write_bytes(LOCK)
    notes.begin()
    lock.write_bytes(LOCK[:40])
    notes.repair()
    assert lock.read_bytes() == LOCK
    more = LOCK + b"  judge:\n    cmd: judge\n"
    lock.write_bytes(more)
    notes.keep()
    notes.begin()  # another farm, while the first has not ended
    lock.write_bytes(LOCK)
    notes.repair()
    assert lock.read_bytes() == more
    notes.end(["judge", "draw", "learn"])
    assert lock.read_bytes() == more  # those that were there keep their place
    assert not notes.unfinished()


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
        assert held >= notes.FIRST_FREE
