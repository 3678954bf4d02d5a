"""Print what ablations cost: the mean logarithmic difference from the whole row, with paired 95 % intervals.

    python docs/results/deeprm3/ablation_table.py ABLATIONS.csv

Takes what `ablate.py` wrote. Slowdowns are averaged over training seeds, jobset by jobset; intervals are over jobsets.
On streams, the difference under each training seed stands beside: three seeds are too few for an interval over them.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import bootstrap

from pipeline.progress import say

WHOLE = "full"


def difference(own: pd.Series, whole: pd.Series) -> str:
    """Return the difference of two policies over the same jobsets, in percent."""
    gap = np.log(own / whole).to_numpy()
    if not gap.any():
        return ""
    low, high = bootstrap((gap,), np.mean, n_resamples=4000, rng=np.random.default_rng(1)).confidence_interval
    mean, low, high = (100 * np.expm1(value) for value in (gap.mean(), low, high))
    return f"{mean:+.1f} % ({low:+.1f} to {high:+.1f})"


def by_seed(own: pd.DataFrame, whole: pd.DataFrame) -> str:
    """Return the differences under each training seed, in percent."""
    if own.equals(whole):
        return ""
    gaps = np.log(own / whole).mean()
    return " / ".join(f"{100 * np.expm1(gap):+.0f}" for gap in gaps)


def main(path: Path) -> None:
    """Print a table, one row a variant."""
    table = pd.read_csv(path)
    means = table.groupby(["kind", "variant", "load", "jobset"])["mean"].mean()
    kinds, variants = table["kind"].unique(), table["variant"].unique()
    seeds = table.groupby("variant")["seed"].nunique()
    each = table.pivot_table(index=["kind", "variant", "load", "jobset"], columns="seed", values="mean")
    say(f"| variant | seeds | {' | '.join(kinds)} | streams, each seed | streams, slowdown |")
    say(f"| --- | ---: | {'---: | ' * len(kinds)}--- | --- |")
    for variant in variants:
        found = [difference(means[kind, variant], means[kind, WHOLE]) for kind in kinds]
        streams = means["streams", variant].groupby("load").mean()
        seeded = by_seed(each.loc["streams", variant], each.loc["streams", WHOLE])
        slow = " / ".join(f"{mean:.3g}" for mean in streams)
        say(f"| {variant} | {seeds[variant]} | {' | '.join(found)} | {seeded} | {slow} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
