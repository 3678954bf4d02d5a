"""Coverage of the intervals that the project reports, by resampling results that are in the repository.

    python -m benchmarks.coverage 400        # 400 repeats of each case; writes docs/results/intervals/coverage.csv

The stored jobsets of a case serve as the whole population, so that the true ratio of means is known. A repeat draws as
many jobsets (or windows) as the project judges on, computes the interval with the project's own code, and counts
whether it contains the true ratio. The population of seeds is not stored: they are drawn from a normal distribution
with the spread of the stored seeds.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import seen_at
from pipeline.comparing.statistics import ALL, comparison
from pipeline.core.config import Evaluation
from pipeline.core.types import FloatArray
from pipeline.progress import say

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
TABLE = RESULTS / "intervals" / "coverage.csv"
SETTINGS = Evaluation(resamples=1000, confidence=0.95)
MEAN, OTHER = "mean", "other"
BOUND, LEVEL, LONG = 0.25, 0.05, 365  # monitoring: bound of a regret, chance of a false alarm, windows of a stream


class Population(NamedTuple):
    """Paired results of two policies, or of several training runs and a rule: load -> [N, P], the rule last."""

    costs: Mapping[int, FloatArray]
    windows: bool = False  # whether all loads use the same windows

    @property
    def truth(self) -> float:
        """Return the relative difference of the first policies' mean to the last policy's, over loads."""
        mine, other = (np.mean([f(cost) for cost in self.costs.values()]) for f in (_mine, _other))
        return float(mine / other - 1)


class Case(NamedTuple):
    """A reported interval whose coverage is measured."""

    data: str  # a file of docs/results
    keep: str  # a query of its rows
    value: str
    policies: Sequence[str]  # the reference is the last
    n: int = 0  # jobsets, or windows, that a repeat draws; 0: as many as are stored
    windows: bool = False
    name: str = "policy"  # column with the policies' names


TESTED = "default/tested/{}.csv.gz"
SEEDS = ("deeprm2", "deeprm2_2", "deeprm2_3", "sjf")
CASES = {
    "one load": Case(TESTED.format("online"), "load == 130", "mean_slowdown", ("deeprm", "sjf")),
    "low load": Case(TESTED.format("online"), "load == 30", "mean_slowdown", ("deeprm", "sjf")),
    "all loads": Case(TESTED.format("online"), "", "mean_slowdown", ("deeprm", "sjf")),
    "24": Case(TESTED.format("online"), "load >= 130", "mean_slowdown", ("deeprm", "sjf"), 24),
    "99th percentile": Case(TESTED.format("online"), "", "p99_slowdown", ("deeprm", "sjf")),
    "machines": Case(TESTED.format("machines"), "", "mean_bounded_slowdown", ("deepk8s_ppo", "sjf")),
    "groups": Case(TESTED.format("shares"), "", "mean_wait", ("controller", "proportional")),
    "seeds": Case(
        "paper-scale/as_published.csv.gz",
        "scenario == 'online' and measure == 'mean_slowdown'",
        "value",
        SEEDS,
    ),
    "windows": Case(
        "controller/jobsets.csv.gz",
        "scenario == 'hpc2n_4'",
        "mean_wait",
        ("lookahead", "proportional"),
        windows=True,
    ),
    "8 windows": Case(
        "deepk8s/jobsets.csv.gz",
        "scenario == 'openb'",
        "mean_slowdown",
        ("saf", "sjf"),
        windows=True,
    ),
}


def population(case: Case) -> Population:
    """Return the stored results of a case."""
    rows = pd.read_csv(RESULTS / case.data)
    rows = rows.query(case.keep) if case.keep else rows
    wide = rows.pivot(index=["load", "jobset"], columns=case.name, values=case.value)[list(case.policies)]
    costs = {int(str(load)): part.to_numpy(dtype=float) for load, part in wide.groupby("load")}
    return Population(costs, case.windows)


def drawn(whole: Population, n: int, rng: np.random.Generator) -> Population:
    """Draw n jobsets (or windows) per load; of several training runs, also seeds with the spread of the stored ones."""
    size = len(next(iter(whole.costs.values())))
    together = rng.integers(0, size, n or size) if whole.windows else None
    seeds = _mine_each(whole)
    spread = rng.normal(0, seeds.std(ddof=1), len(seeds)) if len(seeds) > 1 else np.zeros(len(seeds))
    found = {}
    for load, cost in whole.costs.items():
        some = cost[together if together is not None else rng.integers(0, len(cost), n or len(cost))].copy()
        if len(seeds) > 1:  # each seed: mean of the stored seeds, shifted, with the noise of its own jobsets
            own = some[:, :-1] - cost[:, :-1].mean(axis=0)
            some[:, :-1] = own + cost[:, :-1].mean() * (1 + spread / seeds.mean())
        found[load] = some
    return Population(found, whole.windows)


def interval(sample: Population, seed: int = 1) -> tuple[float, float]:
    """Return the interval over all loads that the project reports for a sample; `seed` is for the resamples."""
    mine = [f"seed_{k}" for k in range(next(iter(sample.costs.values())).shape[1] - 1)]
    frames = []
    for load, cost in sample.costs.items():
        for policy, values in zip((*mine, OTHER), cost.T, strict=True):
            columns = {"policy": policy, "load": load, "jobset": np.arange(len(values)), "unfinished": 0}
            frames.append(pd.DataFrame(columns).assign(mean_slowdown=values))
    frame = pd.concat(frames, ignore_index=True)
    frame = frame.assign(unit=frame["jobset"]) if sample.windows else frame
    to = {OTHER: dict.fromkeys(sample.costs, OTHER)}
    trainings = {MEAN: mine} if len(mine) > 1 else {}
    found = comparison(frame, "", to, SETTINGS, np.random.default_rng(seed), trainings)
    row = found[(found["load"] == ALL) & (found["policy"] == (MEAN if trainings else mine[0]))].iloc[0]
    return float(row["difference_low"]), float(row["difference_high"])


def measured(name: str, repeats: int) -> dict[str, object]:
    """Return how often intervals of a case miss the true value on each side."""
    case = CASES[name]
    whole = population(case)
    n = case.n or len(next(iter(whole.costs.values())))
    low = high = 0
    for k in range(repeats):
        begin, end = interval(drawn(whole, n, np.random.default_rng([k, len(name), n])), seed=k)
        low, high = low + (whole.truth < begin), high + (whole.truth > end)
    return {"case": name, "n": n, "loads": len(whole.costs), "repeats": repeats, "above": low, "below": high}


def alarms(repeats: int) -> dict[str, object]:
    """Return how often a confidence sequence rejects the true mean at any time of a stream of regrets."""
    cost = np.concatenate(list(population(CASES["all loads"]).costs.values()))
    regret = np.clip((cost[:, 0] - cost[:, 1]) / cost.max(axis=1), -BOUND, BOUND)
    truth, refused = float(regret.mean()), 0
    for k in range(repeats):
        stream = np.random.default_rng([k, LONG]).choice(regret, (1, LONG))
        refused += seen_at(stream, np.ones(1), truth, LEVEL, BOUND) is not None
    return {"case": "sequence", "n": LONG, "loads": 1, "repeats": repeats, "above": refused, "below": 0}


def _mine(cost: FloatArray) -> float:
    return float(cost[:, :-1].mean())


def _other(cost: FloatArray) -> float:
    return float(cost[:, -1].mean())


def _mine_each(whole: Population) -> FloatArray:
    return np.asarray(np.mean([cost[:, :-1].mean(axis=0) for cost in whole.costs.values()], axis=0))


def main(repeats: int) -> None:
    """Measure all cases and write the table."""
    rows = []
    for name in CASES:
        rows.append(measured(name, repeats))
        say(f"coverage: {rows[-1]}")
    rows.append(alarms(repeats))
    TABLE.parent.mkdir(exist_ok=True)
    pd.DataFrame(rows).to_csv(TABLE, index=False)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
