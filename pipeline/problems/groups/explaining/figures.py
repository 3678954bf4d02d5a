"""Figures of what a controller does otherwise than shares by demand."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.comparing.plots import GREY, LEARNED, canvas
from pipeline.comparing.statistics import ALL
from pipeline.problems.groups.explaining.differences import FEATURES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 3  # small panels
METRICS = {"slowdown": "mean slowdown", "wait": "mean waiting time"}


def figures(agent: str, states: pd.DataFrame, outcomes: pd.DataFrame) -> "dict[str, Figure]":
    """Return the figures of an agent by name."""
    return {"states": _states(agent, states), "outcomes": _outcomes(agent, outcomes)}


def _states(agent: str, table: pd.DataFrame) -> "Figure":
    from matplotlib.figure import Figure

    names = [name for name in FEATURES if name in set(table["feature"])]
    down = -(-len(names) // ACROSS)
    figure = Figure(figsize=(10, 0.8 + 2.4 * down), layout="constrained")
    title = f"What {agent} gives a group beyond its share by demand, in percent of the cluster (area: how often)"
    figure.suptitle(title, x=0.01, ha="left")
    bounds = 100 * table["difference"].min(), 100 * table["difference"].max()
    margin = 0.1 * max(bounds[1] - bounds[0], 1.0)
    for place, name in enumerate(names):
        axes = figure.add_subplot(down, ACROSS, place + 1)
        _state(axes, table[table["feature"] == name])
        axes.set_ylim(bounds[0] - margin, bounds[1] + margin)
        axes.set_xlabel(FEATURES[name].label, fontsize=8)
    return figure


def _state(axes: "Axes", rows: pd.DataFrame) -> None:
    axes.axhline(0, color=GREY, linewidth=0.8, linestyle="--")
    axes.plot(rows["mean"], 100 * rows["difference"], color=GREY, linewidth=1.0, zorder=1)
    size = 120 * rows["n"] / rows["n"].max()
    axes.scatter(rows["mean"], 100 * rows["difference"], s=size, color=LEARNED[0], zorder=2)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#E5E5E5", zorder=0)


def _outcomes(agent: str, table: pd.DataFrame) -> "Figure":
    """Draw the relative difference at each load."""
    rows = table[table["policy"] == agent]
    figure, axes = canvas(f"{agent} against {rows['against'].iloc[0]} on test jobsets", 4.0)
    loads = [load for load in rows["load"].unique() if load != ALL] + [ALL]
    for k, (metric, label) in enumerate(METRICS.items()):
        of_it = rows[rows["metric"] == metric].set_index("load").loc[loads]
        middle, low, high = (
            100 * of_it[name].to_numpy() for name in ("difference", "difference_low", "difference_high")
        )
        at = np.arange(len(loads)) + 0.16 * (2 * k - 1)
        axes.errorbar(at, middle, [middle - low, high - middle], fmt="os"[k], color=LEARNED[k], capsize=3, label=label)
    axes.axhline(0, color=GREY, linewidth=0.8, linestyle="--")
    axes.set_xticks(range(len(loads)), [load if load == ALL else str(int(load)) for load in loads])
    axes.set_xlabel("Load (percent of the cluster)")
    axes.set_ylabel("Difference in percent (bar: its interval)")
    axes.legend(loc="best")
    return figure
