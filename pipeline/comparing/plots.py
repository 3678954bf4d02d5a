"""Figures from tables.

matplotlib is imported inside the functions, so that only code that draws loads it, and without pyplot: no window system
and no global state. Colours are Okabe and Ito's and Paul Tol's, which colour-blind readers can distinguish. For readers
without colour, the axes of a figure have at most five lines, which differ by marker and dash; bars, boxes and areas
differ by hatching. Each axis states its unit in brackets.
"""

import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure

LEARNED = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00")
HEURISTIC = ("#332288", "#44AA99", "#999933", "#CC6677", "#3E9FCF", "#882255", "#117733", "#A89030", "#AA4499")
MARKERS = "osD^vPX*<>"
MOST_MARKS = 20  # on a line, about
HATCHES = ("", "///", "...", "xxx", "|||", "\\\\\\", "---", "ooo", "+++", "**")
DASHES = ("-", "--", "-.", ":", (0, (8, 2, 1, 2, 1, 2)))
GREY = "#777777"
MOST_LINES, MOST_LEARNED = 5, 3  # in the axes of a figure
REFERENCE = "reference"  # group of lines that show no data: a zero, a bound, parts of a box
SLOWDOWN = "Mean slowdown (ratio; band: its interval)"
DPI = 150
LOG_ABOVE = 5.0  # largest over smallest value from which an axis is logarithmic
LABEL_GAP = 0.045  # of the axis height: a line of text
NAMES_AT = 1.04  # of the axis width: left edge of the names
TIE_GAP = 0.005  # of the axis width, between a connecting line and its name or point


class Look(NamedTuple):
    """Style of a policy in figures."""

    colour: str
    marker: str
    width: float
    weight: str


class Label(NamedTuple):
    """A name to the right of the axes, at the height of a point."""

    name: str
    x: float
    y: float
    look: Look


def slowdown_by_load(summary: pd.DataFrame, title: str, learned: Collection[str] = ()) -> "Figure":
    """Draw the mean slowdown of each policy of one scenario: lines over loads, or bars where there is one load."""
    if summary["load"].nunique() == 1:
        return bars(summary, title, looks(summary["policy"].unique(), learned))
    return by_load(summary, "slowdown", SLOWDOWN, title, learned)


def by_load(
    summary: pd.DataFrame, column: str, label: str, title: str, learned: Collection[str], above: float = LOG_ABOVE
) -> "Figure":
    """Draw a column for the leading policies over loads."""
    drawn = leading(summary, column, learned)
    figure, axes = canvas(counted(title, summary, drawn))
    lines_by_load(axes, summary, column, label, looks(drawn, learned), above)
    return figure


def lines_by_load(
    axes: "Axes", summary: pd.DataFrame, column: str, label: str, drawn: Mapping[str, Look], above: float = LOG_ABOVE
) -> None:
    """Draw a column for given policies over loads, with their names and, if known, their intervals."""
    labels = []
    for policy, look in drawn.items():
        rows = summary[summary["policy"] == policy].sort_values("load")
        line(axes, policy, rows["load"], rows[column], look)
        if f"{column}_low" in summary:
            low, high = rows[f"{column}_low"], rows[f"{column}_high"]
            axes.fill_between(rows["load"], low, high, color=look.colour, alpha=0.15, lw=0)
        labels.append(Label(policy, rows["load"].iloc[-1], rows[column].iloc[-1], look))
    axes.set_xticks(sorted(summary["load"].unique()))
    axes.set(xlabel="Load (% of the cluster)", ylabel=label)
    scale(axes, summary.loc[summary["policy"].isin(list(drawn)), column], above)
    write_names(axes, labels)


def counted(title: str, table: pd.DataFrame, drawn: Collection[str]) -> str:
    """Return a title that says how many of the table's policies are drawn, unless all are."""
    total = table["policy"].nunique()
    return title if len(drawn) == total else f"{title}\n{len(drawn)} of {total} policies: best learned, best others"


def leading(table: pd.DataFrame, column: str, learned: Collection[str]) -> list[str]:
    """Return the policies that a figure draws: the best learned ones and the best others, by the column's mean."""
    best = table.groupby("policy", sort=False)[column].mean().sort_values(kind="stable").index
    agents = [policy for policy in best if policy in learned][:MOST_LEARNED]
    return agents + [policy for policy in best if policy not in learned][: MOST_LINES - len(agents)]


def learning_curve(
    curves: Mapping[str, pd.DataFrame],
    heuristics: Mapping[str, float],
    title: str,
    metric: str = "validation_slowdown",
    label: str = "Mean slowdown on validation jobsets (ratio)",
) -> "Figure":
    """Draw agents' validation results during training, with the best heuristics as horizontal lines.

    Raises:
        ValueError: a curve does not have the metric.
    """
    figure, axes = canvas(title)
    best = dict(sorted(heuristics.items(), key=lambda one: one[1])[: max(MOST_LINES - len(curves), 0)])
    drawn, values = looks([*curves, *best], curves), list(best.values())
    for agent in curves:
        points = curves[agent][curves[agent]["metric"] == metric].sort_values("update")
        if points.empty:
            raise ValueError(f"the curve of '{agent}' has no metric '{metric}'")
        line(axes, agent, points["update"], points["value"], drawn[agent])
        values += points["value"].tolist()
    axes.set(xlabel="Update (number)", ylabel=label)
    axes.legend(loc="best")
    scale(axes, values)
    levels(axes, best, drawn)
    return figure


def levels(axes: "Axes", values: Mapping[str, float], drawn: Mapping[str, Look], gap: float = LABEL_GAP) -> None:
    """Draw named horizontal lines across the present limits of the axes."""
    left, right = axes.get_xlim()
    for name, level in values.items():
        line(axes, name, [left, right], [level, level], drawn[name])
        axes.lines[-1].set_clip_on(False)
    axes.set_xlim(left, right)
    write_names(axes, [Label(name, right, level, drawn[name]) for name, level in values.items()], gap)


def png(figure: "Figure") -> bytes:
    """Return the figure as PNG, with the same bytes for the same table."""
    from matplotlib import font_manager, get_data_path
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    # Add the bundled fonts that matplotlib's cached list lacks, because it warns about each missing one.
    listed = {Path(font.fname).name for font in font_manager.fontManager.ttflist}
    for file in Path(get_data_path(), "fonts", "ttf").glob("*.ttf"):
        if file.name not in listed:
            font_manager.fontManager.addfont(file)
    buffer = io.BytesIO()
    figure.dpi = DPI
    # `savefig` would draw it twice, for the layout.
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})  # type: ignore[no-untyped-call]
    return buffer.getvalue()


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Return the places in [0, 1] at distances of at least `gap` that are closest to given ones by least squares.

    >>> [round(place, 3) for place in spread([0.2, 0.5, 0.5, 0.99], gap=0.1)]
    [0.2, 0.45, 0.55, 0.99]
    >>> [round(place, 3) for place in spread([0.98, 0.99], gap=0.1)]
    [0.9, 1.0]
    """
    # Place i minus i gaps must not decrease with i: isotonic regression, by its max-min formula.
    level = [place - gap * i for i, place in enumerate(places)]
    n = len(level)
    fitted = [max(min(float(np.mean(level[j : k + 1])) for k in range(i, n)) for j in range(i + 1)) for i in range(n)]
    top = 1 - gap * (n - 1)
    return [min(max(value, 0.0), top) + gap * i for i, value in enumerate(fitted)]


def looks(policies: Iterable[str], learned: Collection[str]) -> dict[str, Look]:
    """Return the style of each policy, by its place in the order."""
    found, seen = dict[str, Look](), [0, 0]
    for policy in policies:
        kind = int(policy in learned)
        palette, place = (LEARNED if kind else HEURISTIC), seen[kind]
        width, weight = (2.8, "bold") if kind else (1.2, "normal")
        seen[kind] += 1
        found[policy] = Look(palette[place % len(palette)], MARKERS[len(found) % len(MARKERS)], width, weight)
    return found


def canvas(title: str, height: float = 5.0) -> "tuple[Figure, Axes]":
    """Return an empty figure of one panel."""
    figure, (axes,) = panels([title], height)
    return figure, axes


def panels(titles: Sequence[str], height: float, across: bool = False) -> "tuple[Figure, list[Axes]]":
    """Return an empty figure with a panel for each title, in a column or a row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, height), layout="constrained")
    grid = (1, len(titles)) if across else (len(titles), 1)
    every = [figure.add_subplot(*grid, place) for place in range(1, len(titles) + 1)]
    for axes, title in zip(every, titles, strict=True):
        axes.set_title(title, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#E5E5E5", zorder=0)
        axes.set_axisbelow(True)
    return figure, every


def line(axes: "Axes", name: str, x: pd.Series | Sequence[float], y: pd.Series | Sequence[float], look: Look) -> None:
    """Draw a policy's line, with a dash that no other of the first five lines has."""
    dash = DASHES[len(axes.lines) % len(DASHES)]
    (drawn,) = axes.plot(x, y, color=look.colour, marker=look.marker, ls=dash, linewidth=look.width, label=name)
    drawn.set(markersize=3 + look.width, markevery=max(1, len(x) // MOST_MARKS))
    drawn.set_zorder(2 + look.width)


def hatch(bars: "BarContainer", k: int) -> None:
    """Hatch bars as the k-th of several kinds."""
    for bar in bars:
        bar.set(hatch=HATCHES[k % len(HATCHES)], edgecolor="white", linewidth=0)


def scale(axes: "Axes", values: Iterable[float], above: float = LOG_ABOVE) -> None:
    """Make the vertical axis logarithmic if the largest value is more than `above` times the smallest."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    values = list(values)
    if 0 < above * min(values) < max(values):
        axes.set_yscale("log")
        wide = max(values) > 10 * min(values)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if wide else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())


def write_names(axes: "Axes", labels: Iterable[Label], gap: float = LABEL_GAP) -> None:
    """Write names to the right of the axes, `gap` (a share of the height) apart, each connected to its point."""
    from matplotlib.collections import LineCollection

    axes.get_ylim()  # fixes the limits for the transforms below
    within = axes.transData + axes.transAxes.inverted()
    rising = sorted(labels, key=lambda label: label.y)
    ends = [within.transform((label.x, label.y)) for label in rising]
    places = spread([float(end[1]) for end in ends], gap)
    for label, place in zip(rising, places, strict=True):
        text = axes.text(NAMES_AT, place, label.name, transform=axes.transAxes, verticalalignment="center", fontsize=9)
        text.set(color=label.look.colour, fontweight=label.look.weight)
    # Plain lines: the layout of `annotate` arrows would take longer than the rest of a figure.
    ties = [[(x + TIE_GAP, y), (NAMES_AT - TIE_GAP, place)] for (x, y), place in zip(ends, places, strict=True)]
    colours = [label.look.colour for label in rising]
    drawn = LineCollection(ties, colors=colours, linewidths=0.6, transform=axes.transAxes, clip_on=False)
    axes.add_collection(drawn, autolim=False)


def bars(summary: pd.DataFrame, title: str, looks: Mapping[str, Look]) -> "Figure":
    """Draw the mean slowdown of policies at one load, in given styles."""
    rows = summary.sort_values(["slowdown", "policy"], ascending=False)
    figure, axes = canvas(title, height=1.2 + 0.32 * len(rows))
    colours = [looks[policy].colour if looks[policy].weight == "bold" else "#BBBBBB" for policy in rows["policy"]]
    below, above = rows["slowdown"] - rows["slowdown_low"], rows["slowdown_high"] - rows["slowdown"]
    axes.barh(rows["policy"], rows["slowdown"], color=colours, xerr=[below, above], error_kw={"elinewidth": 1.2})
    for place, (mean, high) in enumerate(zip(rows["slowdown"], rows["slowdown_high"], strict=True)):
        axes.annotate(f"{mean:.2f}", (high, place), (4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("Mean slowdown (ratio; whisker: its interval)")
    return figure
