"""Where the points of a sweep stand: each against the best heuristic on test jobsets, seeds of a setting together.

The best heuristic of each load is the one that validation chose, and intervals are those of `compare`: over jobsets,
and of several seeds also over seeds. Which point is best is a choice, and a choice is made on validation jobsets: their
cost stands beside, and the lowest is marked. Nothing is chosen here.
"""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline import storage
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

EVERY = "all"  # of the row of a setting's seeds together


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
