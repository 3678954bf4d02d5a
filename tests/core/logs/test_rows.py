"""Errors in a log: one line that says where; the same for all formats with commas."""

import gzip
from itertools import islice
from pathlib import Path

import pytest
from log_samples import HEADER, SAMPLES, TASK

from pipeline.core.logs.registry import FORMATS, guess, read
from pipeline.core.logs.rows import Layout, rows
from pipeline.core.logs.task_rows import CLOUDSIMPY, TASK_LOGS
from pipeline.errors import UserError

ALIBABA2018, OF_CLOUDSIMPY = TASK_LOGS["alibaba2018"], TASK_LOGS["cloudsimpy"]


def written(folder: Path, text: str | bytes, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal(path: Path, format: str) -> str:
    with pytest.raises(UserError) as caught:
        FORMATS[format].read(path)
    said = str(caught.value)
    assert "\n" not in said
    return said.removeprefix(str(path))


# Every format


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_is_read_and_told_from_the_others(tmp_path: Path, format: str) -> None:
    path = written(tmp_path, SAMPLES[format])
    trace = read(path)
    assert guess(path) == format
    assert (len(trace.id), trace.rows, trace.dropped) == (1, 1, ())
    assert trace.demand.shape == (1, len(trace.resources)) == (1, len(trace.units))


@pytest.mark.parametrize("format", FORMATS)
def test_gz_and_plain_give_the_same(tmp_path: Path, format: str) -> None:
    plain = read(written(tmp_path, SAMPLES[format]))
    packed = read(written(tmp_path, gzip.compress(SAMPLES[format].encode()), "log.csv.gz"))
    assert [str(field) for field in plain] == [str(field) for field in packed]


@pytest.mark.parametrize("format", FORMATS)
def test_windows_line_ends_and_a_missing_last_one_change_nothing(tmp_path: Path, format: str) -> None:
    trace = FORMATS[format].read(written(tmp_path, SAMPLES[format].rstrip("\n").replace("\n", "\r\n")))
    assert len(trace.id) == 1


@pytest.mark.parametrize("format", FORMATS)
def test_a_cut_gz_is_refused(tmp_path: Path, format: str) -> None:
    whole = gzip.compress(SAMPLES[format].encode())
    said = refusal(written(tmp_path, whole[: len(whole) // 2], "log.gz"), format)
    assert said.startswith(": its name ends in .gz, but it is not a whole gzip file (")


@pytest.mark.parametrize("format", FORMATS)
def test_a_plain_file_under_a_gz_name_is_refused(tmp_path: Path, format: str) -> None:
    assert "not a whole gzip file" in refusal(written(tmp_path, SAMPLES[format], "log.gz"), format)


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_log_is_refused(tmp_path: Path, format: str) -> None:
    said = refusal(written(tmp_path, ""), format)
    assert said in (": expected jobs, found an empty log", ": expected jobs, found none in it")


@pytest.mark.parametrize("format", FORMATS)
def test_a_log_that_is_not_there_is_refused(tmp_path: Path, format: str) -> None:
    assert refusal(tmp_path / "gone.csv", format) == ": cannot be read (No such file or directory)"


@pytest.mark.parametrize("format", sorted(set(FORMATS) - {"swf"}))
def test_an_archive_is_refused(tmp_path: Path, format: str) -> None:
    said = refusal(written(tmp_path, b"batch_task.csv\0\0\0" + SAMPLES[format].encode()), format)
    assert said == ": expected lines of text, found zero bytes (an archive to unpack, or UTF-16)"


# Rows


def test_text_where_a_number_must_be_is_refused_with_its_line(tmp_path: Path) -> None:
    bad = TASK.replace("110", "soon")
    path = written(tmp_path, f"{TASK}\n{TASK}\n{bad}\n{TASK}\n")
    assert refusal(path, "alibaba2018") == ":3: expected a number as end_time, found 'soon'"


def test_of_many_bad_rows_the_first_is_named_and_the_others_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "\n".join([TASK, TASK.replace("0.5", "much"), TASK.replace("110", "x"), "", TASK + "y"]))
    said = refusal(path, "alibaba2018")
    assert said == ":2: expected a number as plan_mem, found 'much' (and 2 more rows of this part)"


@pytest.mark.parametrize("junk", ["inf", "1e99", "-1e99"])
def test_numbers_beyond_all_sense_are_refused(tmp_path: Path, junk: str) -> None:
    path = written(tmp_path, f"{TASK}\n{TASK.replace('110', junk)}\n")
    assert refusal(path, "alibaba2018").startswith(":2: expected a number below 1e+15 as end_time, found '")


@pytest.mark.parametrize("junk", ["True", "1_000", "0x10", "1 000", "'5'", "nan"])
def test_what_only_looks_like_a_number_is_refused(tmp_path: Path, junk: str) -> None:
    path = written(tmp_path, TASK.replace("110", junk))
    assert refusal(path, "alibaba2018") == f":1: expected a number as end_time, found '{junk}'"


def test_a_row_with_too_few_or_too_many_fields_is_refused(tmp_path: Path) -> None:
    names = "task_name, instance_num, job_name, task_type, status, start_time, end_time, plan_cpu, plan_mem"
    few, many = written(tmp_path, f"{TASK}\nM1,1\n", "few"), written(tmp_path, f"{TASK}\n\n{TASK},9\n", "many")
    assert refusal(few, "alibaba2018") == f":2: expected 9 columns ({names}), found 2"
    assert refusal(many, "alibaba2018") == f":3: expected 9 columns ({names}), found 10"


def test_a_missing_column_is_refused_with_those_there_are(tmp_path: Path) -> None:
    said = refusal(written(tmp_path, "submit_time,duration,cpu,instances_num\n1,2,3,4\n"), "cloudsimpy")
    expected = "submit_time, duration, cpu, memory, instances_num"
    assert said == f":1: expected the columns {expected}, found submit_time, duration, cpu, instances_num"


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    said = refusal(written(tmp_path, "submit_time,duration,cpu,memory,instances_num,cpu\n1,2,3,4,5,6\n"), "cloudsimpy")
    assert said == ":1: expected each column once, found cpu twice"


def test_columns_may_stand_in_any_order_and_others_beside_them(tmp_path: Path) -> None:
    trace = OF_CLOUDSIMPY.read(
        written(tmp_path, "memory,note,instances_num,cpu,duration,submit_time\n0.5,hi,1,2,30,4\n")
    )
    assert (trace.submit_s, trace.run_s, trace.demand.tolist()) == (4, 30, [[2000, 50_000]])


def test_bytes_that_are_no_text_are_refused_with_their_line(tmp_path: Path) -> None:
    path = written(tmp_path, f"{TASK}\n{TASK}\n".encode() + b"M\xff" + TASK.encode())
    assert refusal(path, "alibaba2018") == ":3: expected UTF-8 text, found byte 0xff"


def test_a_byte_order_mark_and_empty_lines_are_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbf" + f"{HEADER}\n\n0,5,10,1,0.1,1,1,1,0\n\n\n1,6,-1,1,0.1,1,1,1,0\n".encode())
    trace = OF_CLOUDSIMPY.read(path)
    assert (trace.id, trace.rows) == (1, 2)
    assert trace.dropped == (("run time below 0", 1, 6),)


def test_lines_are_numbered_on_from_part_to_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "".join(f"{TASK}\n" for _ in range(100)) + TASK.replace("110", "x"))
    monkeypatch.setattr("pipeline.core.logs.rows.CHUNK", 100)
    lines = [frame.index.tolist() for frame in islice(rows(path, ALIBABA2018.layout), 2)]
    assert lines == [[1, 2, 3], [4, 5, 6]]  # a line has 38 bytes: 100 end within the third, which is read whole
    with pytest.raises(UserError, match=r":101: expected a number as end_time, found 'x'$"):
        ALIBABA2018.read(path)


def test_parts_of_any_size_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEADER + "".join(f"\n{k},{k % 7},{k % 5},1,0.1,1,1,1,0" for k in range(50))
    whole = OF_CLOUDSIMPY.read(written(tmp_path, text))
    monkeypatch.setattr("pipeline.core.logs.rows.CHUNK", 1)
    parts = OF_CLOUDSIMPY.read(written(tmp_path, text))
    assert [str(field) for field in whole] == [str(field) for field in parts]


def test_who_listens_hears_how_much_is_read(tmp_path: Path) -> None:
    on_progress = list[tuple[float, str]]()
    path = written(tmp_path, SAMPLES["cloudsimpy"])
    list(rows(path, Layout(CLOUDSIMPY), lambda percent, note: on_progress.append((percent, note))))
    assert on_progress == [(100, "1 rows")]
