"""Figures of what an agent does differently."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.comparing.plots import LEARNED, canvas
from pipeline.explaining.figures import by_feature, slowdowns, span, stacked
from pipeline.problems.pool.explaining.tree import FEATURES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = {
    "agrees": ("as SJF", "#BBBBBB"),
    "withholds": ("starts none", LEARNED[0]),
    "starts_another": ("another job", LEARNED[1]),
}
DARK = 0.6  # share from which text is white


def figures(agent: str, tables: Mapping[str, pd.DataFrame]) -> "dict[str, Figure]":
    """Return the figures of an agent by name."""
    withheld = f"Share of jobs that {agent} withholds, by one feature (area: how many)"
    compared, policies = tables["outcomes"], [agent, f"{agent}_tree"]
    return {
        "differences": _differences(agent, tables["differences"]),
        "classes": _classes(agent, tables["classes"]),
        "effects": by_feature(withheld, tables["effects"], "withheld", FEATURES, (-0.05, 1.05)),
        "outcomes": slowdowns(f"{agent}, its tree and heuristics", compared[compared["jobs"] == "all"], policies),
    }


def _differences(agent: str, table: pd.DataFrame) -> "Figure":
    figure, axes = canvas(f"{agent} beside SJF, in its own decisions")
    stacked(axes, [str(load) for load in table["load"]], table, PARTS)
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
        range(len(longs)), [span(*pair) for pair in zip(longs["duration_from"], longs["duration_to"], strict=True)]
    )
    axes.set_yticks(
        range(len(wides)), [span(*pair) for pair in zip(wides["demand_from"], wides["demand_to"], strict=True)]
    )
    axes.set_xlabel("Duration (steps)")
    axes.set_ylabel("Largest share it demands")
    figure.colorbar(drawn, ax=axes, label="Share withheld")
    return figure
