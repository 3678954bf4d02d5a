"""A controller's figures hold what the tables say, and are the same bytes each time."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from readable import faults

from pipeline.comparing.plots import GREY, png
from pipeline.problems.groups.plots import calibration, delay_by_load, shares_over_time


def intervals(shares: dict[str, list[list[float]]]) -> pd.DataFrame:
    rows = [
        (policy, interval, group, share, 0.0, 0)
        for policy, over_time in shares.items()
        for interval, row in enumerate(over_time)
        for group, share in enumerate(row)
    ]
    return pd.DataFrame(rows, columns=["policy", "interval", "group", "share", "used", "waiting"])


def x_of(line: Line2D) -> list[float]:
    return [float(x) for x in np.asarray(line.get_xdata())]


def y_of(line: Line2D) -> list[float]:
    return [float(y) for y in np.asarray(line.get_ydata())]


def legend(figure: Figure) -> list[str]:
    (only,) = figure.legends
    return [text.get_text() for text in only.get_texts()]


def test_each_policy_has_a_panel_of_stacked_shares_on_the_same_axes() -> None:
    frame = intervals({"drf": [[0.75, 0.25], [0.5, 0.5]], "net": [[0.25, 0.25], [0.25, 0.5], [0.0, 0.25]]})
    figure = shares_over_time(frame, "shares", ["net", "drf"])
    net, drf = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["net", "drf"]
    assert net.get_xlim() == drf.get_xlim() == (0, 3)
    assert net.get_ylim() == drf.get_ylim() == (0, 1)
    assert len(net.collections) == len(drf.collections) == 2
    assert net.collections[1].get_paths()[0].get_extents().ymax == 0.75  # both groups together at the most
    assert drf.collections[0].get_paths()[0].get_extents().get_points().tolist() == [[0, 0], [2, 0.75]]
    assert drf.get_xlabel() == "Interval (number)"
    assert net.get_ylabel() == "Share of the cluster (fraction)"
    assert list(faults(figure)) == []
    assert legend(figure) == ["group 1", "group 0"]  # from the top down


def test_of_many_groups_those_that_vary_most_are_shown_and_the_others_together() -> None:
    still, moving = [0.02] * 5, [0.1] * 8
    frame = intervals({"net": [still + moving, still + [0.1 + 0.01 * k for k in range(1, 9)]]})
    figure = shares_over_time(frame, "shares", ["net"])
    assert legend(figure) == ["others", *(f"group {group}" for group in range(12, 4, -1))]
    (axes,) = figure.axes
    assert axes.collections[-1].get_label() == "others"
    others = axes.collections[-1].get_paths()[0].get_extents()
    assert others.ymax == pytest.approx(0.1 + 0.8 + 0.36)
    assert to_hex(np.asarray(axes.collections[-1].get_facecolor())[0]) == GREY


def test_twelve_groups_are_all_shown() -> None:
    assert len(legend(shares_over_time(intervals({"net": [[0.05] * 12]}), "shares", ["net"]))) == 12


def test_shares_of_a_policy_that_has_none_are_refused() -> None:
    with pytest.raises(ValueError, match="no rows of 'drf'"):
        shares_over_time(intervals({"net": [[1.0]]}), "shares", ["net", "drf"])


def test_calibration_shows_bins_the_diagonal_and_how_well_they_agree() -> None:
    # Returns are the squares of Q-values: of the same order (Spearman 1). Of 0, 1, 2, 3 against 0, 1, 4, 9, products of
    # deviations sum to 15, squares of deviations to 5 and 49: Pearson 15 / sqrt(245) = 0.96. Mean error: 1.5 - 3.5.
    frame = pd.DataFrame({"q": [3.0, 0.0, 2.0, 1.0, np.nan], "realised": [9.0, 0.0, 4.0, 1.0, 5.0]})
    figure = calibration(frame, "net")
    (axes,) = figure.axes
    assert list(faults(figure)) == []
    assert axes.get_title(loc="left") == "net\nPearson 0.96, Spearman 1.00, mean error -2"
    diagonal, means = axes.get_lines()
    assert x_of(diagonal) == y_of(diagonal) == [0, 3]
    assert x_of(means) == [0, 1, 2, 3]
    assert y_of(means) == [0, 1, 4, 9]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Return expected: Q-value (reward)", "Return realised (reward)")


def test_calibration_has_ten_bins_of_equally_many_decisions() -> None:
    q = np.arange(40.0)
    (axes,) = calibration(pd.DataFrame({"q": q, "realised": q + np.tile([1.0, -1.0], 20)}), "net").axes
    means = axes.get_lines()[1]
    assert x_of(means) == [4 * k + 1.5 for k in range(10)]
    assert y_of(means) == [4 * k + 1.5 for k in range(10)]
    (bars,) = axes.collections
    np.testing.assert_allclose(
        np.asarray(bars.get_paths()[0].vertices)[:, 1], [1.5 - np.sqrt(1.25), 1.5 + np.sqrt(1.25)]
    )  # of 1, 0, 3, 2


def test_a_q_value_that_never_changes_has_no_correlation() -> None:
    (axes,) = calibration(pd.DataFrame({"q": [1.0, 1.0], "realised": [0.0, 1.0]}), "net").axes
    assert axes.get_title(loc="left") == "net\nPearson undefined, Spearman undefined, mean error +0.5"


def test_calibration_of_a_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="no decision has both"):
        calibration(pd.DataFrame({"q": [np.nan], "realised": [1.0]}), "drf")


def delays(means: dict[str, list[float]]) -> pd.DataFrame:
    rows = [(policy, load, mean) for policy, of in means.items() for load, mean in zip((50, 90), of, strict=True)]
    return pd.DataFrame(rows, columns=["policy", "load", "delay"])


def test_each_policy_is_a_line_of_its_delays() -> None:
    figure = delay_by_load(delays({"drf": [2, 30], "net": [2, 20]}), "delays", {"net"})
    (axes,) = figure.axes
    assert list(faults(figure)) == []
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert x_of(lines["drf"]) == [50, 90]
    assert y_of(lines["drf"]) == [2, 30]
    assert y_of(lines["net"]) == [2, 20]
    assert lines["net"].get_linewidth() > lines["drf"].get_linewidth()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Load (% of the cluster)", "Mean wait (time units)")
    assert [text.get_text() for text in axes.texts] == ["net", "drf"]  # from the lowest up


@pytest.mark.parametrize(("highest", "scale"), [(19.0, "linear"), (21.0, "log")])
def test_delays_that_differ_widely_are_drawn_on_a_logarithmic_axis(highest: float, scale: str) -> None:
    (axes,) = delay_by_load(delays({"drf": [1, highest]}), "delays").axes
    assert axes.get_yscale() == scale


def test_the_figures_are_the_same_bytes_each_time() -> None:
    frame = intervals({"drf": [[0.75, 0.25], [0.5, 0.5]]})
    pair = pd.DataFrame({"q": [1.0, 2.0], "realised": [1.0, 3.0]})
    assert png(shares_over_time(frame, "shares", ["drf"])) == png(shares_over_time(frame, "shares", ["drf"]))
    assert png(calibration(pair, "net")) == png(calibration(pair, "net"))
