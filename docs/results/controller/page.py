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
    "fixed": "`fixed`",
    "proportional": "`proportional`",
    "lookahead": "`lookahead`",
    "best_rule": "best rule by load",
    "pretrained": "pre-trained only",
    "oracle": "`oracle`",
    "undivided": "`undivided`",
}


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
        frame = paired_by_seed(rows, self.seeds, [f"{name}_pretrained" for name in self.seeds], "pretrained")
        to = {"pretrained": dict.fromkeys(best, "pretrained")}
        parts.append(_gaps(frame, scenario, to, self.seeds, settings))
        self.gaps = pd.concat(parts).set_index(["policy", "against", "load"]).sort_index()


def _gaps(
    rows: pd.DataFrame, scenario: str, to: Mapping[str, Mapping[int, str]], seeds: Sequence[str], settings: Evaluation
) -> pd.DataFrame:
    """Return the differences of the three runs' mean from each reference."""
    rng, trainings = np.random.default_rng(1), {"controllers": seeds}
    return comparison(rows, scenario, to, settings, rng, trainings, lambda policy, _: policy == "controllers")


def _means(rows: pd.DataFrame, seeds: Sequence[str]) -> pd.Series:
    """Return each policy's mean over loads, and that of the three runs together."""
    means = rows.groupby(["policy", "load"])["mean_slowdown"].mean().groupby("policy").mean()
    means["controller"] = means[list(seeds)].mean()
    return means


measured = cache(Measured)


def waiting() -> str:
    """Return mean waiting time over all loads, and the three runs' difference from each rule."""
    own = [f"**{number(measured(scenario, 'mean_wait').means['controller'])}**" for scenario in SCENARIOS]
    gaps = [measured(scenario, "mean_wait").gaps.loc["controllers"] for scenario in SCENARIOS]
    rows = [[name, *(_against(gap.loc[(rule, ALL)]) for gap in gaps)] for rule, name in RULES.items()]
    return table(["policy", *SCENARIOS.values()], [["**controller**", *own], *rows])


def _against(row: pd.Series) -> str:
    mean, low, high = (100 * row[name] for name in ("difference", "difference_low", "difference_high"))
    return f"{number(row['mean_against'])}: {mean:+.0f} % ({low:+.0f} to {high:+.0f})"


COMPARED = ("lookahead", "expecting", "undivided", "oracle", "controller")


def allocator() -> str:
    """Return each policy's mean and p99 of waits, and the three runs' difference over all loads."""
    rows = pd.read_csv(HERE / "allocator.csv.gz").assign(scenario="shares")
    rows = rows.assign(mean_slowdown=rows["mean_wait"])
    seeds, settings = [f"allocator_{seed}" for seed in (1, 2, 3)], load_params(ROOT / "params.yaml").evaluation
    rules = [name for name in COMPARED if name in set(rows["policy"])]
    rows = rows[rows["policy"].isin([*rules, *seeds])]
    loads = sorted(rows["load"].unique())
    to = {name: dict.fromkeys(loads, name) for name in rules}
    gaps = _gaps(rows, "shares", to, seeds, settings).set_index(["policy", "against", "load"]).loc["controllers"]
    whole = rows.replace({"policy": dict.fromkeys(seeds, "allocator")})
    means = whole.groupby(["policy", "load"])[["mean_wait", "p99_wait"]].mean()
    lines = []
    for name in ("allocator", *rules):
        cells = [" / ".join(number(value) for value in means.loc[(name, load)]) for load in loads]
        lines.append([f"`{name}`", *cells, difference(gaps.loc[(name, ALL)]) if name in rules else ""])
    return table(["policy", *(f"{load} %" for load in loads), "allocator, all loads"], lines)


TABLES = {
    "mean waiting time": waiting,
    "settings": lambda: as_published.overall("controller", ["source's settings", "two resources"]),
    "allocator": allocator,
}
