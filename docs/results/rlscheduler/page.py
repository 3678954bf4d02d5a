"""Tables of ../rlscheduler.md, from the CSVs of this folder.

`heuristics.csv` is what `benchmark rlscheduler` writes of the heuristics; `published.csv` is of the paper's tables 5
and 6 (Zhang et al., SC 2020), as its own code repeats them.
"""

from pathlib import Path

import pandas as pd
from layout import difference, table

HERE = Path(__file__).resolve().parent
CELLS = {  # log and backfilling: how agents of it are called
    ("lublin_256", 0): "lublin_alone",
    ("lublin_256", 1): "lublin_backfilled",
    ("HPC2N", 0): "hpc2n_alone",
    ("HPC2N", 1): "hpc2n_backfilled",
}
HOURS = {
    "longest_wait_s": "longest wait, h",
    "p99_wait_s": "p99 of waits, h",
    "area_weighted_response_s": "area-weighted response, h",
}


def _of(found: pd.DataFrame, log: str, backfill: int) -> pd.DataFrame:
    return found[found["trace"].str.startswith(log) & (found["backfill"] == backfill)]


def _title(log: str, backfill: int) -> str:
    return f"{log}, {'yes' if backfill else 'no'}"


def slowdown() -> str:
    """Return mean bounded slowdown over the ten sequences."""
    learned, rules = pd.read_csv(HERE / "sequences.csv"), pd.read_csv(HERE / "heuristics.csv")
    published = pd.read_csv(HERE / "published.csv").set_index(["trace", "backfill"])["bounded_slowdown"]
    rows = []
    for (log, backfill), agent in CELLS.items():
        own, others = (
            _of(part, log, backfill).groupby("policy")["avg_bounded_slowdown"].mean() for part in (learned, rules)
        )
        seeds = [own[f"{agent}_{seed}"] for seed in (1, 2, 3)]
        cells = [", ".join(f"{mean:.2f}" for mean in seeds), f"{sum(seeds) / 3:.2f}", f"{published[log, backfill]:.2f}"]
        best = others.idxmin()
        rows.append([_title(log, backfill), *cells, f"{others[best]:.2f} ({best.upper()})", f"{others['saf']:.2f}"])
    head = ["log, backfilling", "seeds 1, 2, 3", "mean", "published RL", "best heuristic on the ten", "SAF"]
    return table(head, rows)


def waits() -> str:
    """Return waits and the area-weighted response time in hours, means over the ten sequences (and seeds)."""
    learned, rules = pd.read_csv(HERE / "waits.csv"), pd.read_csv(HERE / "heuristics.csv")
    rows = []
    for log, backfill in CELLS:
        parts = {"learned": _of(learned, log, backfill)}
        others = _of(rules, log, backfill)
        parts |= {name: others[others["policy"] == name] for name in ("saf", "f1", "sjf")}
        for name, part in parts.items():
            rows.append([_title(log, backfill), name, *(f"{part[column].mean() / 3600:.0f}" for column in HOURS)])
    return table(["log, backfilling", "policy", *HOURS.values()], rows, words=2)


def paired() -> str:
    """Return the difference of each training from SAF and F1, on sequences that do not overlap."""
    found = pd.read_csv(HERE / "paired.csv").set_index(["policy", "against"])
    rows = []
    for agent in (f"{name}_{seed}" for name in CELLS.values() for seed in (1, 2, 3)):
        for other in ("saf", "f1"):
            row = found.loc[(agent, other)]
            means = [f"{row[name]:.1f}" for name in ("mean", "mean_against")]
            rows.append([f"`{agent}`", other, f"{row['n']:.0f}", *means, difference(row)])
    return table(["agent", "against", "n", "its mean", "the other", "difference"], rows, words=2)


TABLES = {"slowdown": slowdown, "waits": waits, "paired": paired}
