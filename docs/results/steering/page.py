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
    "slowdown": "slowdown",
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
        slowdown=(wait + run) / run,
    )
    by = measures.groupby(["order", "repeat"], sort=False)
    means = by[["wait", "bounded", "slowdown"]].mean()
    return means.assign(p99=by["wait"].quantile(0.99)).reset_index()


def compared(name: str, arm: str, measure: str, first: str = FIRST) -> pd.Series:
    """Return the difference from Slurm's own order, or from another, over paired repeats, with its interval."""
    both = measured(name).pivot(index="repeat", columns="order", values=measure)[[arm, first]].to_numpy()
    weights = resample(len(both), RESAMPLES, np.random.default_rng(SEED))
    means = weights @ both
    relative = (means[:, 0] - means[:, 1]) / means[:, 1]
    low, high = gap_interval(relative[1:], CONFIDENCE, len(both))
    return pd.Series({"difference": relative[0], "difference_low": low, "difference_high": high})


def waits(name: str = "plays.csv.gz") -> str:
    """Return each measure of each order, and its difference from Slurm's own order."""
    arms, count = list(measured(name)["order"].unique()), measured(name)["repeat"].nunique()
    rows = []
    for title, measure in MEASURES.items():
        for arm in arms:
            own = measured(name).query("order == @arm")[measure]
            text = f"{own.mean():.2f} ({own.min():.2f} to {own.max():.2f})"
            rows.append([title, arm, text, "" if arm == FIRST else difference(compared(name, arm, measure))])
    return table(["measure", "order", f"mean of {count} repeats (least to most)", "to `slurm`"], rows, words=2)


def trained() -> str:
    """Return the same measures for the runs with a trained policy."""
    return waits("trained.csv.gz")


def trained_to_sjf() -> str:
    """Return the trained policy's difference from SJF."""
    rows = [[title, difference(compared("trained.csv.gz", "trained", one, "sjf"))] for title, one in MEASURES.items()]
    return table(["measure", "`trained` to `sjf`"], rows, words=1)


def ticks() -> str:
    """Return the duration of a tick with a thousand waiting jobs."""
    spent = pd.read_csv(HERE / "ticks.csv")
    spent["all_ms"] = spent[["read_ms", "decide_ms", "set_ms"]].sum(axis=1)
    names = {"read_ms": "three commands", "decide_ms": "the policy", "set_ms": "scontrol", "all_ms": "all"}
    rows = [
        [what, f"{spent[name].median():.0f}", f"{spent[name].quantile(0.9):.0f}", f"{spent[name].max():.0f}"]
        for name, what in names.items()
    ]
    return table([f"ms of {len(spent)} ticks", "median", "p90", "most"], rows)


def kills() -> str:
    """Return the outcome of kills."""
    found = pd.read_csv(HERE / "kills.csv")
    rows = []
    for what, own in found.groupby("what"):
        back = own["taken_back_s"].dropna()
        spent = f"{back.median():.1f} ({back.max():.1f})" if len(back) else "kept"
        rows.append([str(what), str(len(own)), str(own["set"].sum()), spent, str(own["held"].sum())])
    return table(["killed", "times", "factors set before", "reset after, s: median (max)", "jobs held"], rows)


TABLES = {"waits": waits, "trained": trained, "trained against sjf": trained_to_sjf, "ticks": ticks, "kills": kills}
