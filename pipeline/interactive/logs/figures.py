"""Figures of a log, from the tables of `overview`: arrivals and load over time, distributions of jobs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.comparing.plots import GREY, LEARNED, REFERENCE, canvas, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOUR, OTHER = LEARNED[1], LEARNED[0]
DAYS = "Time since the first arrival (days)"
MOST_ABOVE = 4.0  # times the amount held, up to which a capacity is drawn
SHARE = "Share of jobs with no more (fraction)"


def figures(name: str, frames: Mapping[str, pd.DataFrame]) -> "dict[str, Figure]":
    """Return all figures of a log by name."""
    return {
        "arrivals": arrivals(frames["over_time"], f"{name}: arrivals"),
        "run_times": run_times(frames["shares"], f"{name}: run times"),
        "demands": demands(frames["shares"], frames["load"], name),
        "load": load(frames["over_time"], frames["load"], name),
    }


def arrivals(over_time: pd.DataFrame, title: str) -> "Figure":
    """Draw the number of arrivals in each span of a log."""
    figure, axes = canvas(title)
    axes.fill_between(over_time["begin_days"], over_time["arrivals"], step="post", color=COLOUR, lw=0)
    axes.set_xlabel(DAYS)
    axes.set_ylabel(f"Arrivals in each of {len(over_time)} equal spans (jobs)")
    axes.set_ylim(bottom=0)
    return figure


def run_times(shares: pd.DataFrame, title: str) -> "Figure":
    """Draw the distributions of run times and, if there are any, of estimates."""
    figure, axes = canvas(title)
    _rising(axes, shares, "run_s", COLOUR, "run time")
    if shares["estimate_s"].notna().any():
        _rising(axes, shares, "estimate_s", OTHER, "its user's estimate", "--s")
        axes.legend(loc="lower right")
    axes.set_xscale("log")
    axes.set_xlabel("Time (seconds)")
    axes.set_ylabel(SHARE)
    return figure


def demands(shares: pd.DataFrame, load: pd.DataFrame, name: str) -> "Figure":
    """Draw the distribution of demands for each resource."""
    figure, every = panels([f"{name}: {resource} of jobs" for resource in load["resource"]], 3.2 * len(load))
    for axes, (_, row) in zip(every, load.iterrows(), strict=True):
        _rising(axes, shares, str(row["resource"]), COLOUR, str(row["resource"]))
        amount = shares[row["resource"]]
        if (amount > 0).all():
            axes.set_xscale("log")
        elif (amount > 0).any():  # logarithmic from the least amount on, with room for demands of 0
            axes.set_xscale("symlog", linthresh=float(amount[amount > 0].min()))
            axes.set_xlim(left=0)
        axes.set_xlabel(f"Demand on each node ({row['unit']})")
        axes.set_ylabel(SHARE)
    return figure


def load(over_time: pd.DataFrame, load: pd.DataFrame, name: str) -> "Figure":
    """Draw how much of each resource is held over time, and its capacity."""
    figure, every = panels([f"{name}: {resource} held" for resource in load["resource"]], 3.2 * len(load))
    for axes, (_, row) in zip(every, load.iterrows(), strict=True):
        axes.step(over_time["begin_days"], over_time[row["resource"]], where="post", color=COLOUR, linewidth=1)
        unit, capacity = str(row["unit"]), float(row["capacity"])
        if capacity <= MOST_ABOVE * over_time[row["resource"]].max():  # a line far above would press the rest flat
            axes.axhline(capacity, color=GREY, lw=1, ls="--", label="capacity of all machines", gid=REFERENCE)
            axes.legend(loc="best")
        axes.set_ylim(bottom=0)
        axes.set_xlabel(DAYS)
        axes.set_ylabel(f"Held ({unit})" if np.isnan(capacity) else f"Held ({unit}; capacity: {capacity:,.0f})")
    return figure


def _rising(axes: "Axes", shares: pd.DataFrame, column: str, colour: str, name: str, style: str = "-o") -> None:
    axes.plot(shares[column], shares["share"], style, ds="steps-post", color=colour, lw=1.6, label=name, markevery=0.1)
