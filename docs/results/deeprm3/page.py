"""Tables of ../deeprm3.md, from the data that `measure.py` and `train.py` of this folder wrote."""

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
LONGER = "deeprm3_1x600"  # 600 updates instead of 300
TAILS = ("p99", "longest_wait")
SHORT = (10, 30, 70, 110, 150, 190)  # percent: loads of short runs in the table


class Measured:
    """Results of one problem: every jobset, means, and differences between policies."""

    def __init__(self, name: str) -> None:
        params = load_params(ROOT / "params.yaml")
        self.rows = pd.read_csv(HERE / f"{name}.csv.gz")
        best = pd.read_csv(HERE / "best.csv").query("problem == @name").set_index("load")["heuristic"]
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
        """Return a difference with its interval, by default of the three agents' mean, over jobsets and seeds."""
        key = load if isinstance(load, str) else f"{load:03d}"
        return difference(self.found.loc[(policy, to, key)])


measured = cache(Measured)


def short_runs() -> str:
    """Return means and differences by load on short runs, where policies know the load and where they do not."""
    known, unknown = measured("short"), measured("short_unknown")
    rows = [
        [
            f"{load} %",
            known.mean("hold_long", load),
            known.mean(AGENT, load),
            known.gap(BEST, load),
            known.best[load],
            unknown.mean(AGENT, load),
            unknown.gap("hold_long", load),
        ]
        for load in SHORT
    ]
    rows.append(["ten loads", "", "", known.gap(BEST), "", "", unknown.gap("hold_long")])
    head = ["load", "hold_long", AGENT, "vs. best heuristic", "which is", "load unknown", "vs. hold_long"]
    return table(head, rows)


def streams() -> str:
    """Return means and differences by load on streams, of the trained number of slots and of another."""
    rows = []
    for slots, name in ((60, "streams"), (10, "streams_10")):
        found = measured(name)
        for load in found.loads:
            means = [found.mean(policy, load) for policy in ("easy", "linear", AGENT)]
            rows.append([str(slots), f"{load} %", *means, found.gap(BEST, load), found.best[load]])
        rows.append([str(slots), "all", *[""] * 3, found.gap(BEST), ""])
    head = ["slots", "load", "easy", "linear", AGENT, "vs. best heuristic", "which is"]
    return table(head, rows)


def seeds() -> str:
    """Return each agent's difference from the best heuristic over all loads."""
    found = [measured(name) for name in ("short", "short_unknown", "streams")]
    rows = [[seed, *(one.gap(BEST, policy=seed) for one in found)] for seed in SEEDS]
    rows.append([LONGER, found[0].gap(BEST, policy=LONGER), "", ""])
    return table(["agent", "short runs", "load unknown", "streams"], rows)


def tails() -> str:
    """Return the 99th percentile of slowdown and the longest wait in steps on streams; of three agents, the mean."""
    found, rows = measured("streams"), []
    for policy, names in {AGENT: SEEDS, "easy": ("easy",), "linear": ("linear",)}.items():
        means = found.rows[found.rows["policy"].isin(names)].groupby("load")[list(TAILS)].mean()
        rows.append([policy, *(f"{means.p99[load]:.1f} / {means.longest_wait[load]:,.0f}" for load in found.loads)])
    return table(["policy", *(f"{load} %" for load in found.loads)], rows)


def transfer() -> str:
    """Return each problem's difference from the best heuristic over all loads."""
    return table(
        ["problem", "vs. best heuristic"], [[title, measured(name).gap(BEST)] for name, title in TITLES.items()]
    )


def gradients() -> str:
    """Return mean slowdown over all loads of agents trained by policy gradient, and differences from `hold_long`."""
    shown = as_published.SHOWN["deeprm3"]["policy gradient"]
    cells, means, _ = as_published.compared("deeprm3", shown)
    rows = [[name, f"{means.loc[name].mean():.3f}", difference(cells.loc[(name, ALL)])] for name in shown.policies[:-1]]
    return table(["policy", "mean slowdown", "vs. hold_long"], rows)


TABLES = {
    "short runs": short_runs,
    "streams": streams,
    "trainings": seeds,
    "tails on streams": tails,
    "other sizes and jobs": transfer,
    "policy gradient": gradients,
}
