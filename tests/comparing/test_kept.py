"""A picture that was drawn before is taken where it would be drawn again the same, and nowhere else."""

import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from pipeline.comparing import plots
from pipeline.comparing.kept import KEPT_S, origin_of, picture, sweep

CURVE = pd.DataFrame({"update": [0, 25], "metric": ["validation", "validation"], "value": [6.0, 4.0]})
LEVELS = {"sjf": 5.0}
DRAWN: list[str] = []


def draw(curve: pd.DataFrame, levels: dict[str, float], title: str) -> Figure:
    DRAWN.append(title)
    return plots.learning_curve({"net": curve}, levels, title, "validation")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the picture of CURVE is kept."""
    picture(tmp_path, draw, CURVE, LEVELS, "net")
    DRAWN.clear()
    return tmp_path


def test_the_same_is_not_drawn_again(folder: Path) -> None:
    kept = picture(folder, draw, CURVE.copy(), dict(LEVELS), "net")
    assert DRAWN == []
    assert kept == plots.png(draw(CURVE, LEVELS, "net"))


@pytest.mark.parametrize(
    ("curve", "levels", "title"),
    [
        (CURVE.assign(value=[6.0, np.nextafter(4.0, 5.0)]), LEVELS, "net"),
        (CURVE.iloc[::-1], LEVELS, "net"),
        (CURVE.rename(columns={"update": "step"}), LEVELS, "net"),
        (CURVE.assign(update=[0.0, 25.0]), LEVELS, "net"),
        (CURVE, {"sjf": 5.5}, "net"),
        (CURVE, {"fcfs": 5.0}, "net"),
        (CURVE, LEVELS, "other"),
    ],
)
def test_anything_else_has_another_origin(curve: pd.DataFrame, levels: dict[str, float], title: str) -> None:
    assert origin_of(draw, curve, levels, title) != origin_of(draw, CURVE, LEVELS, "net")


def test_collections_that_read_alike_are_told_apart() -> None:
    assert origin_of(draw, ["a", "b"], []) != origin_of(draw, ["a"], ["b"])
    assert origin_of(draw, 1) != origin_of(draw, "1")
    assert origin_of(plots.learning_curve, 1) != origin_of(plots.slowdown_by_load, 1)


def test_another_table_is_drawn(folder: Path) -> None:
    assert picture(folder, draw, CURVE.assign(value=[6.0, 3.0]), LEVELS, "net") != picture(
        folder, draw, CURVE, LEVELS, "net"
    )
    assert DRAWN == ["net"]


@pytest.mark.parametrize("at", [0, 120, -20])
def test_what_is_damaged_is_drawn_again(folder: Path, at: int) -> None:
    (place,) = folder.iterdir()
    whole, kept = picture(folder, draw, CURVE, LEVELS, "net"), place.read_bytes()
    spoilt = bytearray(kept)
    spoilt[at] ^= 1
    for content in (bytes(spoilt), kept[: len(kept) // 2], b""):
        place.write_bytes(content)
        assert picture(folder, draw, CURVE, LEVELS, "net") == whole
        assert place.read_bytes() == kept
    assert DRAWN == ["net"] * 3


def test_what_nobody_asks_for_any_more_goes(folder: Path) -> None:
    (place,) = folder.iterdir()
    sweep(folder)
    assert place.exists()
    long_ago = time.time() - KEPT_S - 60
    os.utime(place, (long_ago, long_ago))
    picture(folder, draw, CURVE, LEVELS, "net")  # and then it is asked for
    sweep(folder)
    assert place.exists()
    os.utime(place, (long_ago, long_ago))
    sweep(folder)
    assert not place.exists()


def test_what_has_no_digest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="got set"):
        picture(tmp_path, draw, {"net"})
