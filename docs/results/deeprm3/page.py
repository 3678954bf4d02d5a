"""Tables of ../deeprm3.md, from what `measure.py`, `tail.py` and `ablate.py` of this folder wrote into it."""

from pathlib import Path

import numpy as np
import pandas as pd
from layout import difference, table
from scipy.stats import bootstrap

HERE = Path(__file__).resolve().parent
AGENT = "deeprm3"
TO = ("sjf", "hold", "best_heuristic")
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
    "hpc2n_durations": "HPC2N at its own load of 99 %, durations known",
    "hpc2n_estimates": "HPC2N at its own load of 99 %, users' estimates",
}
WHOLE = "full"


def read(name: str) -> pd.DataFrame:
    """Return who is how much better than whom: one row a load, policy and reference."""
    found = pd.read_csv(HERE / f"{name}.csv", dtype={"load": str})
    return found.set_index(["load", "policy", "against"]).sort_index()


def loads_of(found: pd.DataFrame) -> list[str]:
    """Return the loads, without that over all of them."""
    return [load for load in found.index.unique("load") if load != "all"]


def by_load(name: str, policies: tuple[str, ...], to: tuple[str, ...] = TO) -> str:
    """Return a row a load: means, and DeepRM3's differences."""
    found, rows = read(name), []
    for load in loads_of(found):
        means = [f"{found.loc[(load, policy), 'mean'].iloc[0]:.4g}" for policy in policies]
        apart = [difference(found.loc[(load, AGENT, other)]) for other in to]
        rows.append([f"{int(load)} %", *means, *apart, found.loc[(load, AGENT, "sjf"), "best_heuristic"]])
    head = ["load", *policies, *(f"{AGENT} to {other.replace('_', ' ')}" for other in to), "which is"]
    return table(head, rows)


def longer() -> str:
    """Return how 2,500 updates of one seed do."""
    found = pd.read_csv(HERE / "updates_2500.csv", dtype={"load": str})
    rows = []
    others = ("sjf", "hold", "best_heuristic", "deeprm2_long")
    for (scenario, load), part in found.groupby(["scenario", "load"], sort=False):
        against = part.set_index("against")
        apart = [difference(against.loc[other]) if other in against.index else "" for other in others]
        label = "all loads" if load == "all" else f"{int(load)} %"
        rows.append([f"{scenario.replace('_', ' of ')}, {label}", f"{part['mean'].iloc[0]:.4g}", *apart])
    return table(["jobs, load", "mean", *(f"to {other.replace('_', ' ')}" for other in others)], rows)


def tail() -> str:
    """Return mean, 99th percentile and longest wait by the weight of ageing."""
    found = pd.read_csv(HERE / "tail.csv")
    columns = list(found[["problem", "load"]].drop_duplicates().itertuples(index=False, name=None))
    rows = []
    for weight, part in found.groupby("ageing"):
        cells = part.set_index(["problem", "load"])
        rows.append([f"{weight:g}", *(_tail(cells.loc[column]) for column in columns)])
    return table(["ageing", *(f"{problem}, {load} %" for problem, load in columns)], rows)


def _tail(row: pd.Series) -> str:
    gap = f" ({100 * row['difference']:+.1f} %)" if row["difference"] else ""
    return f"{row['mean']:.2f}{gap} / {row['p99']:.3g} / {row['worst_wait']:,.0f}"


def stream_tails() -> str:
    """Return 99th percentile of slowdown and longest wait in steps, on streams."""
    found = read("streams")
    rows = []
    for policy in (AGENT, "sjf", "hold", "easy", "tetris", "linear"):
        cells = [found.loc[(load, policy)].iloc[0] for load in loads_of(found)]
        rows.append([policy, *(f"{row.p99:.1f} / {row.worst_wait:,.0f}" for row in cells)])
    return table(["policy", *(f"{int(load)} %" for load in loads_of(found))], rows)


def transfer() -> str:
    """Return a row a problem: differences at each load from SJF and the best heuristic, and over all."""
    rows = []
    for name, title in TITLES.items():
        found = read(name)
        loads, other = loads_of(found), ("sjf", "best_heuristic")
        both = [
            " / ".join(f"{100 * found.loc[(load, AGENT, to), 'difference']:+.1f}" for to in other) for load in loads
        ]
        whole = "all" if len(loads) > 1 else loads[0]
        cells = both if len(loads) > 1 else ["", "", "", ""]
        rows.append([title, *cells, *(difference(found.loc[(whole, AGENT, to)]) for to in other)])
    return table(["problem", "70 %", "110 %", "150 %", "190 %", "to SJF", "to the best heuristic"], rows)


def few_slots() -> str:
    """Return mean slowdown on streams of 10 slots, over all loads."""
    found = read("streams_10").loc["all"]
    means = found.groupby("policy")["mean"].first().sort_values()
    means = means[[not policy.endswith("_1") or policy[:-2] not in means for policy in means.index]]
    own = found.loc[(AGENT, "sjf")]
    rows = [[policy, f"{mean:.4g}", _to(found, policy)] for policy, mean in means.items()]
    return table(["policy", "mean over all loads", f"to sjf ({own['n']:.0f} streams over all loads)"], rows)


def _to(found: pd.DataFrame, policy: str) -> str:
    return difference(found.loc[(policy, "sjf")]) if (policy, "sjf") in found.index else ""


def told() -> str:
    """Return mean slowdown told estimates: heuristics, learned on durations, learned on estimates."""
    policies, rows = ("sjf", "hold", "linear", "deeprm3_1", "told_1"), []
    for name, title in (("told_estimates", "noisy estimates"), ("told_hpc2n_estimates", "users' estimates, HPC2N")):
        found = read(name)
        for load in loads_of(found):
            means = [f"{found.loc[(load, policy), 'mean'].iloc[0]:.4g}" for policy in policies]
            rows.append([f"{title}, {int(load)} %", *means])
    return table(["told", "SJF", "hold", "linear", "learned on durations", "learned on estimates"], rows)


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
        "short", ("sjf", "hold", "linear", "deeprm", "deeprm_long", "deeprm2", "deeprm2_long", AGENT)
    ),
    "2,500 updates": longer,
    "mean against tail": tail,
    "streams": lambda: by_load(
        "streams", ("sjf", "hold", "easy", "tetris", "linear", AGENT), ("sjf", "best_heuristic")
    ),
    "tails on streams": stream_tails,
    "other sizes and jobs": transfer,
    "streams of 10 slots": few_slots,
    "learned on estimates": told,
    "ablations": ablations,
}
