"""Where the points of a sweep stand: each against the best heuristic on test jobsets, seeds of a setting together.

The best heuristic of each load is the one that validation chose, and intervals are those of `compare`: over jobsets,
and of several seeds also over seeds. Which point is best is a choice, and a choice is made on validation jobsets: their
cost stands beside, and the lowest is marked. Nothing is chosen here.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline import storage
from pipeline.comparing import plots
from pipeline.comparing.comparing import BEST
from pipeline.comparing.resampling import windows
from pipeline.comparing.statistics import ALL, comparison
from pipeline.config import Params
from pipeline.errors import UserError
from pipeline.farming.grid import Point
from pipeline.problems import problem_of
from pipeline.schemas import CURVE
from pipeline.simulation.results import COST_COLUMNS, slowdown_column
from pipeline.storage.results import Chosen
from pipeline.tracking.source_tree import tree_of
from pipeline.tracking.stored_outputs import StoredOutputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVERY = "all"  # of the row of a setting's seeds together
HEAD = ("", "setting", "seed", "validation", "test", "against the best heuristic")
NOT_CHOSEN = (
    "* lowest on validation jobsets, which are there to choose by; the others are test jobsets. Nothing is chosen."
)
ROW_INCHES, MARGIN_INCHES = 0.42, 1.3


@dataclass(frozen=True)
class Saved:
    """A point that was made."""

    point: Point
    name: str
    ref: str  # of git
    params: Params


@dataclass(frozen=True)
class Played:
    """What an agent of one point did."""

    jobsets: pd.DataFrame  # its test jobsets, and those of the heuristics
    chosen: Chosen
    validation: float  # the lowest of its training


def standing(saved: Sequence[Saved], agent: str) -> pd.DataFrame:
    """Return the table of one agent: a row a point, and one for the seeds of a setting together.

    Raises:
        UserError: results of a point are in no cache here.
    """
    with tempfile.TemporaryDirectory() as scratch:
        return table(saved, agent, {one.name: _played(one, agent, Path(scratch)) for one in saved})


def table(saved: Sequence[Saved], agent: str, played: Mapping[str, Played]) -> pd.DataFrame:
    """Return the table of one agent from what it did at each point, by the points' names."""
    settings: dict[str, list[Saved]] = {}
    for one in saved:
        settings.setdefault(one.point.setting, []).append(one)
    rows = [row for alike in settings.values() for row in _setting(alike, agent, played)]
    found = pd.DataFrame(rows)
    # Of seeds together where there are several, for the luckiest seed is no setting.
    several = (found["seed"] == EVERY).any()
    compared = found["validation"].where((found["seed"] == EVERY) == several)
    found["lowest_validation"] = compared == compared.min()
    return found


def _setting(alike: Sequence[Saved], agent: str, played: Mapping[str, Played]) -> list[dict[str, object]]:
    """Return the rows of points that differ by their seed alone: the same jobsets, the same heuristics."""
    params, first = alike[0].params, played[alike[0].name]
    column, measure, best = _measure(params, agent, first)
    heuristics = first.jobsets[first.jobsets["policy"] != agent]
    own = [played[one.name].jobsets for one in alike]
    mine = [frame[frame["policy"] == agent].assign(policy=one.name) for frame, one in zip(own, alike, strict=True)]
    frame = pd.concat([heuristics[heuristics["policy"].isin(set(best.values()))], *mine], ignore_index=True)
    frame = frame.assign(mean_slowdown=frame[column])
    scenario = params.agents[agent].scenario
    frame = windows(frame) if _same_windows(params, scenario) else frame
    together = {EVERY: [one.name for one in alike]} if len(alike) > 1 else {}
    rng = np.random.default_rng(params.seed)
    compared = comparison(frame, scenario, {BEST: best}, params.evaluation, rng, together)
    over = compared[compared["load"] == ALL].set_index("policy")
    validation = [played[one.name].validation for one in alike]
    shown = [(one.name, one.point.seed, value) for one, value in zip(alike, validation, strict=True)]
    return [
        {
            "agent": agent,
            "setting": alike[0].point.setting,
            "seed": "" if seed is None else str(seed),
            "measure": measure,
            "validation": value,
            "mean": over.loc[name, "mean"],
            "best_heuristic": over.loc[name, "mean_against"],
            **{column: over.loc[name, column] for column in ("difference", "difference_low", "difference_high", "n")},
        }
        for name, seed, value in [*shown, *((name, EVERY, float(np.mean(validation))) for name in together)]
    ]


def _measure(params: Params, agent: str, played: Played) -> tuple[str, str, dict[int, str]]:
    """Return the column by which an agent is compared, its name, and the best heuristic at each load.

    That is what it was trained for, where heuristics were chosen by it, and else slowdown.
    """
    column, _ = COST_COLUMNS.get(params.agents[agent].objective, ("", 1))
    if column == "mean_wait" and played.chosen.best_delay:
        return column, "waiting time", played.chosen.best_delay
    column = slowdown_column(played.jobsets)
    return column, column.removeprefix("mean_").replace("_", " "), played.chosen.best


def _same_windows(params: Params, scenario: str) -> bool:
    with suppress(UserError):  # its jobsets are not drawn here
        return problem_of(params, scenario).comparison.tested(params, scenario).same_windows
    return False


def _played(saved: Saved, agent: str, scratch: Path) -> Played:
    params, scenario = saved.params, saved.params.agents[agent].scenario
    tree, stored = tree_of(saved.ref, saved.name), StoredOutputs(scratch / saved.name, saved.ref)
    md5s = {out["path"]: out["md5"] for stage in tree.lock.values() for out in stage.get("outs", []) if "md5" in out}

    def found(path: Path) -> Path:
        place = stored.find(path.as_posix(), md5s.get(path.as_posix(), ""))
        if place is None:
            raise UserError(
                f"farm: {saved.name}: {path} is in no cache here: dvc exp apply {saved.name}, then dvc repro"
            )
        return place

    schema = problem_of(params, scenario).tables.jobsets
    heuristics, own = (
        found(storage.results_folder(kind, name)) for kind, name in (("heuristics", scenario), ("agents", agent))
    )
    tables = [storage.read_table(place / "jobsets.parquet", schema) for place in (heuristics, own)]
    tables[1] = tables[1][tables[1]["policy"] == agent]
    curve = storage.read_table(found(storage.curve_file(agent, "finetune")), CURVE)
    validation = curve.loc[curve["metric"] == "validation", "value"].min()
    chosen = Chosen.model_validate(storage.read_json(heuristics / "chosen.json"))
    return Played(pd.concat(tables, ignore_index=True), chosen, float(validation))


def lines(table: pd.DataFrame) -> Iterator[str]:
    """Yield the table of one agent as lines of text; differences in percent, below 0 is better."""
    first = table.iloc[0]
    yield f"{first['agent']}: mean {first['measure']} over all loads, n {first['n']}; below 0 is better"
    cells = [HEAD, *(_cells(row) for _, row in table.iterrows())]
    widths = [max(len(row[place]) for row in cells) for place in range(len(HEAD))]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield NOT_CHOSEN


def _cells(row: pd.Series) -> tuple[str, ...]:
    low, high = 100 * row["difference_low"], 100 * row["difference_high"]
    return (
        "*" if row["lowest_validation"] else "",
        row["setting"] or "-",
        row["seed"] or "-",
        f"{row['validation']:.4g}",
        f"{row['mean']:.4g}",
        f"{100 * row['difference']:+.1f} % ({low:.1f} to {high:.1f})",
    )


def picture(table: pd.DataFrame) -> bytes:
    """Return the picture of one agent as PNG: a line a setting, a dot a seed, and the mean of all with its interval."""
    settings = list(dict.fromkeys(table["setting"]))
    agent = table["agent"].iloc[0]
    title = f"{agent} against the best heuristic, test jobsets"
    figure, axes = plots.canvas(title, MARGIN_INCHES + ROW_INCHES * max(len(settings), 2))
    for place, setting in enumerate(settings):
        rows = table[table["setting"] == setting]
        together = rows[rows["seed"] == EVERY]
        _whole(axes, place, (rows if together.empty else together).iloc[0])
        if not together.empty:
            seeds = 100 * rows.loc[rows["seed"] != EVERY, "difference"]
            axes.plot(seeds, [place] * len(seeds), "o", color=plots.LEARNED[1], markersize=4, alpha=0.6, zorder=2)
    axes.axvline(0, color=plots.GREY, linewidth=1, linestyle="--", zorder=1)
    marked = set(table.loc[table["lowest_validation"], "setting"])
    names = [f"{setting or agent}{' *' if setting in marked else ''}" for setting in settings]
    axes.set_yticks(range(len(settings)), names)
    axes.set_ylim(len(settings) - 0.5, -0.5)
    axes.grid(axis="x", color="#E5E5E5", zorder=0)
    axes.set_xlabel(
        f"Mean {table['measure'].iloc[0]}, percent from the best heuristic, below 0 is better\n"
        "dot: a seed; square: all, with its interval; * lowest on validation jobsets"
    )
    return plots.png(figure)


def _whole(axes: "Axes", place: int, row: pd.Series) -> None:
    mean = 100 * row["difference"]
    # Percentiles of few resamples need not hold their mean.
    ends = [[max(mean - 100 * row["difference_low"], 0.0)], [max(100 * row["difference_high"] - mean, 0.0)]]
    axes.errorbar(
        [100 * row["difference"]],
        [place],
        xerr=ends,
        fmt="s",
        color=plots.LEARNED[0],
        markersize=6,
        capsize=4,
        zorder=3,
    )
