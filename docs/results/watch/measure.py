"""Error rates of the watch: streams of regret whose true mean is known, checked after every window.

    PYTHONPATH=. python docs/results/watch/measure.py 200

The regret of a window is a mean plus noise, drawn from the regret between two training runs of one recipe on 100 short
runs at four loads (../deeprm3/ablations.csv.gz). A second heuristic is equally good and has independent noise. A window
is a day. Writes `seen.csv` to this folder: the window of the alarm in each stream.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.champions.regret import windows_needed
from pipeline.comparing.resampling import seen_at
from pipeline.core.config import load_params
from pipeline.core.config.evaluation import Watch
from pipeline.core.types import FloatArray
from pipeline.progress import say

HERE = Path(__file__).resolve().parent
WINDOWS = 365
SHARES = np.array([0.5, 0.5])


class Case(NamedTuple):
    """Stream of regret: its means before and after a change, and the window of the change."""

    words: str
    before: float
    after: float
    change: int = 0


CASES = {
    "better": Case("5 % better than the best heuristic, all year", -0.05, -0.05),
    "equal": Case("as good, all year", 0.0, 0.0),
    "tolerance": Case("worse by exactly the tolerance, all year", 0.02, 0.02),
    "no_matter": Case("5 % better, after day 60 only 1 % better", -0.05, -0.01, 60),
    "small": Case("5 % better, after day 60 5 % worse", -0.05, 0.05, 60),
    "planned": Case("5 % better, after day 60 10 % worse", -0.05, 0.10, 60),
    "large": Case("5 % better, after day 60 20 % worse", -0.05, 0.20, 60),
}


def noise() -> FloatArray:
    """Return the centred regret of one run against the other, mean over four loads."""
    rows = pd.read_csv(HERE.parent / "deeprm3" / "ablations.csv.gz")
    rows = rows[(rows["variant"] == "full") & (rows["kind"] == "short") & rows["seed"].isin((1, 2))]
    both = rows.set_index(["jobset", "load", "seed"])["mean"].unstack("seed")
    gap = (both[2] - both[1]) / both.max(axis=1)
    found = gap.groupby("jobset").mean().to_numpy()
    return np.asarray(found - found.mean())


def stream(case: Case, around: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the regret against two heuristics."""
    mean = np.where(np.arange(WINDOWS) < case.change, case.before, case.after)
    return np.asarray(mean + rng.choice(around, (len(SHARES), WINDOWS)))


def watched(name: str, streams: int, rules: Watch) -> pd.DataFrame:
    """Return the window of the alarm in each stream of a case; -1: no alarm."""
    around, rows = noise(), []
    for number in range(streams):
        values = stream(CASES[name], around, np.random.default_rng([number, list(CASES).index(name)]))
        seen = seen_at(values, SHARES, rules.tolerance, rules.level, rules.bound)
        rows.append({"case": name, "stream": number, "seen": -1 if seen is None else seen})
    return pd.DataFrame(rows)


def main(streams: int) -> None:
    """Watch all cases, and write the table."""
    rules = load_params().rules.watch
    found = pd.concat([watched(name, streams, rules) for name in CASES], ignore_index=True)
    found.to_csv(HERE / "seen.csv", index=False)
    say(f"spread of noise: {noise().std():.3f}; windows needed: {windows_needed(noise(), rules, 1)}")
    say(str(found.groupby("case")["seen"].agg([lambda seen: (seen > 0).sum(), "median"])))


if __name__ == "__main__":
    main(int(sys.argv[1]))
