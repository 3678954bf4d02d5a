"""Write, draw and print how a policy's decisions differ from a rule's, or what a policy with look-ahead tried."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.comparing.plots import GREY, LEARNED, REFERENCE, canvas, hatch, panels, png, slowdown_by_load
from pipeline.comparing.statistics import ALL
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.schemas.columns import integers, numbers, table
from pipeline.interactive.scheduling.schedule import must_apply
from pipeline.progress import ProgressCallback, progress, remark

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAVES = 24  # of a tree, by default
ACROSS = 3  # small panels
DARK = 0.6  # text is white above this share
PARTS = {
    "agrees": ("as SJF", "#BBBBBB"),
    "another_machine": ("its job on another machine", LEARNED[1]),
    "another_job": ("another job", LEARNED[0]),
    "waits": ("none", LEARNED[2]),
}
LABELS = {"load": "Load (%)", "waiting": "Waiting (jobs)", "free": "Lowest free share of a resource (%)"}


class ExplainRequest(NamedTuple):
    """The policy to explain, its scenario, and the amount of data."""

    agent: str  # or a plan, or any other policy by name
    jobsets: int  # maximum for each load and split
    leaves: int = LEAVES  # maximum number, of the tree
    scenario: str | None = None  # None: the agent's own

    @property
    def title(self) -> str:
        """Return the policy's name in files and text."""
        return Path(self.agent).name


class Explained(NamedTuple):
    """Files to write and lines to print for a policy."""

    tables: Mapping[str, tuple[pd.DataFrame, pa.DataFrameSchema]]
    figures: "Mapping[str, Figure]"
    lines: Sequence[str]
    files: Mapping[str, str] = {}  # other text files, by name


class Explaining(NamedTuple):
    """How a problem explains policies."""

    # (params, scenario, request) -> a function of a callback for progress in percent, which it takes to 100
    ready: Callable[[Params, str, ExplainRequest], Callable[[ProgressCallback], Explained]]
    refused: Mapping[str, str] = {}  # options that do not apply, with reasons


def explain(how: Explaining, params: Params, request: ExplainRequest) -> None:
    """Write reports/explain/<policy>, and print a summary."""
    scenario = request.scenario or {**params.agents, **params.plans}[request.agent].scenario
    must_apply(request._replace(scenario=scenario), how.refused)
    folder, title = storage.REPORTS / "explain" / request.title, f"explain {request.title}, percent"
    run = how.ready(params, scenario, request)
    with progress(title, 100) as advance:
        found = run(advance)
    pictures = {name: png(figure) for name, figure in found.figures.items()}
    storage.discard(folder)
    for name, (rows, schema) in found.tables.items():
        storage.write_table(folder / f"{name}.csv", rows, schema)
    for name, picture in pictures.items():
        storage.write(folder / f"{name}.png", picture)
    for name, text in found.files.items():
        storage.write(folder / name, text.encode())
    for line in found.lines:
        remark(line)
    remark(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


# Rank 0 is the base's own action. A duration of 0 means no job: time passes. The demand is the largest share of all
# machines that the job holds; `machine` is the number of the machine it would start on. The gain is the slowdown that
# the action saves, summed over waiting and future jobs; gain and error are those of the mean over futures. If all jobs
# are known and a network continues in several ways, the gain compares the best of these and has no error.
CANDIDATES = table(
    "Candidates",
    {name: integers(0) for name in ("load", "jobset", "decision")}
    | {"now": numbers(0.0), "rank": integers(0), "duration": numbers(0.0), "demand": numbers(0.0)}
    | {"machine": integers(0), "gain": pa.Column("float64")}
    | {"error": numbers(0.0, nullable=True), "futures": integers(1), "taken": pa.Column("bool")},
    ["load", "jobset", "decision", "rank"],
)


def candidates_in_words(plan: str, base: str, frame: pd.DataFrame) -> list[str]:
    """Summarize the candidates of a policy that improves another one."""
    key = ["load", "jobset", "decision"]
    first, taken = frame[frame["rank"] == 0], frame[frame["taken"]]
    decisions, other = len(first), taken[taken["rank"] > 0]
    lines = [
        f"{plan}: tried {len(frame)} candidates in {decisions} decisions; took another action than {base} in "
        f"{len(other)} ({100 * len(other) / max(decisions, 1):.1f} %)"
    ]
    before = first.set_index(key)["duration"].reindex(pd.MultiIndex.from_frame(other[key])).to_numpy()
    for text, which in (
        ("let time pass instead of starting a job", other["duration"] == 0),
        ("started a job instead of letting time pass", before == 0),
        ("started another job", (other["duration"] > 0) & (before > 0)),
    ):
        some = other[np.asarray(which)]
        if len(some):
            lines.append(f"{text}: {len(some)} times, expected to save {some['gain'].mean():.3f} slowdowns each")
    return lines


def figures(agent: str, tables: Mapping[str, pd.DataFrame], labels: Mapping[str, str]) -> "dict[str, Figure]":
    """Return the figures of a policy that places jobs, by name; `labels` are those of features."""
    title = f"Share of jobs that {agent} withholds, by one feature (area: how many)"
    compared, policies = tables["outcomes"], [agent, f"{agent}_tree"]
    drawn = {
        "differences": _differences(agent, tables["differences"]),
        "classes": _classes(agent, tables["classes"], labels["duration"]),
        "effects": by_feature(title, tables["effects"], "withheld", labels, (-0.05, 1.05), "Withheld (fraction)"),
        "outcomes": _slowdowns(f"{agent}, its tree and rules", compared[compared["jobs"] == "all"], policies),
    }
    return {name: figure for name, figure in drawn.items() if name == "differences" or len(tables[name])}


def _differences(agent: str, table: pd.DataFrame) -> "Figure":
    figure, every = panels([f"{agent} and SJF, in the decisions of {agent}", "", ""], 9.0)
    for axes, (by, label) in zip(every, LABELS.items(), strict=True):
        rows = table[table["by"] == by]
        times, rows_of = (100 if by == "free" else 1), zip(rows["from"], rows["to"], rows["decisions"], strict=True)
        names = [f"{_span(times * low, times * high)}\nn = {n:,}" for low, high, n in rows_of]
        places, bottom = np.arange(len(rows)), np.zeros(len(rows))
        for k, (column, (part, colour)) in enumerate(PARTS.items()):
            if table[column].any():
                hatch(axes.bar(places, 100 * rows[column], bottom=bottom, color=colour, label=part), k)
                bottom = bottom + 100 * rows[column].to_numpy()
        axes.set_xticks(places, names, fontsize=8)
        axes.set_xlabel(label)
        axes.set_ylabel("Share of decisions (%)")
    every[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _classes(agent: str, table: pd.DataFrame, label: str) -> "Figure":
    figure, axes = canvas(f"How often {agent} withholds a job that could start", 4.5)
    axes.grid(visible=False)
    grid, count = (table.pivot(index="demand_from", columns="duration_from", values=name) for name in ("withheld", "n"))
    drawn = axes.imshow(grid.to_numpy(), vmin=0.0, vmax=1.0, cmap="Blues", aspect="auto", origin="lower")
    for (row, column), share in np.ndenumerate(grid.to_numpy()):
        text = "none" if np.isnan(share) else f"{100 * share:.0f} %\nn = {count.to_numpy()[row, column]}"
        colour = "white" if share > DARK else "black"
        axes.annotate(text, (column, row), ha="center", va="center", fontsize=8, color=colour)
    for name, ticks in (("duration", axes.set_xticks), ("demand", axes.set_yticks)):
        kinds = table.drop_duplicates(f"{name}_from")
        bounds = zip(kinds[f"{name}_from"], kinds[f"{name}_to"], strict=True)
        ticks(range(len(kinds)), [_span(*pair) for pair in bounds])
    axes.set_xlabel(label[:1].upper() + label[1:])
    axes.set_ylabel("Largest share it demands (fraction)")
    figure.colorbar(drawn, ax=axes, label="Share withheld (fraction)")
    return figure


def by_feature(
    title: str, table: pd.DataFrame, column: str, labels: Mapping[str, str], limits: tuple[float, float], label: str
) -> "Figure":
    """Draw a column over the bins of each feature, in small panels; a point's area shows the size of its bin."""
    from matplotlib.figure import Figure

    names = [name for name in labels if name in set(table["feature"])]
    down = -(-len(names) // ACROSS)
    figure = Figure(figsize=(10, 0.7 + 2.2 * down), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left")
    for place, name in enumerate(names):
        axes, rows = figure.add_subplot(down, ACROSS, place + 1), table[table["feature"] == name]
        axes.axhline(0, color=GREY, linewidth=0.8, linestyle="--", gid=REFERENCE)
        axes.plot(rows["mean"], rows[column], color=GREY, linewidth=1.0, zorder=1)
        axes.scatter(rows["mean"], rows[column], s=120 * rows["n"] / rows["n"].max(), color=LEARNED[0], zorder=2)
        axes.set_ylim(*limits)
        axes.set_xlabel(labels[name], fontsize=8)
        axes.set_ylabel(label if place % ACROSS == 0 else "", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#E5E5E5", zorder=0)
    return figure


def _slowdowns(title: str, table: pd.DataFrame, learned: Sequence[str]) -> "Figure":
    """Draw the mean slowdown of policies by load, from COMPARISON."""
    columns = {"mean": "slowdown", "low": "slowdown_low", "high": "slowdown_high"}
    drawn = table[table["load"] != ALL].rename(columns=columns).drop_duplicates(["load", "policy"])
    drawn = drawn.assign(load=drawn["load"].astype(int))
    return slowdown_by_load(drawn, title, learned)


def _span(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g}-{high:g}"
