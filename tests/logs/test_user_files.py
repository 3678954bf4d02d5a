"""A user's file is a log of a format, a job table, or refused."""

from pathlib import Path

import pytest
from log_samples import SAMPLES
from swf_lines import line, read

from pipeline.errors import UserError
from pipeline.logs.user_files import distinct, log_format


@pytest.mark.parametrize("format", SAMPLES)
def test_a_log_is_known_by_its_first_lines_whatever_its_name(tmp_path: Path, format: str) -> None:
    for name in ("log.csv", "log.txt", "log"):
        (tmp_path / name).write_text(SAMPLES[format])
        assert log_format(tmp_path / name) == format


def test_a_folder_is_a_log_of_parts(tmp_path: Path) -> None:
    assert log_format(tmp_path) == "google2011"


def test_what_looks_like_no_log_is_a_table_if_its_name_says_so(tmp_path: Path) -> None:
    for name, format in (("a.csv", None), ("a.parquet", None), ("a.csv.gz", None), ("a.swf", "swf")):
        (tmp_path / name).write_text("job,arrival\n")
        assert log_format(tmp_path / name) == format
    (tmp_path / "folder.csv").mkdir()
    assert log_format(tmp_path / "folder.csv") is None
    (tmp_path / "a.txt").write_text("job,arrival\n")
    with pytest.raises(
        UserError, match=r"a.txt: expected a job table \(.csv, .csv.gz, .parquet\) or a log of format s"
    ):
        log_format(tmp_path / "a.txt")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none: "):
        log_format(tmp_path / "none")


def test_jobs_of_one_number_are_numbered_by_arrival_and_counted(tmp_path: Path) -> None:
    trace = read(tmp_path, "; MaxProcs: 8", line(7, submit=5), line(7, submit=2), line(8, submit=9))
    assert distinct(trace).id.tolist() == [1, 2, 3]
    assert distinct(trace).repaired[-1] == ("number of another job: all are numbered in order of arrival, from 1", 1, 0)
    assert distinct(read(tmp_path, line(7), line(8))).id.tolist() == [7, 8]
