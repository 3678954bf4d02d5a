"""Figures of what an agent does otherwise than SJF."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.comparing.plots import LEARNED, by_load, looks, panels
from pipeline.comparing.statistics import ALL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = {
    "agrees": ("as SJF", "#BBBBBB"),
    "another_machine": ("its job, another machine", LEARNED[1]),
    "another_job": ("another job", LEARNED[0]),
    "waits": ("none", LEARNED[2]),
}
LABELS = {"load": "Load (percent)", "waiting": "Jobs waiting", "free": "Percent of all resources free"}


def figures(agent: str, differences: pd.DataFrame, outcomes: pd.DataFrame) -> "dict[str, Figure]":
    """Return the figures of an agent by name."""
    return {"differences": _differences(agent, differences), "outcomes": _outcomes(agent, outcomes)}


def _differences(agent: str, table: pd.DataFrame) -> "Figure":
    figure, every = panels([f"{agent} beside SJF, in its own decisions", "", ""], 9.0)
    for axes, (by, label) in zip(every, LABELS.items(), strict=True):
        rows = table[table["by"] == by]
        places, bottom = np.arange(len(rows)), np.zeros(len(rows))
        for column, (what, colour) in PARTS.items():
            share = 100 * rows[column].to_numpy()
            axes.bar(places, share, bottom=bottom, color=colour, label=what)
            bottom = bottom + share
        times, rows_of = (100 if by == "free" else 1), zip(rows["from"], rows["to"], rows["decisions"], strict=True)
        names = [f"{_span(times * low, times * high)}\nn = {n:,}" for low, high, n in rows_of]
        axes.set_xticks(places, names, fontsize=8)
        axes.set_xlabel(label)
        axes.set_ylabel("Percent of decisions")
    every[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _outcomes(agent: str, table: pd.DataFrame) -> "Figure":
    """Draw mean slowdown by load, SJF's as the others' reference has it."""
    rows = table[table["load"] != ALL]
    columns = {"mean": "slowdown", "low": "slowdown_low", "high": "slowdown_high"}
    drawn = rows.rename(columns=columns).drop_duplicates(["load", "policy"])
    drawn = drawn.assign(load=drawn["load"].astype(int))
    return by_load(drawn, f"{agent} and rules", looks(drawn["policy"].unique(), [agent]))


def _span(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g}-{high:g}"
