"""Figures hold what the table says, legibly, and are the same bytes each time."""

from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from readable import faults

from pipeline.comparing.plots import (
    LABEL_GAP,
    bars,
    canvas,
    learning_curve,
    lines_by_load,
    looks,
    png,
    slowdown_by_load,
    spread,
)

HEURISTICS = {"sjf": 4.4, "tetris": 4.39, "packer": 4.41}


def summary(means: dict[str, list[float]], loads: list[int]) -> pd.DataFrame:
    rows = [(name, load, mean) for name, of in means.items() for load, mean in zip(loads, of, strict=True)]
    frame = pd.DataFrame(rows, columns=["policy", "load", "slowdown"])
    return frame.assign(slowdown_low=0.9 * frame["slowdown"], slowdown_high=1.2 * frame["slowdown"])


def curve(metric: str = "validation_slowdown") -> pd.DataFrame:
    values = {"update": [0, 25, 25], "metric": [metric, metric, "return"], "value": [6.0, 4.0, -80.0]}
    return pd.DataFrame(values)


def only_axes(figure: Figure) -> Axes:
    (axes,) = figure.axes
    return axes


def x_of(line: Line2D) -> list[float]:
    return [float(x) for x in np.asarray(line.get_xdata())]


def y_of(line: Line2D) -> list[float]:
    return [float(y) for y in np.asarray(line.get_ydata())]


def names_beside(axes: Axes) -> list[Text]:
    return list(axes.texts)


def overlapping(texts: list[Text]) -> list[tuple[str, str]]:
    pairs = combinations(texts, 2)
    boxes = ((one, one.get_window_extent(), two, two.get_window_extent()) for one, two in pairs)
    return [(one.get_text(), two.get_text()) for one, box, two, other in boxes if box.overlaps(other)]


def test_each_policy_is_a_line_through_its_means() -> None:
    axes = only_axes(slowdown_by_load(summary({"sjf": [1.5, 3], "net": [1.25, 2]}, [10, 110]), "online", {"net"}))
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert x_of(lines["sjf"]) == [10, 110]
    assert y_of(lines["sjf"]) == [1.5, 3.0]
    assert y_of(lines["net"]) == [1.25, 2.0]
    *bands, ties = axes.collections
    assert len(bands) == 2
    assert len(np.asarray(ties.get_paths())) == 2  # from each name to the end of its line
    assert [name.get_text() for name in names_beside(axes)] == ["net", "sjf"]


def test_learned_policies_are_drawn_thicker_and_above() -> None:
    axes = only_axes(slowdown_by_load(summary({"net": [1, 2], "sjf": [1, 2]}, [10, 110]), "online", {"net"}))
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert lines["net"].get_linewidth() > 2 * lines["sjf"].get_linewidth()
    assert lines["net"].get_zorder() > lines["sjf"].get_zorder()


def test_at_most_five_policies_are_drawn_and_can_be_distinguished_in_grey() -> None:
    means = {f"policy{k}": [1.0, 9.0 - k] for k in range(6)} | {f"net{k}": [1.0, 10.0 + k] for k in range(4)}
    figure = slowdown_by_load(summary(means, [10, 110]), "online", {f"net{k}" for k in range(4)})
    axes, named = only_axes(figure), ["net0", "net1", "net2", "policy5", "policy4"]
    assert [line.get_label() for line in axes.get_lines()] == named
    assert {text.get_text() for text in names_beside(axes)} == set(named)
    assert list(faults(figure)) == []
    assert axes.get_title(loc="left") == "online\n5 of 10 policies: best learned, best others"
    assert axes.get_ylabel() == "Mean slowdown (ratio; band: its interval)"


@pytest.mark.parametrize(("highest", "scale"), [(4.9, "linear"), (5.1, "log")])
def test_a_wide_spread_is_drawn_on_a_logarithmic_axis(highest: float, scale: str) -> None:
    axes = only_axes(slowdown_by_load(summary({"sjf": [1, highest]}, [10, 110]), "online"))
    assert axes.get_yscale() == scale


def test_only_major_ticks_of_a_logarithmic_axis_have_numbers() -> None:
    axes = only_axes(slowdown_by_load(summary({"sjf": [1, 5.1]}, [10, 110]), "online"))
    assert {text.get_text() for text in axes.get_yticklabels(minor=True)} <= {""}
    assert "5" in [text.get_text() for text in axes.get_yticklabels()]


def test_names_of_close_lines_do_not_overlap() -> None:
    means = {f"policy{k}": [1.0, 20.0 if k == 0 else 4 + k / 100] for k in range(12)}
    figure, axes = canvas("online")
    lines_by_load(axes, summary(means, [10, 110]), "slowdown", "Mean slowdown (ratio)", looks(means, []))
    png(figure)
    names = names_beside(axes)
    assert len(names) == 12
    assert overlapping(names) == []
    assert next(faults(figure)).startswith("12 lines: policy0, policy1, ")


def test_one_load_is_drawn_as_bars_best_on_top() -> None:
    table = summary({"sjf": [3], "lpt": [5], "net": [2]}, [100])
    figure = slowdown_by_load(table, "offline", {"net"})
    assert png(figure) == png(bars(table, "offline", looks(table["policy"].unique(), {"net"})))
    assert list(faults(figure)) == []
    axes = only_axes(figure)
    assert [bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)] == [5, 3, 2]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["lpt", "sjf", "net"]
    assert [text.get_text() for text in axes.texts] == ["5.00", "3.00", "2.00"]
    (whiskers,) = axes.collections
    spans = [np.asarray(path.vertices)[:, 0] for path in whiskers.get_paths()]
    np.testing.assert_allclose(spans, [[4.5, 6.0], [2.7, 3.6], [1.8, 2.4]])


def test_a_learning_curve_shows_validation_and_the_heuristics() -> None:
    figure = learning_curve({"net": curve()}, HEURISTICS, "net")
    axes = only_axes(figure)
    drawn, *levels = axes.get_lines()
    assert (x_of(drawn), y_of(drawn)) == ([0, 25], [6.0, 4.0])
    assert [y_of(line) for line in levels] == [[4.39] * 2, [4.4] * 2, [4.41] * 2]
    assert list(faults(figure)) == []
    png(figure)
    assert sorted(name.get_text() for name in names_beside(axes)) == ["packer", "sjf", "tetris"]
    assert overlapping(names_beside(axes)) == []


def test_levels_that_would_be_too_many_lines_are_those_of_the_best_heuristics() -> None:
    figure = learning_curve({name: curve() for name in ("net", "a", "b")}, HEURISTICS, "three")
    assert [line.get_label() for line in only_axes(figure).get_lines()] == ["net", "a", "b", "tetris", "sjf"]
    assert list(faults(figure)) == []


def test_a_curve_without_the_metric_is_refused() -> None:
    with pytest.raises(ValueError, match="the curve of 'net' has no metric 'validation_slowdown'"):
        learning_curve({"net": curve("loss")}, HEURISTICS, "net")


def test_a_figure_is_the_same_bytes_each_time() -> None:
    frame = summary({"sjf": [1.5, 3], "net": [1.25, 2]}, [10, 110])
    one, again = (png(slowdown_by_load(frame, "online", {"net"})) for _ in range(2))
    assert one == again
    assert one.startswith(b"\x89PNG")
    assert b"tEXt" not in one  # metadata: a date or a version would change the bytes


@given(st.lists(st.floats(0, 1), min_size=1, max_size=15).map(sorted))
def test_spread_places_are_apart_and_inside(places: list[float]) -> None:
    moved = spread(places, LABEL_GAP)
    assert all(high - low > LABEL_GAP - 1e-9 for low, high in pairwise(moved))
    assert moved[0] > -1e-9
    assert moved[-1] < 1 + 1e-9


@pytest.mark.parametrize("hatches", [("", "///"), ("///", "///")], ids=["readable", "only by colour"])
@pytest.mark.parametrize("kind", ["bars", "list", "areas", "boxes"])
def test_the_check_of_figures_wants_a_hatch_for_each_name(kind: str, hatches: tuple[str, str]) -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.set(title="drawn", xlabel="load (%)", ylabel="wait (days)")
    figure.suptitle("drawn")
    for at, hatch in enumerate(hatches):
        if kind == "bars":
            axes.bar([at], [1], color=f"C{at}", hatch=hatch, label=f"policy {at}")
        elif kind == "list":
            axes.bar([at], [1], color=[f"C{at}"], hatch=[hatch], label=[f"policy {at}"])
        elif kind == "areas":
            axes.fill_between([at, at + 1], [0, 0], [1, 1], color=f"C{at}", hatch=hatch, label=f"policy {at}")
        else:
            box = axes.boxplot([[1, 2, 3]], positions=[at], patch_artist=True)["boxes"][0]
            box.set(facecolor=f"C{at}", hatch=hatch)
    assert len([fault for fault in faults(figure) if "hatch" in fault or "only in colour" in fault]) == (
        hatches[0] != ""
    )
