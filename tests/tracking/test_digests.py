"""dvc.lock is read whole, also while DVC writes it."""

import fcntl
import threading
import time
from pathlib import Path

import pytest

from pipeline.tracking import digests

WHOLE = b"schema: '2.0'\nstages:\n  log:\n    cmd: log\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dvc.lock").write_bytes(WHOLE)
    return tmp_path


def test_a_lock_that_dvc_is_writing_is_waited_for(folder: Path) -> None:
    (folder / ".dvc" / "tmp").mkdir(parents=True)
    cut, lock = threading.Event(), folder / "dvc.lock"

    def write() -> None:
        with (folder / digests.HELD).open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            lock.write_bytes(WHOLE[:20])
            cut.set()
            time.sleep(0.3)
            lock.write_bytes(WHOLE)

    writer = threading.Thread(target=write)
    writer.start()
    cut.wait()
    found = digests.read_lock()
    writer.join()
    assert found == WHOLE


def test_dvc_waits_while_the_lock_is_read(folder: Path) -> None:
    (folder / ".dvc" / "tmp").mkdir(parents=True)
    digests.HELD.touch()
    with digests.HELD.open("r+") as held:
        with digests.dvc_waits(), pytest.raises(BlockingIOError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_whoever_holds_it_for_ever_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "LONGEST_WAIT_S", 0.2)
    (folder / ".dvc" / "tmp").mkdir(parents=True)
    with digests.HELD.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert digests.read_lock() == WHOLE


def test_where_dvc_never_worked_there_is_nothing_to_wait_for(folder: Path) -> None:
    assert digests.read_lock() == WHOLE


def test_the_md5_of_a_folder_does_not_depend_on_the_order_of_its_files() -> None:
    assert digests.digest_of_files({"b": "1", "a": "2"}) == digests.digest_of_files({"a": "2", "b": "1"})
