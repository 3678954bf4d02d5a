"""Tables of ../deeprm3.md, from the data that `measure.py` and `train.py` of this folder wrote."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import as_published
import numpy as np
import pandas as pd
from layout import difference, table

from pipeline.comparing.statistics import ALL, comparison
from pipeline.core.config import load_params

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
AGENT, SEEDS, BEST = "deeprm3", ("deeprm3_1", "deeprm3_2", "deeprm3_3"), "best_heuristic"
LONGER = "deeprm3_1x600"  # 600 updates instead of 300
AGAINST = ("hold_long", BEST)
TITLES = {
    "slots_5": "5 slots",
    "slots_20": "20 slots",
    "slots_60": "60 slots",
    "slots_128": "128 slots",
    "capacity_20": "20 units of each resource",
    "capacity_40": "40 units",
    "three": "three resources of 20 units",
    "text": "demands of DeepRM's text, 20 units",
    "mix_flat": "60 % of 1 to 5 steps, the rest of 8 to 20",
    "mix_short": "70 % of 1 or 2 steps, the rest of 5 to 8",
    "horizon_40": "horizon of 40 steps",
    "bernoulli": "at most one job a step",
    "bursts": "bursts of 5 jobs",
    "estimates": "estimates, log-normal noise of 0.5",
    "hpc2n_durations": "HPC2N at its own load, durations known",
    "hpc2n_estimates": "HPC2N at its own load, users' estimates",
}
TAILS = ("p99", "longest_wait")


class Measured:
    """Results of one problem: every jobset, means, and differences between policies."""

    def __init__(self, name: str) -> None:
        params = load_params(ROOT / "params.yaml")
        self.rows = pd.read_csv(HERE / f"{name}.csv.gz")
        best = pd.read_csv(HERE / "best.csv").query("problem == @name").set_index("load")["heuristic"]
        self.trainings = [name for name in (*SEEDS, LONGER) if name in set(self.rows["policy"])]
        self.best = {int(load): str(heuristic) for load, heuristic in best.items()}
        self.loads = list(self.best)
        references = {to: dict.fromkeys(self.best, to) for to in ("sjf", "hold_long", "linear")} | {BEST: self.best}
        mean = self.rows[self.rows["policy"].isin(SEEDS)].groupby(["load", "jobset"])["mean_slowdown"].mean()
        frame = pd.concat([self.rows, mean.reset_index().assign(policy=AGENT, unfinished=0)])
        rng, settings = np.random.default_rng(params.seed), params.evaluation
        trainings = {f"{AGENT} of three seeds": SEEDS}
        found = comparison(frame, name, references, settings, rng, trainings)
        self.found = found.set_index(["policy", "against", "load"]).sort_index()
        self.means = frame.groupby(["policy", "load"])["mean_slowdown"].mean()

    def mean(self, policy: str, load: int) -> str:
        """Return a mean slowdown, formatted."""
        return f"{self.means[policy, load]:.4g}"

    def gap(self, to: str, load: int | str = ALL, policy: str = f"{AGENT} of three seeds") -> str:
        """Return a difference with its interval, by default of the three trainings' mean, over jobsets and seeds."""
        key = load if isinstance(load, str) else f"{load:03d}"
        return difference(self.found.loc[(policy, to, key)])

    def short(self, to: str, load: int) -> str:
        """Return the difference of the three trainings' mean in percent, without its interval."""
        row = self.found.loc[(f"{AGENT} of three seeds", to, f"{load:03d}")]
        return f"{100 * row['difference']:+.1f}"


measured = cache(Measured)


def by_load(name: str, policies: Sequence[str], to: Sequence[str] = AGAINST) -> str:
    """Return a table with a row a load: means, and the differences of the three trainings' mean."""
    found = measured(name)
    rows = [
        [
            f"{load} %",
            *(found.mean(policy, load) for policy in (*policies, AGENT)),
            *(found.gap(other, load) for other in to),
            found.best[load],
        ]
        for load in found.loads
    ]
    rows.append(["all", *[""] * (len(policies) + 1), *(found.gap(other) for other in to), ""])
    titles = (f"{AGENT} to {other.replace('_', ' ') if other == BEST else other}" for other in to)
    return table(["load", *policies, AGENT, *titles, "which is"], rows)


def seeds(name: str) -> str:
    """Return a table of each training's difference from the best heuristic."""
    found = measured(name)
    rows = [[seed, *(found.gap(BEST, load, seed) for load in (*found.loads, ALL))] for seed in found.trainings]
    return table(["training", *(f"{load} %" for load in found.loads), "all"], rows)


def tails(name: str) -> str:
    """Return the 99th percentile of slowdown and the longest wait in steps on streams; for trainings, their mean."""
    found, rows = measured(name), []
    rules = sorted({"sjf", "hold_long", "easy", "linear", *found.best.values()})
    for policy, names in {AGENT: SEEDS, **{rule: (rule,) for rule in rules}}.items():
        means = found.rows[found.rows["policy"].isin(names)].groupby("load")[list(TAILS)].mean()
        rows.append([policy, *(f"{means.p99[load]:.1f} / {means.longest_wait[load]:,.0f}" for load in found.loads)])
    return table(["policy", *(f"{load} %" for load in found.loads)], rows)


def transfer() -> str:
    """Return a table with a row a problem: differences from the best heuristic at each load and over all."""
    rows = []
    for name, title in TITLES.items():
        found = measured(name)
        each = [found.short(BEST, load) for load in found.loads]
        cells = each if len(each) > 1 else [""] * len(measured("slots_5").loads)
        rows.append([title, *cells, found.gap(BEST), ", ".join(dict.fromkeys(found.best.values()))])
    loads = (f"{load} %" for load in measured("slots_5").loads)
    return table(["problem", *loads, "all", "best heuristics"], rows)


def curve() -> str:
    """Return the lowest cost so far on validation jobsets during training."""
    names = [name.removeprefix(f"{AGENT}_") for name in (*SEEDS, LONGER)]
    columns = [pd.read_csv(HERE / f"curve_{name}.csv").set_index("update")["validation"] for name in names]
    frame = pd.concat(columns, axis=1).cummin()
    shown = frame[[update in (10, 20, 50) or update % 100 == 0 for update in frame.index]]
    costs = [["" if np.isnan(cost) else f"{cost:.4f}" for cost in row[1:]] for row in shown.itertuples()]
    return table(["update", *SEEDS, LONGER], [[str(at), *row] for at, row in zip(shown.index, costs, strict=True)])


RULES = ("sjf", "hold_long", "linear")
TABLES = {
    "short runs": lambda: by_load("short", RULES),
    "short runs, each training": lambda: seeds("short"),
    "short runs, load unknown": lambda: by_load("short_unknown", RULES),
    "short runs, load unknown, each training": lambda: seeds("short_unknown"),
    "streams": lambda: by_load("streams", ("sjf", "easy", "linear"), (BEST,)),
    "streams, each training": lambda: seeds("streams"),
    "tails on streams": lambda: tails("streams"),
    "streams of 10 slots": lambda: by_load("streams_10", ("sjf", "easy", "linear"), (BEST,)),
    "tails on streams of 10 slots": lambda: tails("streams_10"),
    "other sizes and jobs": transfer,
    "learning curve": curve,
    **as_published.tables("deeprm3"),
}
