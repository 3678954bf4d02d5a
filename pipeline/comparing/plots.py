"""Figures for people: a table in, a figure out.

matplotlib is imported inside the functions, and without pyplot: no window system, no global state, and whoever only
counts pays nothing for it. Colours are Okabe and Ito's and Paul Tol's, which colour-blind readers can tell apart; lines
also differ by marker and carry their name at their end.
"""

import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEARNED = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00")
HEURISTIC = ("#332288", "#44AA99", "#999933", "#CC6677", "#3E9FCF", "#882255", "#117733", "#A89030", "#AA4499")
MARKERS = "osD^vPX*<>"
GREY = "#777777"
DPI = 150
LOG_ABOVE = 5.0  # largest over smallest value from which an axis is logarithmic
LABEL_GAP = 0.045  # of the axis height: what a line of text takes
BESIDE = 1.04  # of the axis width: where names begin that are written to its right
TIE_GAP = 0.005  # of the axis width, between a line and the name or the point that it ties


class Look(NamedTuple):
    """How a policy is drawn."""

    colour: str
    marker: str
    width: float
    weight: str


class Label(NamedTuple):
    """A name to write beside the axes, on the height of a point."""

    name: str
    x: float
    y: float
    look: Look


def slowdown_by_load(summary: pd.DataFrame, title: str, learned: Collection[str] = ()) -> "Figure":
    """Draw the mean slowdown of each policy of one scenario: lines over loads, or bars where there is one load."""
    return by_load(summary, title, looks(summary["policy"].unique(), learned))


def by_load(summary: pd.DataFrame, title: str, drawn: Mapping[str, Look]) -> "Figure":
    """Draw the mean slowdown of some policies, each in its look."""
    if summary["load"].nunique() == 1:
        return _bars(summary, title, drawn)
    figure, axes = canvas(title)
    labels = []
    for policy, look in drawn.items():
        rows = summary[summary["policy"] == policy].sort_values("load")
        line(axes, policy, rows["load"], rows["slowdown"], look)
        axes.fill_between(
            rows["load"], rows["slowdown_low"], rows["slowdown_high"], color=look.colour, alpha=0.15, lw=0
        )
        labels.append(Label(policy, rows["load"].iloc[-1], rows["slowdown"].iloc[-1], look))
    axes.set_xticks(sorted(summary["load"].unique()))
    axes.set_xlabel("Load (percent of the cluster)")
    axes.set_ylabel("Mean slowdown (band: its interval)")
    scale(axes, summary["slowdown"])
    write_beside(axes, labels)
    return figure


def learning_curve(
    curves: Mapping[str, pd.DataFrame],
    heuristics: Mapping[str, float],
    title: str,
    metric: str = "validation_slowdown",
    label: str = "Mean slowdown on validation jobsets",
) -> "Figure":
    """Draw how agents in training do on validation jobsets, with heuristics as level lines.

    Raises:
        ValueError: a curve holds nothing of the metric.
    """
    figure, axes = canvas(title)
    values = list(heuristics.values())
    for agent, look in looks(curves, curves).items():
        points = curves[agent][curves[agent]["metric"] == metric].sort_values("update")
        if points.empty:
            raise ValueError(f"the curve of '{agent}' has no metric '{metric}'")
        line(axes, agent, points["update"], points["value"], look)
        values += points["value"].tolist()
    for level in heuristics.values():
        axes.axhline(level, color=GREY, linewidth=1, linestyle="--", zorder=1)
    axes.set_xlabel("Update")
    axes.set_ylabel(label)
    axes.legend(loc="best")
    scale(axes, values)
    right = axes.get_xlim()[1]
    look = Look(GREY, "", 1.0, "normal")
    write_beside(axes, [Label(name, right, level, look) for name, level in heuristics.items()])
    return figure


def png(figure: "Figure") -> bytes:
    """Return the figure as PNG: the same bytes from the same table."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = io.BytesIO()
    figure.dpi = DPI
    # `savefig` would draw it once more, to lay it out.
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})  # type: ignore[no-untyped-call]
    return buffer.getvalue()


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Return the places in [0, 1] that are at least `gap` apart and nearest, in squares, to rising ones.

    >>> [round(place, 3) for place in spread([0.2, 0.5, 0.5, 0.99], gap=0.1)]
    [0.2, 0.45, 0.55, 0.99]
    >>> [round(place, 3) for place in spread([0.98, 0.99], gap=0.1)]
    [0.9, 1.0]
    """
    # Less i gaps, the places need only not fall: isotonic regression, by its max-min formula.
    level = [place - gap * i for i, place in enumerate(places)]
    n = len(level)
    fitted = [max(min(float(np.mean(level[j : k + 1])) for k in range(i, n)) for j in range(i + 1)) for i in range(n)]
    top = 1 - gap * (n - 1)
    return [min(max(value, 0.0), top) + gap * i for i, value in enumerate(fitted)]


def looks(policies: Iterable[str], learned: Collection[str]) -> dict[str, Look]:
    """Return a look for each policy; the same policies in the same order look the same in every figure."""
    found, seen = {}, [0, 0]
    for policy in policies:
        kind = int(policy in learned)
        palette, place = (LEARNED if kind else HEURISTIC), seen[kind]
        width, weight = (2.8, "bold") if kind else (1.2, "normal")
        found[policy] = Look(palette[place % len(palette)], MARKERS[place % len(MARKERS)], width, weight)
        seen[kind] += 1
    return found


def canvas(title: str, height: float = 5.0) -> "tuple[Figure, Axes]":
    """Return an empty figure of one panel."""
    figure, (axes,) = panels([title], height)
    return figure, axes


def panels(titles: Sequence[str], height: float, across: bool = False) -> "tuple[Figure, list[Axes]]":
    """Return an empty figure with a panel for each title: below each other, or across."""
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


def line(axes: "Axes", name: str, x: pd.Series, y: pd.Series, look: Look) -> None:
    """Draw a policy's line."""
    (drawn,) = axes.plot(x, y, color=look.colour, marker=look.marker, linewidth=look.width, label=name)
    drawn.set_markersize(3 + look.width)
    drawn.set_zorder(2 + look.width)


def scale(axes: "Axes", values: Iterable[float], above: float = LOG_ABOVE) -> None:
    """Make the upright axis logarithmic if the largest value is more than `above` times the smallest."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    values = list(values)
    if 0 < above * min(values) < max(values):
        axes.set_yscale("log")
        wide = max(values) > 10 * min(values)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if wide else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())


def write_beside(axes: "Axes", labels: Iterable[Label], gap: float = LABEL_GAP) -> None:
    """Write names to the right of the axes, moved apart by a share of their height, each tied to its point."""
    from matplotlib.collections import LineCollection

    axes.get_ylim()  # settles the limits, which the transforms below read
    within = axes.transData + axes.transAxes.inverted()
    rising = sorted(labels, key=lambda label: label.y)
    ends = [within.transform((label.x, label.y)) for label in rising]
    places = spread([float(end[1]) for end in ends], gap)
    for label, place in zip(rising, places, strict=True):
        look, where = label.look, axes.transAxes
        axes.text(
            BESIDE,
            place,
            label.name,
            transform=where,
            verticalalignment="center",
            color=look.colour,
            fontsize=9,
            fontweight=look.weight,
        )
    # Plain lines: arrows of `annotate` would take longer to lay out than all the rest of a figure.
    ties = [[(x + TIE_GAP, y), (BESIDE - TIE_GAP, place)] for (x, y), place in zip(ends, places, strict=True)]
    colours = [label.look.colour for label in rising]
    drawn = LineCollection(ties, colors=colours, linewidths=0.6, transform=axes.transAxes, clip_on=False)
    axes.add_collection(drawn, autolim=False)


def _bars(summary: pd.DataFrame, title: str, looks: Mapping[str, Look]) -> "Figure":
    rows = summary.sort_values(["slowdown", "policy"], ascending=False)
    figure, axes = canvas(title, height=1.2 + 0.32 * len(rows))
    colours = [looks[policy].colour if looks[policy].weight == "bold" else "#BBBBBB" for policy in rows["policy"]]
    below, above = rows["slowdown"] - rows["slowdown_low"], rows["slowdown_high"] - rows["slowdown"]
    axes.barh(rows["policy"], rows["slowdown"], color=colours, xerr=[below, above], error_kw={"elinewidth": 1.2})
    for place, (mean, high) in enumerate(zip(rows["slowdown"], rows["slowdown_high"], strict=True)):
        axes.annotate(f"{mean:.2f}", (high, place), (4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("Mean slowdown (whisker: its interval)")
    return figure
