"""Figures of controllers: shares over time, expectations, and waiting times."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.comparing.plots import GREY, HATCHES, HEURISTIC, LEARNED, REFERENCE, by_load, canvas, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_GROUPS = 12  # each with its own colour; of more groups, only the SHOWN that vary most
SHOWN = 8
OTHERS = "others"
COLOURS = (*LEARNED, *HEURISTIC)
EDGE = "#FFFFFFB0"  # of hatching
BINS = 10
LOG_DELAY_ABOVE = 20.0  # ratio of largest to smallest delay from which the axis is logarithmic


def shares_over_time(frame: pd.DataFrame, title: str, policies: Sequence[str]) -> "Figure":
    """Draw the shares of groups in the intervals of one jobset, in one panel per policy.

    Raises:
        ValueError: the frame has no rows for a policy.
    """
    for policy in policies:
        if not (frame["policy"] == policy).any():
            raise ValueError(f"the intervals have no rows of '{policy}'")
    shares = _shown(frame[frame["policy"].isin(policies)])
    figure, every = panels(policies, 1.0 + 2.2 * len(policies))
    right = shares.index.get_level_values("interval").max() + 1
    top = shares.sum(axis=1).max()
    colours = [GREY if name == OTHERS else COLOURS[k] for k, name in enumerate(shares.columns)]
    for axes, policy in zip(every, policies, strict=True):
        rows = shares.loc[policy]
        rows = pd.concat([rows, rows.iloc[-1:].set_axis([rows.index[-1] + 1])])  # the last share applies to the end
        areas = rows.to_numpy().T
        drawn = axes.stackplot(rows.index, areas, labels=rows.columns, colors=colours, step="post", lw=0)
        for k, area in enumerate(drawn):
            area.set(hatch=HATCHES[k % len(HATCHES)], edgecolor=EDGE)
        axes.set_xlim(0, right)
        axes.set_ylim(0, top)
        axes.set_ylabel("Share of the cluster (fraction)")
    every[-1].set_xlabel("Interval (number)")
    handles, names = every[0].get_legend_handles_labels()
    figure.legend(handles[::-1], names[::-1], loc="outside right upper")  # in the order of the areas
    figure.suptitle(title, x=0.01, ha="left")
    return figure


def calibration(frame: pd.DataFrame, title: str) -> "Figure":
    """Draw realised against expected returns: means of bins with equal numbers of decisions.

    Args:
        frame: with columns `q` and `realised`; rows that lack either are ignored.
        title: title of the figure; both correlations and the mean of q - realised are appended.

    Raises:
        ValueError: no row has both values.
    """
    both = frame[["q", "realised"]].dropna()
    if both.empty:
        raise ValueError("no decision has both a q and a realised return")
    pearson, spearman = _correlation(both), _correlation(both.rank())
    error = (both["q"] - both["realised"]).mean()
    figure, axes = canvas(f"{title}\nPearson {pearson}, Spearman {spearman}, mean error {error:+.3g}")
    bins = both.groupby(pd.qcut(both["q"].rank(method="first"), min(BINS, len(both)), labels=False))
    means, spread = bins.mean(), bins["realised"].std(ddof=0)
    ends = [means["q"].min(), means["q"].max()]
    axes.plot(ends, ends, color=GREY, linewidth=1, linestyle="--", label="as expected", gid=REFERENCE)
    label = "mean of a bin (bar: its standard deviation)"
    axes.errorbar(means["q"], means["realised"], spread, color=LEARNED[1], marker="o", elinewidth=0.8, label=label)
    axes.set_xlabel("Return expected: Q-value (reward)")
    axes.set_ylabel("Return realised (reward)")
    axes.legend(loc="best")
    return figure


def delay_by_load(summary: pd.DataFrame, title: str, agents: Collection[str] = ()) -> "Figure":
    """Draw the mean delay of each policy of one scenario over loads, with thicker lines for agents."""
    return by_load(summary, "delay", "Mean wait (time units)", title, agents, LOG_DELAY_ABOVE)


def _shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return shares by (policy, interval), a column per group: all, or the most variable and the sum of the others."""
    shares = frame.pivot_table("share", ["policy", "interval"], "group", aggfunc="sum", fill_value=0.0)
    names = [f"group {group}" for group in shares.columns]
    shares = shares.set_axis(names, axis="columns")
    if len(names) <= MOST_GROUPS:
        return shares
    varying = shares.groupby(level="policy").var(ddof=0).mean().sort_values(ascending=False, kind="stable")
    kept = shares[[name for name in names if name in varying.index[:SHOWN]]]
    return kept.assign(**{OTHERS: shares.sum(axis=1) - kept.sum(axis=1)})


def _correlation(both: pd.DataFrame) -> str:
    if both.nunique().min() < 2:
        return "undefined"
    return f"{np.corrcoef(both['q'], both['realised'])[0, 1]:.2f}"
