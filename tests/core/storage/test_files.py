"""Files: parts left by a killed process are removed, but not those of running processes or other files."""

import os
from pathlib import Path

import pytest
from forks import forked

from pipeline.core.config.parsing import read_text
from pipeline.core.storage import discard, write
from pipeline.core.storage.files import _held, check_out, read_json
from pipeline.errors import UserError


def killed(name: str) -> None:
    Path.replace = lambda *_: os._exit(9)  # type: ignore[method-assign, assignment, return-value]
    write(Path(name), b"new, but nobody will read it")


def busy(letter: int) -> None:
    for _ in range(300):
        write(Path("x.txt"), bytes([letter]) * 5000)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def kill_while_writing(name: str) -> str:
    """Leave a part of a file, and return its name."""
    before = set(names(Path()))
    process = forked(killed, name)
    process.join()
    assert process.exitcode == 9
    (left,) = set(names(Path())) - before
    assert left.startswith(f".{name}.")
    assert left.endswith(".part")
    return left


@pytest.mark.parametrize("name", ["x.txt", "[x].txt"])
def test_what_a_killed_process_left_of_a_file_is_swept_by_the_next_write(root: Path, name: str) -> None:
    kill_while_writing(name)
    write(Path(name), b"second")
    assert names(root) == [name]
    assert Path(name).read_bytes() == b"second"


def test_what_was_left_of_another_file_stays(root: Path) -> None:
    left = kill_while_writing("x.txt")
    write(Path("y.txt"), b"second")
    assert names(root) == [left, "y.txt"]


def test_what_another_process_is_writing_stays(root: Path) -> None:
    with _held(Path(".x.txt.1.part")):
        write(Path("x.txt"), b"mine")
        assert names(root) == [".x.txt.1.part", "x.txt"]
    write(Path("x.txt"), b"mine")
    assert names(root) == ["x.txt"]


def test_two_processes_may_write_the_same_file(root: Path) -> None:
    writers = [forked(busy, letter) for letter in (65, 66)]
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert names(root) == ["x.txt"]
    assert Path("x.txt").read_bytes() in (b"A" * 5000, b"B" * 5000)


def test_old_results_are_discarded_files_and_folders_alike(root: Path) -> None:
    write(Path("model/policy.json"), b"{}")
    write(Path("model/policy.safetensors"), b"")
    write(Path("curve.csv"), b"")
    write(Path("kept.csv"), b"")
    discard(Path("model"), Path("curve.csv"), Path("nowhere"))
    assert names(root) == ["kept.csv"]


def test_a_link_is_discarded_and_not_what_it_points_to(root: Path) -> None:
    write(Path("real/file.txt"), b"")
    Path("link").symlink_to("real")
    discard(Path("link"))
    assert names(root) == ["real"]
    assert names(root / "real") == ["file.txt"]


def test_what_cannot_be_discarded_is_said_in_one_line(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path, missing_ok: bool) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", denied)
    with pytest.raises(UserError, match=r"^x\.csv: cannot be replaced \(Permission denied\)$"):
        discard(Path("x.csv"))


def test_a_text_is_read_no_further_than_it_may_be_long(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes("ab\r\nü".encode())
    assert read_text(tmp_path / "x", 4) == read_text(tmp_path / "x") == "ab\nü"
    with pytest.raises(UserError, match="x: expected at most 3 characters"):
        read_text(tmp_path / "x", 3)
    with pytest.raises(UserError, match="/dev/zero: expected at most 10 characters"):
        read_text(Path("/dev/zero"), 10)


def test_json_that_is_nested_without_end_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "chosen.json"
    path.write_text("[" * 200_000)
    with pytest.raises(UserError, match=f"{path}: not JSON"):
        read_json(path)


def test_nothing_is_written_over_what_is_read_or_under_a_name_of_another_kind(root: Path) -> None:
    (root / "jobs.csv").write_text("job\n")
    (root / "again.csv").symlink_to("jobs.csv")
    for out in ("jobs.csv", "again.csv", "./jobs.csv"):
        with pytest.raises(UserError, match=r"csv: the jobs are read from it: name another file for the table$"):
            check_out(Path(out), inputs=[Path("jobs.csv")], what="table")
    check_out(Path("other.csv"), inputs=[Path("jobs.csv")])
    with pytest.raises(UserError, match=r"^params.yaml: expected a name that ends in .json$"):
        check_out(Path("params.yaml"), [".json"])
    with pytest.raises(UserError, match=r"^x.png: expected a name that ends in .csv, .csv.gz or .parquet$"):
        check_out(Path("x.png"))
