"""Results of a sweep: each point against the best heuristic on test jobsets, with the mean over the seeds of a setting.

The best heuristic of each load was chosen on validation, and intervals are those of `compare`: over jobsets, and over
seeds if there are several. The best point must be chosen on validation jobsets: their cost is in the table, and the
lowest is marked. No point is chosen here.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.comparing import plots
from pipeline.comparing.comparing import BEST
from pipeline.comparing.resampling import windows
from pipeline.comparing.statistics import ALL, comparison
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.schemas.tables import CURVE
from pipeline.core.storage.results import Chosen
from pipeline.errors import UserError
from pipeline.farming.grid import Point
from pipeline.problems import problem_of
from pipeline.simulation.results import COST_COLUMNS, slowdown_column
from pipeline.tracking.digests import StoredOutputs, tree_of

EVERY = "all"  # seed in the row of a setting's mean
HEAD = ("", "setting", "seed", "validation", "test", "against the best heuristic")
NOT_CHOSEN = "* lowest on validation jobsets, the ones to choose by; the others are test jobsets. No point is chosen."
ROW_INCHES, MARGIN_INCHES = 0.42, 1.3


@dataclass(frozen=True)
class Saved:
    """A finished point."""

    point: Point
    name: str
    ref: str  # in git
    params: Params


@dataclass(frozen=True)
class Played:
    """Results of an agent at one point."""

    jobsets: pd.DataFrame  # on test jobsets, with the heuristics
    chosen: Chosen
    validation: float  # lowest cost during training


def sweep_table(saved: Sequence[Saved], agent: str) -> pd.DataFrame:
    """Return the table of one agent: a row for each point and each setting's mean. UserError if results are missing."""
    with tempfile.TemporaryDirectory() as scratch:
        return table(saved, agent, {one.name: _played(one, agent, Path(scratch)) for one in saved})


def table(saved: Sequence[Saved], agent: str, played: Mapping[str, Played]) -> pd.DataFrame:
    """Return the table of one agent from its results at each point, by the points' names."""
    settings: dict[str, list[Saved]] = {}
    for one in saved:
        settings.setdefault(one.point.setting, []).append(one)
    found = pd.DataFrame([row for seeds in settings.values() for row in _setting(seeds, agent, played)])
    # Compare means over seeds if there are several: the luckiest seed does not represent a setting.
    several = (found["seed"] == EVERY).any()
    compared = found["validation"].where((found["seed"] == EVERY) == several)
    found["lowest_validation"] = compared == compared.min()
    return found


def _setting(seeds: Sequence[Saved], agent: str, played: Mapping[str, Played]) -> list[dict[str, object]]:
    """Return the rows of points that differ only in their seed: the same jobsets, the same heuristics."""
    params, first = seeds[0].params, played[seeds[0].name]
    column, measure, best = _measure(params, agent, first)
    heuristics = first.jobsets[first.jobsets["policy"] != agent]
    own = {one.name: played[one.name].jobsets for one in seeds}
    mine = [frame[frame["policy"] == agent].assign(policy=name) for name, frame in own.items()]
    frame = pd.concat([heuristics[heuristics["policy"].isin(set(best.values()))], *mine], ignore_index=True)
    frame = frame.assign(mean_slowdown=frame[column])
    scenario = params.agents[agent].scenario
    with suppress(UserError):  # its jobsets are not drawn here
        if problem_of(params, scenario).comparison.tested(params, scenario).same_windows:
            frame = windows(frame)
    together = {EVERY: list(own)} if len(seeds) > 1 else {}
    rng = np.random.default_rng(params.seed)
    compared = comparison(frame, scenario, {BEST: best}, params.evaluation, rng, together)
    over = compared[compared["load"] == ALL].set_index("policy")
    shown = [(one.name, one.point.seed, played[one.name].validation) for one in seeds]
    mean = float(np.mean([value for *_, value in shown]))
    return [
        {
            "agent": agent,
            "setting": seeds[0].point.setting,
            "seed": "" if seed is None else str(seed),
            "measure": measure,
            "validation": value,
            "mean": over.loc[name, "mean"],
            "best_heuristic": over.loc[name, "mean_against"],
            **{column: over.loc[name, column] for column in ("difference", "difference_low", "difference_high", "n")},
        }
        for name, seed, value in [*shown, *((name, EVERY, mean) for name in together)]
    ]


def _measure(params: Params, agent: str, played: Played) -> tuple[str, str, dict[int, str]]:
    """Return the column of comparison, its name, and the best heuristic at each load.

    It is the agent's objective if heuristics were chosen by it, and else slowdown.
    """
    column, _ = COST_COLUMNS.get(params.agents[agent].objective, ("", 1))
    if column == "mean_wait" and played.chosen.best_delay:
        return column, "waiting time", played.chosen.best_delay
    column = slowdown_column(played.jobsets)
    return column, column.removeprefix("mean_").replace("_", " "), played.chosen.best


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
    cells: list[tuple[str, ...]] = [HEAD]
    for _, row in table.iterrows():
        validation, mean = f"{row['validation']:.4g}", f"{row['mean']:.4g}"
        low, middle, high = (100 * row[f"difference{end}"] for end in ("_low", "", "_high"))
        mark, gap = "*" if row["lowest_validation"] else "", f"{middle:+.1f} % ({low:.1f} to {high:.1f})"
        cells.append((mark, row["setting"] or "-", row["seed"] or "-", validation, mean, gap))
    widths = [max(len(line[place]) for line in cells) for place in range(len(HEAD))]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
    yield NOT_CHOSEN


def picture(table: pd.DataFrame) -> bytes:
    """Return the picture of one agent as PNG: a line per setting, a dot per seed, and the mean with its interval."""
    settings = list(dict.fromkeys(table["setting"]))
    agent = table["agent"].iloc[0]
    title = f"{agent} against the best heuristic, test jobsets"
    figure, axes = plots.canvas(title, MARGIN_INCHES + ROW_INCHES * max(len(settings), 2))
    for place, setting in enumerate(settings):
        rows = table[table["setting"] == setting]
        together = rows[rows["seed"] == EVERY]
        row = 100 * (rows if together.empty else together).iloc[0][["difference", "difference_low", "difference_high"]]
        mean, low, high = map(float, row)
        # Percentiles of few resamples need not contain their mean.
        ends = [[max(mean - low, 0.0)], [max(high - mean, 0.0)]]
        axes.errorbar([mean], [place], xerr=ends, fmt="s", color=plots.LEARNED[0], markersize=6, capsize=4, zorder=3)
        if not together.empty:
            seeds = 100 * rows.loc[rows["seed"] != EVERY, "difference"]
            axes.plot(seeds, [place] * len(seeds), "o", color=plots.LEARNED[1], markersize=4, alpha=0.6, zorder=2)
    axes.axvline(0, color=plots.GREY, linewidth=1, linestyle="--", zorder=1, gid=plots.REFERENCE)
    marked = set(table.loc[table["lowest_validation"], "setting"])
    names = [f"{setting or agent}{' *' if setting in marked else ''}" for setting in settings]
    axes.set_yticks(range(len(settings)), names)
    axes.set_ylim(len(settings) - 0.5, -0.5)
    axes.grid(axis="x", color="#E5E5E5", zorder=0)
    axes.set_xlabel(
        f"Mean {table['measure'].iloc[0]} against the best heuristic (%), below 0 is better\n"
        "dot: a seed; square: all, with its interval; * lowest on validation jobsets"
    )
    return plots.png(figure)
