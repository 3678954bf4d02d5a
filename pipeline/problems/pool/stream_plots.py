"""Figures of streams: how the backlog grows."""

from collections.abc import Collection
from typing import TYPE_CHECKING

import pandas as pd

from pipeline.comparing.plots import line, looks, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL = 2.4  # inches


def backlog_growth(
    frame: pd.DataFrame, title: str, learned: Collection[str] = (), measured: tuple[int, int] | None = None
) -> "Figure":
    """Draw the jobs waiting over the steps of a stream: a panel a load, a line a policy, mean over jobsets.

    Panels have axes of their own: a backlog that grows is far longer than one that does not.

    Raises:
        ValueError: the frame has no rows.
    """
    if frame.empty:
        raise ValueError("a backlog without rows cannot be drawn")
    loads = sorted(frame["load"].unique())
    figure, every = panels([f"Load {load} %" for load in loads], 1.0 + PANEL * len(loads))
    means = frame.groupby(["load", "policy", "step"])["waiting"].mean()
    for axes, load in zip(every, loads, strict=True):
        if measured is not None:
            axes.axvspan(*measured, color="#F2F2F2", zorder=0)
        for policy, look in looks(frame["policy"].unique(), learned).items():
            waiting = means.loc[load, policy]
            line(axes, policy, waiting.index, waiting, look)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("Jobs waiting")
    every[-1].set_xlabel("Step (shaded: measured)" if measured is not None else "Step")
    figure.legend(*every[0].get_legend_handles_labels(), loc="outside right upper")
    figure.suptitle(title, x=0.01, ha="left")
    return figure
