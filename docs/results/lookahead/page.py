"""Tables of ../lookahead.md, from what `measure.py` wrote."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from layout import difference, number, table

from pipeline.comparing.statistics import ALL, comparison
from pipeline.config import load_params

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


def gains(scenario: str) -> str:
    """Return the mean slowdown of each heuristic and of the same that looks ahead, and the paired difference."""
    params, rows = load_params(ROOT / "params.yaml"), pd.read_csv(HERE / f"{scenario}.csv.gz")
    loads = sorted(rows["load"].unique())
    bases = [name for name in rows["policy"].unique() if not name.startswith("plan_")]
    against = comparison(
        rows,
        scenario,
        {name: dict.fromkeys(loads, name) for name in bases},
        params.evaluation,
        np.random.default_rng(params.seed),
    ).set_index(["policy", "against", "load"])
    means = rows.groupby(["policy", "load"])["mean_slowdown"].mean()
    written = []
    for load in loads:
        for name in bases:
            gain = difference(against.loc[(f"plan_{name}", name, f"{load:03d}")])
            written.append([f"{load} %", name, number(means[name, load]), number(means[f"plan_{name}", load]), gain])
    written += [["all", name, "", "", difference(against.loc[(f"plan_{name}", name, ALL)])] for name in bases]
    count = rows.groupby("load")["jobset"].nunique().iloc[0]
    head = ["load", "heuristic", "alone", "looking ahead", f"difference, n = {count} a load"]
    return table(head, written, words=2)


TABLES = {"short runs": partial(gains, "online")}
