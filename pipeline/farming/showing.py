"""A sweep for people: its table in lines, and its picture over seeds."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd

from pipeline.comparing import plots
from pipeline.farming.standing import EVERY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEAD = ("", "setting", "seed", "validation", "test", "against the best heuristic")
NOT_CHOSEN = (
    "* lowest on validation jobsets, which are there to choose by; the others are test jobsets. Nothing is chosen."
)
ROW_INCHES, MARGIN_INCHES = 0.42, 1.3


def lines(table: pd.DataFrame) -> Iterator[str]:
    """Yield the table of one agent as lines of text; differences in percent, below 0 is better."""
    first = table.iloc[0]
    yield f"{first['agent']}: mean {first['measure']} over all loads, n {first['n']}; below 0 is better"
    cells = [HEAD, *(_cells(row) for _, row in table.iterrows())]
    widths = [max(len(row[place]) for row in cells) for place in range(len(HEAD))]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield NOT_CHOSEN


def _cells(row: pd.Series) -> tuple[str, ...]:
    low, high = 100 * row["difference_low"], 100 * row["difference_high"]
    return (
        "*" if row["lowest_validation"] else "",
        row["setting"] or "-",
        row["seed"] or "-",
        f"{row['validation']:.4g}",
        f"{row['mean']:.4g}",
        f"{100 * row['difference']:+.1f} % ({low:.1f} to {high:.1f})",
    )


def picture(table: pd.DataFrame) -> bytes:
    """Return the picture of one agent as PNG: a line a setting, a dot a seed, and the mean of all with its interval."""
    settings = list(dict.fromkeys(table["setting"]))
    agent = table["agent"].iloc[0]
    title = f"{agent} against the best heuristic, test jobsets"
    figure, axes = plots.canvas(title, MARGIN_INCHES + ROW_INCHES * max(len(settings), 2))
    for place, setting in enumerate(settings):
        rows = table[table["setting"] == setting]
        together = rows[rows["seed"] == EVERY]
        _whole(axes, place, (rows if together.empty else together).iloc[0])
        if not together.empty:
            seeds = 100 * rows.loc[rows["seed"] != EVERY, "difference"]
            axes.plot(seeds, [place] * len(seeds), "o", color=plots.LEARNED[1], markersize=4, alpha=0.6, zorder=2)
    axes.axvline(0, color=plots.GREY, linewidth=1, linestyle="--", zorder=1)
    marked = set(table.loc[table["lowest_validation"], "setting"])
    names = [f"{setting or agent}{' *' if setting in marked else ''}" for setting in settings]
    axes.set_yticks(range(len(settings)), names)
    axes.set_ylim(len(settings) - 0.5, -0.5)
    axes.grid(axis="x", color="#E5E5E5", zorder=0)
    axes.set_xlabel(
        f"Mean {table['measure'].iloc[0]}, percent from the best heuristic, below 0 is better\n"
        "dot: a seed; square: all, with its interval; * lowest on validation jobsets"
    )
    return plots.png(figure)


def _whole(axes: "Axes", place: int, row: pd.Series) -> None:
    mean = 100 * row["difference"]
    # Percentiles of few resamples need not hold their mean.
    ends = [[max(mean - 100 * row["difference_low"], 0.0)], [max(100 * row["difference_high"] - mean, 0.0)]]
    axes.errorbar(
        [100 * row["difference"]],
        [place],
        xerr=ends,
        fmt="s",
        color=plots.LEARNED[0],
        markersize=6,
        capsize=4,
        zorder=3,
    )
