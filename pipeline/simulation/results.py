"""What policies did on jobsets, and how good that is by an objective: the same for every problem."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.core import FloatArray, IntArray, Policy

PLAIN, BOUNDED = "mean_slowdown", "mean_bounded_slowdown"  # columns of jobset results
MOST_JOBSETS = 1_000_000  # of one load; keeps the keys of (load, jobset) apart


# Column of the jobset table that an objective is measured by, and the sign that makes less better.
COST_COLUMNS = {
    "slowdown": ("mean_slowdown", 1),
    "bounded_slowdown": ("mean_bounded_slowdown", 1),
    "completion_time": ("completion_time", 1),
    "makespan": ("makespan", 1),
    "utilisation": ("utilisation", -1),
    "delay": ("mean_wait", 1),
}


class Results(NamedTuple):
    """What became of every job, and of every jobset."""

    jobs: pd.DataFrame
    jobsets: pd.DataFrame
    others: Mapping[str, pd.DataFrame] = {}  # tables that only some problems have, by name

    @property
    def by_load(self) -> dict[int, float]:
        """Return the mean slowdown at each load that is compared: the mean over jobsets of the jobset's mean."""
        return self.mean_by_load(slowdown_column(self.jobsets))

    def mean_by_load(self, column: str) -> dict[int, float]:
        """Return the mean over jobsets of a column of their table, at each load."""
        means = self.jobsets.groupby("load")[column].mean()
        return {int(load): float(mean) for load, mean in zip(means.index, means, strict=True)}

    @property
    def curves(self) -> dict[str, dict[int, float]]:
        """Return what is drawn over loads of these: mean slowdown, and in real time mean waiting time."""
        drawn = {"slowdown": self.by_load}
        return drawn | {"delay": self.mean_by_load("mean_wait")} if BOUNDED in self.jobsets else drawn

    @property
    def mean(self) -> float:
        """Return the mean slowdown over loads."""
        return float(np.mean(list(self.by_load.values())))


def tables_of(results: Mapping[str, Results]) -> dict[str, pd.DataFrame]:
    """Return the tables that only some problems have, of all policies in one, by name."""
    names = dict.fromkeys(name for done in results.values() for name in done.others)
    return {name: pd.concat([done.others[name] for done in results.values()], ignore_index=True) for name in names}


def mean_cost(results: Results, objective: str) -> float:
    """Return how good results are by an objective; less is better.

    The mean over loads of the mean over jobsets, as in every comparison.
    """
    column, sign = COST_COLUMNS[objective]
    return sign * float(results.jobsets.groupby("load")[column].mean().mean())


Play = Callable[[Mapping[str, Policy]], dict[str, Results]]  # on validation jobsets, all policies at once


def slowdown_column(jobsets: pd.DataFrame) -> str:
    """Return the column of jobset results that slowdown is compared by.

    In real time jobs of a second would decide all, so that it is the bounded one. In steps no job is shorter than one.
    """
    return BOUNDED if BOUNDED in jobsets else PLAIN


def best_of(results: Mapping[str, Results], column: str | None = None) -> dict[int, str]:
    """Return the policy with the least mean of a column of jobset tables at each load; None: slowdown."""
    return best_by_load(
        {name: done.mean_by_load(column or slowdown_column(done.jobsets)) for name, done in results.items()}
    )


def best_single(results: Mapping[str, Results]) -> dict[int, str]:
    """Return the policy of the least mean slowdown over loads, for each load: the best where none knows the load."""
    best = min(results, key=lambda name: results[name].mean)
    return dict.fromkeys(results[best].by_load, best)


def best_by_load(means: Mapping[str, Mapping[int, float]]) -> dict[int, str]:
    """Return the policy of the least mean slowdown at each load.

    >>> best_by_load({"sjf": {50: 2.0, 90: 3.0}, "hold": {50: 2.5, 90: 2.0}})
    {50: 'sjf', 90: 'hold'}
    """
    loads = next(iter(means.values()))
    return {load: min(means, key=lambda name: means[name][load]) for load in loads}


def percentile(ordered: FloatArray, first: IntArray, share: float) -> FloatArray:
    """Return the linear percentile of each run first[b] : first[b + 1] of values that rise within it.

    >>> percentile(np.array([1.0, 2.0, 4.0, 7.0]), np.array([0, 3, 4]), 0.75)
    array([3., 7.])
    """
    last = first[1:] - 1
    place = share * (last - first[:-1])
    below = np.floor(place).astype(np.int64)
    low = first[:-1] + below
    left, right = ordered[low], ordered[np.minimum(low + 1, last)]
    return np.asarray(left + (right - left) * (place - below))
