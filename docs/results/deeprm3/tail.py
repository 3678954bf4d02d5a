"""Trade the mean for the tail: play stored networks with more and more of `ageing`.

    python docs/results/deeprm3/tail.py WEIGHTS_FOLDER OUT.csv

WEIGHTS_FOLDER is that of `measure.py`: networks `sets`, one training seed each. All play its test jobsets, short runs
and streams. Writes one row a problem, load and weight of `ageing`: means over seeds, and the paired 95 % interval of
the mean slowdown's difference from no ageing, over jobsets.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from measure import networks, play, problems
from scipy.stats import bootstrap

from pipeline.config import load_params
from pipeline.problems.pool.networks.sets import Sets
from pipeline.progress import say

AGEING = (0.0, 0.5, 1.0, 2.0, 4.0)
LOADS = {"short": (110, 150, 190), "streams": (70, 80, 90)}
COUNT = {"short": 300, "streams": 60}


def main(folder: Path, out: Path) -> None:
    """Play and write."""
    seeds = [found for found in networks(folder).values() if isinstance(found, Sets)]
    rows = []
    for kind, loads in LOADS.items():
        problem = problems(load_params())[kind]
        jobsets = {load: jobs for load, jobs in problem.jobsets("test", COUNT[kind]).items() if load in loads}
        plain = None
        for weight in AGEING:
            tables = [play(problem, jobsets, network.aged(weight) if weight else network) for network in seeds]
            mean = sum(table[["mean", "p99", "worst_wait"]] for table in tables) / len(tables)
            plain = mean if plain is None else plain
            for load in loads:
                mine = (tables[0]["load"] == load).to_numpy()
                rows.append({"problem": kind, "load": load, "ageing": weight} | summary(mean[mine], plain[mine]))
                say(str(rows[-1]))
    pd.DataFrame(rows).to_csv(out, index=False, float_format="%.5g")


def summary(mine: pd.DataFrame, plain: pd.DataFrame) -> dict[str, float]:
    """Return means, and the difference of mean slowdowns with its interval."""
    found = {name: float(mine[name].mean()) for name in mine}
    own, without = mine["mean"].to_numpy(), plain["mean"].to_numpy()
    if (own == without).all():
        return found | {"difference": 0.0, "low": 0.0, "high": 0.0}
    whole = bootstrap(
        (own, without), ratio, paired=True, vectorized=False, n_resamples=2000, rng=np.random.default_rng(1)
    )
    low, high = whole.confidence_interval
    return found | {"difference": ratio(own, without), "low": float(low), "high": float(high)}


def ratio(own: np.ndarray, without: np.ndarray) -> float:
    """Return how much larger a mean is."""
    return float(own.mean() / without.mean() - 1.0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
