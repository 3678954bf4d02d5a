"""Error rates of the gate: candidates whose true quality is known, judged by the rules of params.yaml.

    PYTHONPATH=. python docs/results/gate/measure.py 400

Jobset costs are drawn from ../deeprm3/ablations.csv.gz: two training runs of one recipe with different seeds, on the
same 100 short runs at each of four loads. The first run is the champion. The candidate has the results of the second,
scaled at each load to the champion's mean and mean 99th percentile, then made better or worse as defined by the case. A
repeat draws as many jobsets a load as the rules require, and judges. Writes `promoted.csv` to this folder.
"""

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.champions.gate import Trial, judged
from pipeline.core.config import load_params
from pipeline.core.config.evaluation import Gate
from pipeline.progress import say

HERE = Path(__file__).resolve().parent
RESAMPLES = 1000
CHAMPION = "champion"


class Case(NamedTuple):
    """Candidate of known quality: factors of its mean at each load, and of its 99th percentile."""

    words: str
    mean: Mapping[int, float] = {}
    elsewhere: float = 1.0
    tail: float = 1.0
    candidates: int = 1
    itself: bool = False  # the candidate is the champion under another name


CASES = {
    "equal": Case("as good as the champion"),
    "five_equal": Case("five candidates as good as the champion", candidates=5),
    "at_margin": Case("1 % better at every load: exactly the required margin", elsewhere=0.99, tail=0.99),
    "itself": Case("the champion itself", itself=True),
    "better": Case("5 % better at every load", elsewhere=0.95, tail=0.95),
    "worse_at_one": Case("5 % worse at one load, 10 % better at the others", {150: 1.05}, 0.9, 0.95),
    "tail": Case("5 % better, and its 99th percentile 15 % worse", elsewhere=0.95, tail=1.15),
}


@cache
def population() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the results of champion and candidate, equally good, by load and jobset."""
    rows = pd.read_csv(HERE.parent / "deeprm3" / "ablations.csv.gz")
    rows = rows[(rows["variant"] == "full") & (rows["kind"] == "short")].set_index(["load", "jobset"])
    one, other = (rows.loc[rows["seed"] == seed, ["mean", "p99"]].sort_index() for seed in (1, 2))
    scale = one.groupby("load").mean() / other.groupby("load").mean()
    return one, other.mul(scale, level="load")


def drawn(case: Case, jobsets: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return jobset results of champion and candidates, as the gate reads them."""
    one, other = population()
    found = []
    for load in one.index.unique("load"):
        some = rng.integers(0, len(one.loc[load]), jobsets)
        base, luck = one.loc[load].to_numpy()[some], (other.loc[load] - one.loc[load]).to_numpy()[some]
        worth = [case.mean.get(load, case.elsewhere), case.tail]
        known = {CHAMPION: base}
        for k in range(case.candidates):  # each further candidate has the same deviations, shifted by a jobset
            known[f"candidate_{k}"] = base if case.itself else (base + np.roll(luck, k, axis=0)) * worth
        for policy, values in known.items():
            columns = {"policy": policy, "load": load, "jobset": np.arange(jobsets), "unfinished": 0}
            found.append(pd.DataFrame(columns).assign(cost=values[:, 0], tail=values[:, 1]))
    return pd.concat(found, ignore_index=True)


def repeated(name: str, repeats: int, rules: Gate, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Return for each repeat of a case whether any candidate is promoted, and the rules that refuse the first."""
    case, rows = CASES[name], []
    trial = Trial("simulated", CHAMPION, [f"candidate_{k}" for k in range(case.candidates)], "cost", "tail")
    for repeat in range(repeats):
        results = drawn(case, rules.jobsets, np.random.default_rng([repeat, list(CASES).index(name)]))
        found = judged(results, trial, rules, resamples, seed=repeat)
        promoted = found.groupby("candidate")["passed"].all()
        first = found[(found["candidate"] == "candidate_0") & ~found["passed"]]
        refused = ", ".join(dict.fromkeys(first["rule"]))
        rows.append({"case": name, "repeat": repeat, "promoted": bool(promoted.any()), "refused": refused})
    return pd.DataFrame(rows)


def main(repeats: int) -> None:
    """Judge all cases, and write the table."""
    rules = load_params().rules
    found = pd.concat([repeated(name, repeats, rules) for name in CASES], ignore_index=True)
    found.to_csv(HERE / "promoted.csv", index=False)
    say(str(found.groupby("case")["promoted"].agg(["sum", "count"])))


if __name__ == "__main__":
    main(int(sys.argv[1]))
