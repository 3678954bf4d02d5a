"""Slurm's fields are read as its manual describes; values in another locale's format are refused."""

import math
import re

import numpy as np
import pandas as pd
import pytest

from pipeline.accounting.fields import Unread, gres, limit, memory, moment, read_each, span, tres


def test_moments_are_seconds_since_1970() -> None:
    assert moment("1970-01-02T00:00:01") == 86401
    assert moment("1767225600") == moment("2026-01-01T00:00:00")
    assert all(math.isnan(moment(word)) for word in ("Unknown", "None", "", "N/A", "0"))


def test_limits_are_minutes_or_spans() -> None:
    assert limit("90") == limit("01:30:00") == limit("0-01:30:00") == 5400
    assert limit("UNLIMITED") == math.inf
    assert math.isnan(limit("Partition_Limit"))
    assert span("2-00:00:01") == 172801
    assert span("01:30") == 90


def test_memory_is_of_the_job_or_of_each_cpu_or_node() -> None:
    assert memory("16000M") == memory("16000") == (15.625, 0, 0)
    assert memory("1.50T") == (1536, 0, 0)
    assert memory("2097152K") == (2, 0, 0)
    assert memory("2000Mc") == (0, 2000 / 1024, 0)
    assert memory("16Gn") == (0, 0, 16)


def test_resources_are_named_and_gpus_of_a_type_count_once() -> None:
    assert tres("billing=9,cpu=4,mem=2G,node=2") == (4, 2, 0, 2)
    assert tres("cpu=4,gres/gpu:a100=3,gres/gpu:v100=1,gres/gpu=4")[2] == 4
    assert tres("cpu=4,gres/gpu:a100=3,gres/gpu:v100=1")[2] == 4
    assert all(map(math.isnan, tres("")))


@pytest.mark.parametrize(
    ("read", "word"),
    [
        ("moment", "01.03.2026 08:00:00"),
        ("moment", "2026-13-01T08:00:00"),
        ("moment", "2026-03-01T08:00:00.5"),
        ("count", "1.024"),
        ("count", "1,024"),
        ("count", "-1"),
        ("count", "٣"),
        ("limit", "1,5"),
        ("memory", "4,5G"),
        ("memory", "4 GB"),
        ("tres", "cpu=4,mem=4,5G"),
        ("tres", "cpu=1K"),
    ],
)
def test_other_words_are_refused(read: str, word: str) -> None:
    unread = Unread()
    assert np.isnan(read_each(pd.Series([word], index=[3], name="Field"), read, unread)).all()
    assert unread.lines == {3}
    assert re.match(f"expected .* as Field, found '{re.escape(word)}'$", unread.why)


def test_the_first_wrong_line_is_named() -> None:
    texts = pd.Series(["1", "x", "2", "x"], index=[4, 7, 8, 9], name="NNodes")
    unread = Unread()
    assert read_each(texts, "count", unread)[[0, 2]].tolist() == [1, 2]
    assert (unread.first, unread.lines) == (7, {7, 9})
    assert unread.why == "expected a whole number (sacct --noconvert) as NNodes, found 'x'"


def test_moments_within_a_day_of_zero_are_unknown() -> None:
    words = ("1970-01-01T00:00:00", "1969-12-31T18:00:00", "1970-01-01T14:00:00", "3600")
    assert all(math.isnan(moment(word)) for word in words)


def test_days_are_followed_by_hours() -> None:
    assert limit("1-00:00:00") == limit("1-00:00") == limit("1-0") == limit("1440") == 86400
    assert limit("2-03:04") == 2 * 86400 + 3 * 3600 + 4 * 60
    assert limit("30") == 1800
    assert span("00:00:01.500") == 1


def test_memory_with_slurms_flag_is_of_each_cpu() -> None:
    for flag in (2**31, 2**63):
        assert memory(f"{flag + 3000}Mn") == memory(f"{flag + 3000}M") == (0, 3000 / 1024, 0)
    assert memory("2097155Gn") == (0, 3, 0)  # 2^31 MiB and 3 GiB
    assert tres(f"cpu=8,mem={2**31 + 3000}M,node=1")[1] == 8 * 3000 / 1024
    assert memory("2048T") == (0, 0, 0)
    assert memory("0.5P") == (2**19, 0, 0)
    assert math.isnan(memory("16?")[0])
    assert math.isnan(memory("?")[0])


def test_gpus_are_counted_once_however_they_are_written() -> None:
    assert [gres(text) for text in ("gpu", "gpu:2", "gres:gpu:2", "gpu:1080:2", "gpu:tesla:2(IDX:0-1)")] == [
        1,
        2,
        2,
        2,
        2,
    ]
    assert gres("gpu:a100:2(IDX:0,3),gpu:v100:1") == 3
    assert tres("cpu=1,gres/gpu=2,gres/gpu:a100=2")[2] == 2
    assert tres("cpu=1,gres/gpu:a100=2,gres/gpumem=80G")[2] == 2
    assert tres("cpu=1,gres:gpu:2")[2] == 2
    assert gres("mic:1") == 0
    with pytest.raises(ValueError, match="gpu"):
        tres("cpu=1,gres/gpu=many")
