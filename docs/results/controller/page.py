"""Tables of ../controller.md, from the data that `tables.py` and the stages of params.yaml in this folder wrote."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import as_published
import numpy as np
import pandas as pd
from layout import difference, number, paired_by_seed, table

from pipeline.comparing.statistics import ALL, comparison
from pipeline.core.config import Evaluation, load_params

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SCENARIOS = {
    "shares_4": "4 groups",
    "shares_20": "20",
    "shares_80": "80",
    "hpc2n_4": "HPC2N, 4",
    "hpc2n_20": "HPC2N, 20",
    "hpc2n_4_borrowing": "HPC2N, 4, borrowing",
}
RULES = {
    "equal": "`equal`",
    "fixed": "`fixed`",
    "proportional": "`proportional`",
    "drf": "`drf`",
    "capacity": "`capacity`",
    "shortest_first": "`shortest_first`",
    "lookahead": "`lookahead`",
    "best_rule": "best rule by load",
    "pretrained": "pre-trained only",
    "own": "each group's own best",
    "oracle": "`oracle`",
    "undivided": "`undivided`",
}

COMPARED = ("proportional", "drf", "capacity", "shortest_first", "lookahead", "undivided")


class Measured:
    """Results of one scenario: policy means over loads, and the controller's differences from each rule."""

    def __init__(self, scenario: str, measure: str) -> None:
        rows = pd.read_csv(HERE / "jobsets.csv.gz").query("scenario == @scenario").dropna(axis=1, how="all")
        best = pd.read_csv(HERE / "best.csv").query("scenario == @scenario").set_index("load")["rule"].to_dict()
        self.seeds = [f"c_{scenario}_{seed}" for seed in (1, 2, 3)]
        rows = rows.assign(mean_slowdown=rows[measure])
        if "unit" in rows:  # gaps make it a float column
            rows["unit"] = rows["unit"].astype(int)
        settings, self.means = load_params(ROOT / "params.yaml").evaluation, _means(rows, self.seeds)
        rules = [name for name in rows["policy"].unique() if not name.startswith("c_")]
        to = {name: dict.fromkeys(best, name) for name in rules} | {"best_rule": best}
        parts = [_gaps(rows, scenario, to, self.seeds, settings)]
        for kind in ("pretrained", "own"):
            frame = paired_by_seed(rows, self.seeds, [f"{name}_{kind}" for name in self.seeds], kind)
            parts.append(_gaps(frame, scenario, {kind: dict.fromkeys(best, kind)}, self.seeds, settings))
        self.gaps = pd.concat(parts).set_index(["policy", "against", "load"]).sort_index()


def _gaps(
    rows: pd.DataFrame, scenario: str, to: Mapping[str, Mapping[int, str]], seeds: Sequence[str], settings: Evaluation
) -> pd.DataFrame:
    """Return the differences of the three trainings' mean from each reference."""
    rng, trainings = np.random.default_rng(1), {"controllers": seeds}
    return comparison(rows, scenario, to, settings, rng, trainings, lambda policy, _: policy == "controllers")


def _means(rows: pd.DataFrame, seeds: Sequence[str]) -> pd.Series:
    """Return each policy's mean over loads, and that of the three trainings together."""
    means = rows.groupby(["policy", "load"])["mean_slowdown"].mean().groupby("policy").mean()
    means["controller"] = means[list(seeds)].mean()
    return means


measured = cache(Measured)


def waiting() -> str:
    """Return mean waiting time over all loads, and the three trainings' difference from each rule."""
    own = [f"**{number(measured(scenario, 'mean_wait').means['controller'])}**" for scenario in SCENARIOS]
    gaps = [measured(scenario, "mean_wait").gaps.loc["controllers"] for scenario in SCENARIOS]
    rows = [[name, *(_against(gap.loc[(rule, ALL)]) for gap in gaps)] for rule, name in RULES.items()]
    return table(["policy", *SCENARIOS.values()], [["**controller**", *own], *rows])


def slowdown() -> str:
    """Return the controller's differences from some rules in mean slowdown over all loads."""
    rows = []
    for scenario, name in SCENARIOS.items():
        gaps = measured(scenario, "mean_slowdown").gaps.loc["controllers"]
        rows.append([name, *(_against(gaps.loc[(rule, ALL)]) for rule in COMPARED)])
    return table(["groups", *(f"`{rule}`" for rule in COMPARED)], rows)


def _against(row: pd.Series) -> str:
    mean, low, high = (100 * row[name] for name in ("difference", "difference_low", "difference_high"))
    return f"{number(row['mean_against'])}: {mean:+.0f} % ({low:+.0f} to {high:+.0f})"


def highest() -> str:
    """Return p99 of slowdown and Jain's index of slowdown over groups at the highest load."""
    found, rows = pd.read_csv(HERE / "jobsets.csv.gz"), []
    for scenario, name in SCENARIOS.items():
        part = found[found["scenario"] == scenario]
        means = part[part["load"] == part["load"].max()].groupby("policy")[["p99_slowdown", "jain_slowdown"]].mean()
        own = means.loc[[f"c_{scenario}_{seed}" for seed in (1, 2, 3)]].mean()
        cells = [own, *(means.loc[rule] for rule in COMPARED)]
        rows.append([name, *(f"{number(cell['p99_slowdown'])} / {cell['jain_slowdown']:.2f}" for cell in cells)])
    return table(["groups", "controller", *(f"`{rule}`" for rule in COMPARED)], rows)


def seeds() -> str:
    """Return each training's mean waiting time over all loads."""
    rows = []
    for scenario, name in SCENARIOS.items():
        found = measured(scenario, "mean_wait")
        rows.append([name, *(number(found.means[seed]) for seed in found.seeds)])
    return table(["groups", "seed 1", "seed 2", "seed 3"], rows)


def off_policy() -> str:
    """Return the errors of fitted Q evaluation against the simulator, over the 18 estimates of three runs."""
    found = pd.read_csv(HERE / "off_policy.csv")
    rows = []
    for scenario, name in SCENARIOS.items():
        mine = found[found["scenario"] == scenario]

        rank = mine["estimate"].rank().corr(mine["truth"].rank())
        rows.append([name, f"{100 * mine['error'].abs().mean():.0f} %", f"{rank:.2f}"])
    return table(["groups", "mean absolute error", "rank correlation"], rows)


COMPARED_WITH_ALLOCATOR = ("lookahead", "expecting", "undivided", "proportional", "oracle", "controller")


def allocator() -> str:
    """Return each policy's mean, p99 and longest wait and makespan, and the three trainings' differences."""
    rows = pd.read_csv(HERE / "allocator.csv.gz").assign(scenario="shares")
    rows = rows.assign(mean_slowdown=rows["mean_wait"])
    seeds, settings = [f"allocator_{seed}" for seed in (1, 2, 3)], load_params(ROOT / "params.yaml").evaluation
    rules = [name for name in COMPARED_WITH_ALLOCATOR if name in set(rows["policy"])]
    rows = rows[rows["policy"].isin([*rules, *seeds])]
    loads = sorted(rows["load"].unique())
    to = {name: dict.fromkeys(loads, name) for name in rules}
    gaps = _gaps(rows, "shares", to, seeds, settings).set_index(["policy", "against", "load"]).loc["controllers"]
    whole = rows.replace({"policy": dict.fromkeys(seeds, "allocator")})
    means = whole.groupby(["policy", "load"])[["mean_wait", "p99_wait", "longest_wait", "makespan"]].mean()
    lines = []
    for name in ("allocator", *rules):
        cells = [" / ".join(number(value) for value in means.loc[(name, load)]) for load in loads]
        away = [difference(gaps.loc[(name, load)]) for load in gaps.loc[name].index] if name in rules else [""] * 4
        lines.append([f"`{name}`", *cells, *away])
    head = [f"{load} %" for load in loads]
    return table(["policy", *head, *(f"allocator, {load}" for load in head), "all loads"], lines)


TABLES = {
    "allocator": allocator,
    "mean waiting time": waiting,
    "slowdown": slowdown,
    "at the highest load": highest,
    "seeds": seeds,
    "off-policy evaluation": off_policy,
    **as_published.tables("controller"),
}
