"""Figures of what an agent does differently."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.plots import GREY, LEARNED, by_load, canvas, looks
from pipeline.comparing.statistics import ALL
from pipeline.problems.pool.explaining.tree import FEATURES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = {
    "agrees": ("as SJF", "#BBBBBB"),
    "withholds": ("starts none", LEARNED[0]),
    "starts_another": ("another job", LEARNED[1]),
}
ACROSS = 3  # small panels
DARK = 0.6  # share from which text is white


class Tables(NamedTuple):
    """What is drawn."""

    differences: pd.DataFrame
    classes: pd.DataFrame
    effects: pd.DataFrame
    outcomes: pd.DataFrame


def figures(agent: str, tables: Tables) -> "dict[str, Figure]":
    """Return the figures of an agent by name."""
    return {
        "differences": _differences(agent, tables.differences),
        "classes": _classes(agent, tables.classes),
        "effects": _effects(agent, tables.effects),
        "outcomes": _outcomes(agent, tables.outcomes),
    }


def _differences(agent: str, table: pd.DataFrame) -> "Figure":
    figure, axes = canvas(f"{agent} beside SJF, in its own decisions")
    loads, bottom = [str(load) for load in table["load"]], np.zeros(len(table))
    for column, (label, colour) in PARTS.items():
        share = 100 * table[column].to_numpy()
        axes.bar(loads, share, bottom=bottom, color=colour, label=label)
        bottom = bottom + share
    axes.set_xlabel("Load (percent of the cluster)")
    axes.set_ylabel("Percent of decisions in which a job could start")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _classes(agent: str, table: pd.DataFrame) -> "Figure":
    figure, axes = canvas(f"How often {agent} withholds a job that could start", 4.5)
    axes.grid(visible=False)
    grid, count = (table.pivot(index="demand_from", columns="duration_from", values=name) for name in ("withheld", "n"))
    drawn = axes.imshow(grid.to_numpy(), vmin=0.0, vmax=1.0, cmap="Blues", aspect="auto", origin="lower")
    for (row, column), share in np.ndenumerate(grid.to_numpy()):
        label = "none" if np.isnan(share) else f"{100 * share:.0f} %\nn = {count.to_numpy()[row, column]}"
        colour = "white" if share > DARK else "black"
        axes.annotate(label, (column, row), ha="center", va="center", fontsize=8, color=colour)
    longs = table.drop_duplicates("duration_from")
    wides = table.drop_duplicates("demand_from")
    axes.set_xticks(
        range(len(longs)), [_span(*pair) for pair in zip(longs["duration_from"], longs["duration_to"], strict=True)]
    )
    axes.set_yticks(
        range(len(wides)), [_span(*pair) for pair in zip(wides["demand_from"], wides["demand_to"], strict=True)]
    )
    axes.set_xlabel("Duration (steps)")
    axes.set_ylabel("Largest share it demands")
    figure.colorbar(drawn, ax=axes, label="Share withheld")
    return figure


def _effects(agent: str, table: pd.DataFrame) -> "Figure":
    from matplotlib.figure import Figure

    names = [name for name in FEATURES if name in set(table["feature"])]
    down = -(-len(names) // ACROSS)
    figure = Figure(figsize=(10, 0.6 + 2.1 * down), layout="constrained")
    figure.suptitle(f"Share of jobs that {agent} withholds, by one feature (area: how many)", x=0.01, ha="left")
    for place, name in enumerate(names):
        axes = figure.add_subplot(down, ACROSS, place + 1)
        _effect(axes, table[table["feature"] == name])
        axes.set_xlabel(FEATURES[name], fontsize=8)
    return figure


def _effect(axes: "Axes", rows: pd.DataFrame) -> None:
    axes.plot(rows["mean"], rows["withheld"], color=GREY, linewidth=1.0, zorder=1)
    axes.scatter(rows["mean"], rows["withheld"], s=120 * rows["n"] / rows["n"].max(), color=LEARNED[0], zorder=2)
    axes.set_ylim(-0.05, 1.05)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#E5E5E5", zorder=0)


def _outcomes(agent: str, table: pd.DataFrame) -> "Figure":
    """Draw mean slowdown by load; SJF's own is what others are compared with."""
    rows = table[(table["jobs"] == "all") & (table["load"] != ALL)]
    columns = {"mean": "slowdown", "low": "slowdown_low", "high": "slowdown_high"}
    drawn = rows.rename(columns=columns).drop_duplicates(["load", "policy"])
    drawn = drawn.assign(load=drawn["load"].astype(int))
    look = looks(drawn["policy"].unique(), [agent, f"{agent}_tree"])
    return by_load(drawn, f"{agent}, its tree and heuristics", look)


def _span(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g}-{high:g}"
