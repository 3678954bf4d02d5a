"""The backlog's figure holds what its table says, and is the same bytes each time."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from readable import faults

from pipeline.comparing.plots import png
from pipeline.core.schemas.tables import STREAM_BACKLOG
from pipeline.problems.pool.comparison import backlog_growth

WAITING = {  # by load and policy: of two jobsets, at steps 0, 50 and 100
    (110, "sjf"): ([0, 10, 20], [0, 20, 40]),
    (110, "net"): ([0, 5, 10], [0, 5, 10]),
    (70, "sjf"): ([0, 1, 2], [0, 3, 2]),
    (70, "net"): ([0, 1, 1], [0, 1, 3]),
}


def table() -> pd.DataFrame:
    rows = [
        (policy, load, jobset, step, waiting, waiting + 2, 1.0, 5.0)
        for (load, policy), jobsets in WAITING.items()
        for jobset, over_time in enumerate(jobsets)
        for step, waiting in zip((0, 50, 100), over_time, strict=True)
    ]
    return STREAM_BACKLOG.validate(pd.DataFrame(rows, columns=list(STREAM_BACKLOG.columns)))


def growth(learned: Sequence[str] = ()) -> Figure:
    return backlog_growth(table(), "backlog", learned, (20, 80))


def drawn(axes: Axes) -> dict[str, list[list[float]]]:
    return {str(one.get_label()): np.asarray(one.get_xydata()).tolist() for one in axes.get_lines()}


def test_each_load_has_a_panel_with_the_mean_backlog_of_each_policy() -> None:
    figure = growth()
    light, heavy = figure.axes
    assert list(faults(figure)) == []
    assert [axes.get_title(loc="left") for axes in (light, heavy)] == ["Load 70 %", "Load 110 %"]
    assert drawn(heavy) == {"sjf": [[0, 0], [50, 15], [100, 30]], "net": [[0, 0], [50, 5], [100, 10]]}
    assert drawn(light) == {"sjf": [[0, 0], [50, 2], [100, 2]], "net": [[0, 0], [50, 1], [100, 2]]}
    assert light.get_ylim()[0] == heavy.get_ylim()[0] == 0


def test_a_learned_policy_is_drawn_thicker_and_all_are_named_beside_each_panel() -> None:
    figure = growth(["net"])
    for axes in figure.axes:
        width = {str(one.get_label()): one.get_linewidth() for one in axes.get_lines()}
        assert width["net"] > width["sjf"]
        assert {text.get_text() for text in axes.texts} == {"sjf", "net"}


def test_the_measured_steps_are_shaded() -> None:
    figure = growth()
    for axes in figure.axes:
        (shade,) = axes.patches
        box = shade.get_path().get_extents(shade.get_patch_transform())
        assert (box.x0, box.x1) == (20, 80)
    assert figure.axes[-1].get_xlabel() == "Time (steps; shaded: measured)"


def test_the_same_table_gives_the_same_bytes() -> None:
    assert png(growth()) == png(growth())
