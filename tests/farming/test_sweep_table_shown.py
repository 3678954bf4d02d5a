"""A sweep for people: lines and a picture."""

import pandas as pd
import pytest
from readable import faults

from pipeline.farming import sweep_table
from pipeline.farming.sweep_table import EVERY

COLUMNS = (
    *("agent", "setting", "seed", "measure", "validation", "mean", "best_heuristic"),
    *("difference", "difference_low", "difference_high", "n", "lowest_validation"),
)


@pytest.fixture
def table() -> pd.DataFrame:
    rows = [
        ("deeprm", "rate=1", "1", "slowdown", 2.0, 3.0, 4.0, -0.25, -0.3, -0.2, 20, False),
        ("deeprm", "rate=1", "2", "slowdown", 4.0, 3.5, 4.0, -0.125, -0.15, -0.1, 20, False),
        ("deeprm", "rate=1", EVERY, "slowdown", 3.0, 3.25, 4.0, -0.1875, -0.4, 0.1, 20, True),
        ("deeprm", "rate=2", "1", "slowdown", 5.0, 5.0, 4.0, 0.25, 0.2, 0.3, 20, False),
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_lines_mark_what_validation_says_and_nothing_is_chosen(table: pd.DataFrame) -> None:
    said = list(sweep_table.lines(table))
    assert said[0] == "deeprm: mean slowdown over all loads, n 20; below 0 is better"
    assert said[2].split() == ["rate=1", "1", "2", "3", "-25.0", "%", "(-30.0", "to", "-20.0)"]
    assert said[4].split()[:3] == ["*", "rate=1", "all"]
    assert [line for line in said if line.startswith("*")] == [said[4], said[-1]]
    assert said[-1].endswith("No point is chosen.")


def test_a_picture_is_the_same_bytes_again(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    drawn = sweep_table.picture(table)
    assert drawn.startswith(b"\x89PNG")
    assert sweep_table.picture(table) == drawn
    monkeypatch.setattr(sweep_table.plots, "png", lambda figure: found.extend(faults(figure)))
    sweep_table.picture(table)
    assert found == []
    assert sweep_table.picture(table.assign(difference=table["difference"] + 0.01)) != drawn
