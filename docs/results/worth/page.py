"""Table of ../what-learning-is-worth.md: best rule, learned policy and hindsight bound of each scenario."""

import sys
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from layout import difference, number, table
from tables import page

default = page("default")


def learned_by_validation() -> dict[str, str]:
    """Return the learned policy of each scenario with the least mean cost on validation jobsets."""
    rows = pd.read_csv(default.VALIDATION)
    rows = rows[rows["policy"].isin(default.learned(default.repository()))]
    means = rows.groupby(["scenario", "policy"])["mean"].mean().reset_index().sort_values("mean", kind="stable")
    return dict(means.drop_duplicates("scenario")[["scenario", "policy"]].itertuples(index=False))


def bound(scenario: str) -> str:
    """Return the mean over loads of the lower bound with full knowledge of the jobs, where it was computed."""
    rows = default.report("hindsight")
    rows = rows[(rows["scenario"] == scenario) & (rows["load"] != "all")]
    return number(rows.groupby("load")["bound"].first().mean()) if len(rows) else ""


def worth() -> str:
    """Return the gain of the chosen agent over the best heuristic on test jobsets, over all loads."""
    kinds = {"slowdown": "comparison", "wait": "delay"}
    found = pd.concat([default.report(name).assign(measure=kind) for kind, name in kinds.items()])
    found = found[(found["against"] == "best_heuristic") & (found["load"] == "all")]
    rows = []
    for scenario, policy in learned_by_validation().items():
        mine = found[(found["scenario"] == scenario) & (found["policy"] == policy)]
        for _, row in mine.iterrows():
            hindsight = bound(scenario) if row["measure"] == "slowdown" else ""
            means = number(row["mean_against"]), number(row["mean"])
            rows.append([scenario, row["measure"], means[0], policy, means[1], difference(row), hindsight])
    head = ["scenario", "", "best heuristic", "learned", "mean", "difference", "hindsight bound"]
    return table(head, rows, words=2)


TABLES = {"what learning is worth": worth}
