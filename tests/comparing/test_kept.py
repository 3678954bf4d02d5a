"""A picture that lies there is taken where it would be drawn again the same, and nowhere else."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from pipeline.comparing import plots
from pipeline.comparing.kept import origin_of, picture, texts

CURVE = pd.DataFrame({"update": [0, 25], "metric": ["validation", "validation"], "value": [6.0, 4.0]})
LEVELS = {"sjf": 5.0}
DRAWN: list[str] = []


def draw(curve: pd.DataFrame, levels: dict[str, float], title: str) -> Figure:
    DRAWN.append(title)
    return plots.learning_curve({"net": curve}, levels, title, "validation")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the picture of CURVE lies."""
    place = tmp_path / "learning.png"
    place.write_bytes(picture(place, draw, CURVE, LEVELS, "net"))
    DRAWN.clear()
    return place


def test_the_same_is_not_drawn_again(place: Path) -> None:
    assert picture(place, draw, CURVE.copy(), dict(LEVELS), "net") == place.read_bytes()
    assert DRAWN == []
    assert picture(place.with_name("none.png"), draw, CURVE, LEVELS, "net") == place.read_bytes()
    assert DRAWN == ["net"]


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


def test_another_table_is_drawn(place: Path) -> None:
    assert picture(place, draw, CURVE.assign(value=[6.0, 3.0]), LEVELS, "net") != place.read_bytes()
    assert DRAWN == ["net"]


@pytest.mark.parametrize("at", [0, 120, -20])
def test_what_is_damaged_is_drawn_again(place: Path, at: int) -> None:
    whole = place.read_bytes()
    spoilt = bytearray(whole)
    spoilt[at if at else len(whole) // 2] ^= 1
    place.write_bytes(spoilt)
    assert picture(place, draw, CURVE, LEVELS, "net") == whole
    place.write_bytes(whole[: len(whole) // 2])
    assert picture(place, draw, CURVE, LEVELS, "net") == whole
    place.write_bytes(b"")
    assert picture(place, draw, CURVE, LEVELS, "net") == whole
    assert DRAWN == ["net"] * 3


def test_it_says_what_it_was_drawn_from_and_nothing_else(place: Path) -> None:
    (text,) = texts(place.read_bytes())
    assert text == f"drawn from\0{origin_of(draw, CURVE, LEVELS, 'net')}".encode()


def test_what_has_no_digest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="got set"):
        picture(tmp_path / "p.png", draw, {"net"})
