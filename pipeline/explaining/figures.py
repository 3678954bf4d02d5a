"""Figures that the explanations of several problems have in common."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.comparing.plots import GREY, LEARNED, by_load, looks
from pipeline.comparing.statistics import ALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 3  # small panels


def stacked(axes: "Axes", labels: Sequence[str], table: pd.DataFrame, parts: Mapping[str, tuple[str, str]]) -> None:
    """Draw shares of decisions, in percent, one bar a row; parts are columns with their label and colour."""
    places, bottom = np.arange(len(table)), np.zeros(len(table))
    for column, (label, colour) in parts.items():
        share = 100 * table[column].to_numpy()
        axes.bar(places, share, bottom=bottom, color=colour, label=label)
        bottom = bottom + share
    axes.set_xticks(places, labels, fontsize=8)


def by_feature(
    title: str, table: pd.DataFrame, column: str, labels: Mapping[str, str], limits: tuple[float, float]
) -> "Figure":
    """Draw a column over the bins of each feature, in small panels; the area of a point says how many are in a bin."""
    from matplotlib.figure import Figure

    names = [name for name in labels if name in set(table["feature"])]
    down = -(-len(names) // ACROSS)
    figure = Figure(figsize=(10, 0.7 + 2.2 * down), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left")
    for place, name in enumerate(names):
        axes, rows = figure.add_subplot(down, ACROSS, place + 1), table[table["feature"] == name]
        axes.axhline(0, color=GREY, linewidth=0.8, linestyle="--")
        axes.plot(rows["mean"], rows[column], color=GREY, linewidth=1.0, zorder=1)
        axes.scatter(rows["mean"], rows[column], s=120 * rows["n"] / rows["n"].max(), color=LEARNED[0], zorder=2)
        axes.set_ylim(*limits)
        axes.set_xlabel(labels[name], fontsize=8)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#E5E5E5", zorder=0)
    return figure


def slowdowns(title: str, table: pd.DataFrame, learned: Sequence[str]) -> "Figure":
    """Draw the mean slowdown of policies by load, from COMPARISON."""
    columns = {"mean": "slowdown", "low": "slowdown_low", "high": "slowdown_high"}
    drawn = table[table["load"] != ALL].rename(columns=columns).drop_duplicates(["load", "policy"])
    drawn = drawn.assign(load=drawn["load"].astype(int))
    return by_load(drawn, title, looks(drawn["policy"].unique(), list(learned)))


def span(low: float, high: float) -> str:
    """Return a range in words, or the one number that it is."""
    return f"{low:g}" if low == high else f"{low:g}-{high:g}"
