"""Tables of ../deeprm3.md, from what `measure.py`, `tail.py` and `ablate.py` of this folder wrote into it."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from layout import difference, table
from scipy.stats import bootstrap

from pipeline.comparing.statistics import ALL, comparison
from pipeline.config import load_params

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
AGENT, SEEDS, TOLD, BEST = "deeprm3", ("deeprm3_1", "deeprm3_2", "deeprm3_3"), "told", "best_heuristic"
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
WHOLE = "full"

MORE = {"streams_10": ("streams_10_windows.csv.gz",)}  # one training, played behind the others


class Measured:
    """One problem: what every jobset had, and who is how much better than whom."""

    def __init__(self, name: str) -> None:
        params = load_params(ROOT / "params.yaml")
        self.rows = pd.concat([pd.read_csv(HERE / file) for file in (f"{name}.csv.gz", *MORE.get(name, ()))])
        best = pd.read_csv(HERE / "best.csv").query("problem == @name").set_index("load")["heuristic"]
        self.best = {int(load): str(heuristic) for load, heuristic in best.items()}
        self.loads = list(self.best)
        references = {to: dict.fromkeys(self.best, to) for to in ("sjf", "hold", "linear")} | {BEST: self.best}
        mean = self.rows[self.rows["policy"].isin(SEEDS)].groupby(["load", "jobset"])["mean_slowdown"].mean()
        frame = pd.concat([self.rows, mean.reset_index().assign(policy=AGENT, unfinished=0)])
        rng, settings = np.random.default_rng(params.seed), params.evaluation
        trainings = {f"{AGENT} of three seeds": SEEDS}
        found = comparison(frame, name, references, settings, rng, trainings)
        self.found = found.set_index(["policy", "against", "load"]).sort_index()
        self.means = frame.groupby(["policy", "load"])["mean_slowdown"].mean()

    def mean(self, policy: str, load: int) -> str:
        """Return a mean slowdown as it is written."""
        return f"{self.means[policy, load]:.4g}"

    def all_loads(self, policy: str) -> float:
        """Return the mean over loads."""
        return float(np.mean([self.means[policy, load] for load in self.loads]))

    def gap(self, to: str, load: int | str = ALL, policy: str = f"{AGENT} of three seeds") -> str:
        """Return a difference with its interval, by default of the mean of three trainings, whose seeds are in it."""
        key = load if isinstance(load, str) else f"{load:03d}"
        return difference(self.found.loc[(policy, to, key)])

    def short(self, to: str, load: int) -> str:
        """Return the difference of the mean of three trainings alone, in percent."""
        row = self.found.loc[(f"{AGENT} of three seeds", to, f"{load:03d}")]
        return f"{100 * row['difference']:+.1f}"


measured = cache(Measured)


def by_load(name: str, policies: Sequence[str], to: Sequence[str]) -> str:
    """Return a row a load: means, and DeepRM3's differences."""
    found = measured(name)
    rows = [
        [
            f"{load} %",
            *(found.mean(policy, load) for policy in policies),
            *(found.gap(other, load) for other in to),
            found.best[load],
        ]
        for load in found.loads
    ]
    rows.append(["all", *[""] * len(policies), *(found.gap(other) for other in to), ""])
    return table(["load", *policies, *(f"{AGENT} to {other.replace('_', ' ')}" for other in to), "which is"], rows)


def seeds(name: str) -> str:
    """Return the difference of each training from the best heuristic."""
    found = measured(name)
    rows = [[seed, *(found.gap(BEST, load, seed) for load in (*found.loads, ALL))] for seed in SEEDS]
    return table(["training", *(f"{load} %" for load in found.loads), "all"], rows)


def tail() -> str:
    """Return mean, 99th percentile and longest wait by the weight of ageing."""
    rows = pd.read_csv(HERE / "tail.csv.gz")
    means = rows.groupby(["ageing", "problem", "load"])[["mean_slowdown", "p99", "longest_wait"]].mean()
    columns = list(rows[["problem", "load"]].drop_duplicates().itertuples(index=False, name=None))
    written = []
    for weight in sorted(rows["ageing"].unique()):
        cells = [_tail(means.loc[(weight, *column)], means.loc[(0.0, *column)]) for column in columns]
        written.append([f"{weight:g}", *cells])
    return table(["ageing", *(f"{problem}, {load} %" for problem, load in columns)], written)


def _tail(row: pd.Series, plain: pd.Series) -> str:
    more = 100 * (row["mean_slowdown"] / plain["mean_slowdown"] - 1)
    gap = "" if row is plain or row.equals(plain) else f" ({more:+.1f} %)"
    return f"{row['mean_slowdown']:.2f}{gap} / {row['p99']:.3g} / {row['longest_wait']:,.0f}"


def stream_tails() -> str:
    """Return 99th percentile of slowdown and longest wait in steps, on streams, of three trainings their mean."""
    found, rows = measured("streams"), []
    for policy, names in {
        AGENT: SEEDS,
        **{rule: (rule,) for rule in ("sjf", "hold", "hold_until", "easy", "tetris", "linear")},
    }.items():
        means = found.rows[found.rows["policy"].isin(names)].groupby("load")[["p99", "longest_wait"]].mean()
        rows.append([policy, *(f"{means.p99[load]:.1f} / {means.longest_wait[load]:,.0f}" for load in found.loads)])
    return table(["policy", *(f"{load} %" for load in found.loads)], rows)


def transfer() -> str:
    """Return a row a problem: differences at each load from SJF and the best heuristic, and over all."""
    rows = []
    for name, title in TITLES.items():
        found, other = measured(name), ("sjf", BEST)
        each = [" / ".join(found.short(to, load) for to in other) for load in found.loads]
        cells = each if len(each) > 1 else [""] * 4
        rows.append([title, *cells, *(found.gap(to) for to in other)])
    return table(["problem", "70 %", "110 %", "150 %", "190 %", "to SJF", "to the best heuristic"], rows)


def few_slots() -> str:
    """Return mean slowdown on streams of 10 slots, over all loads."""
    found = measured("streams_10")
    policies = found.means.index.unique("policy")
    rows = []
    for policy in sorted(policies, key=found.all_loads):
        own = f"{AGENT} of three seeds" if policy == AGENT else policy
        rows.append([policy, f"{found.all_loads(policy):.4g}", "" if policy == "sjf" else found.gap("sjf", policy=own)])
    streams = len(found.loads) * found.rows["jobset"].nunique()
    return table(["policy", "mean over all loads", f"to sjf ({streams} streams over all loads)"], rows)


def told() -> str:
    """Return mean slowdown told estimates: heuristics, learned on durations, learned on estimates."""
    policies, rows = ("sjf", "hold", "hold_until", "linear", SEEDS[0], TOLD), []
    for name, title in (("estimates", "noisy estimates"), ("hpc2n_estimates", "users' estimates, HPC2N")):
        found = measured(name)
        for load in found.loads:
            gap = found.gap(BEST, load, TOLD)
            rows.append([f"{title}, {load} %", *(found.mean(policy, load) for policy in policies), gap])
    head = [
        "told",
        "SJF",
        "hold",
        "hold_until",
        "linear",
        "learned on durations",
        "learned on estimates",
        "to the best heuristic",
    ]
    return table(head, rows)


def ablations() -> str:
    """Return what each change costs: the mean logarithmic difference from the whole row, over jobsets."""
    found = pd.read_csv(HERE / "ablations.csv.gz")
    keys = ["kind", "variant", "load", "jobset"]
    means = found.groupby(keys)["mean"].mean()
    each = found.pivot_table(index=keys, columns="seed", values="mean")
    kinds, seeds = found["kind"].unique(), found.groupby("variant")["seed"].nunique()
    rows = []
    for variant in found["variant"].unique():
        apart = [_apart(means[kind, variant], means[kind, WHOLE]) for kind in kinds]
        seeded = _by_seed(each.loc["streams", variant], each.loc["streams", WHOLE])
        slow = " / ".join(f"{mean:.3g}" for mean in means["streams", variant].groupby("load").mean())
        rows.append([variant.replace("_", " "), str(seeds[variant]), *apart, seeded, slow])
    return table(["variant", "seeds", *kinds, "streams, each seed", "streams, slowdown"], rows)


def _apart(own: pd.Series, whole: pd.Series) -> str:
    gap = np.log(own / whole).to_numpy()
    if not gap.any():
        return ""
    low, high = bootstrap((gap,), np.mean, n_resamples=4000, rng=np.random.default_rng(1)).confidence_interval
    mean, low, high = (100 * np.expm1(value) for value in (gap.mean(), low, high))
    return f"{mean:+.1f} % ({low:+.1f} to {high:+.1f})"


def _by_seed(own: pd.DataFrame, whole: pd.DataFrame) -> str:
    if own.equals(whole):
        return ""
    return " / ".join(f"{100 * np.expm1(gap):+.0f}" for gap in np.log(own / whole).mean())


TABLES = {
    "short runs": lambda: by_load(
        "short", ("sjf", "hold", "hold_until", "linear", "deeprm", "deeprm2", AGENT), ("hold", "linear", BEST)
    ),
    "short runs, each training": lambda: seeds("short"),
    "mean against tail": tail,
    "streams": lambda: by_load(
        "streams", ("sjf", "hold", "hold_until", "easy", "tetris", "linear", AGENT), ("sjf", "linear", BEST)
    ),
    "streams, each training": lambda: seeds("streams"),
    "tails on streams": stream_tails,
    "other sizes and jobs": transfer,
    "streams of 10 slots": few_slots,
    "learned on estimates": told,
    "ablations": ablations,
}
