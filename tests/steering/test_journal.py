"""The journal: whole lines, on the disk, in order, in files that do not grow for ever."""

from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.steering.journal import Journal, files, rows


def test_rows_come_back_in_order_over_files_and_the_oldest_are_removed(tmp_path: Path) -> None:
    journal = Journal(tmp_path, most_bytes=100, most_files=3)
    for k in range(20):
        journal.add("tick", float(k), note="x" * 30)
        journal.keep()
    journal.close()
    found = [row["time"] for row in rows(tmp_path)]
    assert found == list(map(float, range(20)))[-len(found) :]
    assert 0 < len(found) < 20
    assert len(files(tmp_path)) == 4


def test_a_line_that_was_cut_is_skipped_and_the_next_is_whole(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_bytes(b'{"kind":"tick","time":1}\n{"kind":"ti')
    journal = Journal(tmp_path)
    journal.add("end", 2.0)
    journal.close()
    assert [row["kind"] for row in rows(tmp_path)] == ["tick", "end"]


def test_users_are_told_apart_and_not_named(tmp_path: Path) -> None:
    one = Journal(tmp_path / ".")
    ann, bob = one.pseudonym("ann"), one.pseudonym("bob")
    assert (ann, bob) == (Journal(tmp_path).pseudonym("ann"), Journal(tmp_path).pseudonym("bob"))
    assert ann != bob
    assert "ann" not in ann
    assert (tmp_path / "users.key").stat().st_mode & 0o777 == 0o600


def test_without_a_journal_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"journal.jsonl: not found; expected the --folder of a controller"):
        list(rows(tmp_path))
