"""Tables of ../expert-iteration.md, from the files of `measure.py` and `machines.py` of commit ff8dfac."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from layout import difference, number, paired_by_seed, table

from pipeline.comparing.statistics import ALL, comparison
from pipeline.core.config import load_params

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SHOWN = {"online": ("sjf", "hold", "hold_until", "linear"), "streams": ("easy", "hold", "hold_until", "linear")}
LEARNED = ("deeprm3", "longer_mixture", "longer")
BEST = "best_heuristic"


def against(scenario: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the results of every jobset, and the paired differences between policies."""
    params, rows = load_params(ROOT / "params.yaml"), pd.read_csv(HERE / f"{scenario}.csv.gz")
    best = pd.read_csv(HERE / "best.csv").query("scenario == @scenario").set_index("load")["heuristic"].to_dict()
    references = {name: dict.fromkeys(best, name) for name in ("hold", "mixture", "longer_mixture")} | {BEST: best}
    rng = np.random.default_rng(params.seed)
    found = comparison(rows, scenario, references, params.evaluation, rng)
    return rows, found.set_index(["policy", "against", "load"]).sort_index()


def same_time() -> str:
    """Return the gain of expert iteration over an equal time of the policy gradient, from the same start."""
    written, count = [], []
    for scenario, kind in (("online", "short run"), ("streams", "stream")):
        rows, found = against(scenario)
        means = rows.groupby(["policy", "load"])["mean_slowdown"].mean()
        count.append(rows.groupby("load")["jobset"].nunique().iloc[0])
        for load in sorted(rows["load"].unique()):
            both = [number(means[name, load]) for name in ("mixture", "expert")]
            gain = difference(found.loc[("expert", "mixture", f"{load:03d}")])
            written.append([kind, f"{load} %", *both, gain])
        written.append([kind, "all", "", "", difference(found.loc[("expert", "mixture", ALL)])])
    head = ["jobs", "load", "mixture only", "then expert", f"difference, n = {count[0]} and {count[1]} a load"]
    return table(head, written, words=2)


def longest(scenario: str) -> str:
    """Return the means of heuristics and of the longest training, and its paired differences."""
    rows, found = against(scenario)
    means, written = rows.groupby(["policy", "load"])["mean_slowdown"].mean(), []
    names = (*SHOWN[scenario], *LEARNED)
    for load in sorted(rows["load"].unique()):
        apart = [difference(found.loc[("longer", other, f"{load:03d}")]) for other in ("hold", BEST, "longer_mixture")]
        written.append([f"{load} %", *(number(means[name, load]) for name in names), *apart])
    whole = [difference(found.loc[("longer", other, ALL)]) for other in ("hold", BEST, "longer_mixture")]
    written.append(["all", *[""] * len(names), *whole])
    return table(["load", *names, "longer to hold", "to the best heuristic", "to longer_mixture"], written)


def tails() -> str:
    """Return the mean over streams of the 99th percentile of slowdown."""
    rows = pd.read_csv(HERE / "streams.csv.gz")
    means, names = rows.groupby(["policy", "load"])["p99"].mean(), (*SHOWN["streams"], *LEARNED)
    written = [[f"{load} %", *(number(means[name, load]) for name in names)] for load in rows["load"].unique()]
    return table(["load", *names], written)


def tried() -> str:
    """Return notes of validation results on short runs only."""
    rows = pd.read_csv(HERE / "tried.csv")
    head = ["started from", "training", "processor time, s", "validation"]
    written = [[*map(str, row[:2]), f"{row[2]:.0f}", f"{row[3]:.3f}"] for row in rows.itertuples(index=False)]
    return table(head, written, words=2)


def machines() -> str:
    """Return the value of expert iteration on many machines over three training seeds, which the intervals include."""
    rows = pd.read_csv(HERE / "machines.csv.gz").assign(unfinished=0)
    times = pd.read_csv(HERE / "machines_times.csv").groupby("training", sort=False)
    means = rows.assign(way=rows["policy"].str[:-2]).groupby(["way", "load"])["mean_slowdown"].mean()
    written = []
    for way, took in times:
        each = [f"{mean:.3f}" for mean in means[way]]
        to = [_apart(rows, str(way), other) if way != other else "" for other in ("ppo", "ppo_longer")]
        judged = " / ".join(f"{value:.3f}" for value in took["validation"])
        written.append([way, f"{took['updates'].iloc[0]}", f"{took['seconds'].mean():.0f}", judged, *each, *to])
    loads = [f"{load} %" for load in sorted(rows["load"].unique())]
    head = ["training", "updates", "processor time, s", "validation of each seed", *loads]
    return table([*head, "to ppo, all loads", "to ppo_longer"], written)


def _apart(rows: pd.DataFrame, way: str, other: str) -> str:
    """Return the difference of three trainings from another method with the same seeds, over all loads."""
    params, seeds = load_params(ROOT / "params.yaml"), (1, 2, 3)
    mine, its = ([f"{name}_{seed}" for seed in seeds] for name in (way, other))
    to, rng = {other: dict.fromkeys(rows["load"].unique(), other)}, np.random.default_rng(params.seed)
    frame = paired_by_seed(rows, mine, its, other)
    found = comparison(frame, "machines", to, params.evaluation, rng, {way: mine})
    return difference(found.set_index(["policy", "load"]).loc[(way, ALL)])


TABLES = {
    "what was tried": tried,
    "the same time": same_time,
    "short runs": partial(longest, "online"),
    "streams": partial(longest, "streams"),
    "tails on streams": tails,
    "many machines": machines,
}
