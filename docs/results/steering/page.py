"""Tables of ../steering.md, from the data that measure.py wrote."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from layout import difference, table

from benchmarks.fidelity.tables import PLAYS
from pipeline.comparing.resampling import gap_interval, resample
from pipeline.core.storage.files import read_table

HERE = Path(__file__).resolve().parent
FIRST = "slurm"
CONFIDENCE, RESAMPLES, SEED = 0.95, 4000, 1
BOUND_S = 10.0
MEASURES = {
    "mean wait, s": "wait",
    "bounded slowdown": "bounded",
    "p99 of wait, s": "p99",
}


@cache
def measured(name: str) -> pd.DataFrame:
    """Return the measures of each repeat in a file of runs, a row for each arm."""
    plays = read_table(HERE / name, PLAYS)
    wait = plays["start_s"] - plays["submit_s"]
    run = plays["run_s"]
    measures = plays.assign(
        wait=wait,
        bounded=np.maximum(1.0, (wait + run) / np.maximum(run, BOUND_S)),
    )
    by = measures.groupby(["order", "repeat"], sort=False)
    means = by[["wait", "bounded"]].mean()
    return means.assign(p99=by["wait"].quantile(0.99)).reset_index()


def compared(name: str, arm: str, measure: str) -> pd.Series:
    """Return the difference from Slurm's own order over paired repeats, with its interval."""
    both = measured(name).pivot(index="repeat", columns="order", values=measure)[[arm, FIRST]].to_numpy()
    weights = resample(len(both), RESAMPLES, np.random.default_rng(SEED))
    means = weights @ both
    relative = (means[:, 0] - means[:, 1]) / means[:, 1]
    low, high = gap_interval(relative[1:], CONFIDENCE, len(both))
    return pd.Series({"difference": relative[0], "difference_low": low, "difference_high": high})


def waits(name: str = "plays.csv.gz") -> str:
    """Return each measure under Slurm's own order, and the differences of the other orders from it."""
    arms, count = list(measured(name)["order"].unique()), measured(name)["repeat"].nunique()
    rows = []
    for title, measure in MEASURES.items():
        own = measured(name).query("order == @FIRST")[measure]
        gaps = [difference(compared(name, arm, measure)) for arm in arms if arm != FIRST]
        rows.append([title, f"{own.mean():.2f} ({own.min():.2f} to {own.max():.2f})", *gaps])
    head = ["measure", f"`{FIRST}`, mean of {count} repeats (least to most)"]
    return table([*head, *(f"`{arm}`" for arm in arms if arm != FIRST)], rows)


TABLES = {"waits": waits, "trained": lambda: waits("trained.csv.gz")}
