"""What names users or tells of their jobs is for the owner of a controller's folder alone, whoever made the folder."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.steering.journal import JOURNAL, KEY, Journal
from pipeline.steering.ledger import LEDGER, LOCK, Ledger, lock_folder


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    return found | {"": stat.S_IMODE(folder.stat().st_mode)}


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_and_its_files_are_the_owners_also_where_the_folder_was_there(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "steering"
    if there:
        folder.mkdir(mode=0o755)
    with lock_folder(folder):
        journal = Journal(folder, most_bytes=1)
        journal.add("tick", 0.0)
        journal.keep()  # and a new file is begun
        journal.close()
        Ledger(folder).save()
    files = (JOURNAL, "journal.000001.jsonl", KEY, LEDGER, LOCK)
    assert modes(folder) == {"": 0o700} | dict.fromkeys(files, 0o600)


def test_files_that_others_could_read_are_closed_and_it_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "steering"
    folder.mkdir(mode=0o755)
    for name in (JOURNAL, "journal.000001.jsonl", LEDGER, LOCK, "other.txt"):
        (folder / name).touch(mode=0o644)
    (folder / LEDGER).write_text('{"jobs": {}}')
    with lock_folder(folder):
        Journal(folder).close()
    assert modes(folder) == {
        **{"": 0o700, JOURNAL: 0o600, "journal.000001.jsonl": 0o600, KEY: 0o600, LEDGER: 0o600, LOCK: 0o600},
        "other.txt": 0o644,
    }
    said = capfd.readouterr().err.splitlines()
    assert f"{folder}: others could read it: its mode is now 700" in said
    assert f"{folder / JOURNAL}: others could read it: its mode is now 600" in said
    assert len(said) == 5
