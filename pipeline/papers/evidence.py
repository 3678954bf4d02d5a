"""Test results of one scenario with intervals: the same resamples of jobsets for every policy and figure.

The resamples are those of `compare`, so an interval that appears in both tables is the same. A value is one sum over
jobsets divided by another (number of jobsets, or of jobs of some length), so that one formula serves every mean.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import FEW, gap_interval, interval, lucky
from pipeline.comparing.statistics import Stratum
from pipeline.core.types import FloatArray
from pipeline.papers.roles import Roles
from pipeline.papers.rules import CannotTellError, Gap

SLOWDOWN = "mean_slowdown"
MOST_LENGTHS = 12  # shown one by one; more are grouped


class OfJobs(NamedTuple):
    """Mean of a column over jobs whose durations are above one bound and at most another."""

    column: str
    above: float
    most: float
    name: str = "such jobs"


Metric = str | OfJobs  # of jobsets by its column, or of single jobs
Samples = Mapping[int, Mapping[str, Stratum]]  # by load and metric; all metrics of a load have the same jobsets


class Mean(NamedTuple):
    """A mean over the jobsets of one load."""

    value: float
    low: float
    high: float
    n: int  # jobsets


@dataclass(frozen=True)
class Evidence:
    """Data of all figures of one scenario."""

    roles: Roles
    policies: list[str]  # in the order of the results
    jobs: pd.DataFrame  # results of single jobs, of some policies at some loads
    curves: Mapping[str, pd.DataFrame]  # agent -> Curve of its finetuning
    levels: Mapping[str, Mapping[str, float]]  # agent -> heuristic -> validation mean at its training loads
    best: Mapping[int, str]  # load -> heuristic that was best on validation jobsets
    long: float  # duration from which a job is long; on many machines, above which a task is long
    samples: Samples
    confidence: float
    # Sums over jobs, computed when first used.
    _sums_of_jobs: dict[tuple[OfJobs, int, str], tuple[FloatArray, FloatArray]] = field(default_factory=dict)

    @property
    def loads(self) -> list[int]:
        """Return the loads in rising order."""
        return sorted(self.samples)

    def mean(self, metric: Metric, load: int, policy: str) -> Mean:
        """Return a policy's mean of a metric, with its interval."""
        return self._mean(self.means(metric, load, policy), load)

    def share(self, load: int, policy: str, column: str, lengths: Sequence[int]) -> Mean:
        """Return the share of jobs of some lengths in the sum of a column over a policy's jobs."""
        rows = self.jobs_of(load, policy)
        sums = [
            some.groupby("jobset")[column].sum().reindex(self._at(load).jobset, fill_value=0).to_numpy(dtype=float)
            for some in (rows[rows["duration"].isin(lengths)], rows)
        ]
        return self._mean(self._ratio(load, *sums), load)

    def gap(self, metric: Metric, load: int, policy: str, against: str) -> Gap:
        """Compare two policies by a metric at one load."""
        (one, per), (other, _) = self._sums(metric, load, policy), self._sums(metric, load, against)
        mean, mean_against = (self.means(metric, load, name) for name in (policy, against))
        # The mean of differences, not the difference of means: between equal scores it is exactly 0.
        difference = self._ratio(load, one - other, per) / mean_against
        numbers = float(mean[0]), float(mean_against[0]), float(difference[0])
        of, few = metric.name if isinstance(metric, OfJobs) else "", lucky(self._units, self.confidence)
        unfinished = self._at(load).unfinished[[self._column(policy), self._column(against)]].sum()
        return Gap(policy, against, load, len(one), *numbers, *self.span(difference), int(unfinished), of, few)

    def means(self, metric: Metric, load: int, policy: str) -> FloatArray:
        """Return a policy's mean of a metric, in the sample and in each resample [1 + S]."""
        total, per = self._sums(metric, load, policy)
        if isinstance(metric, OfJobs) and not per.any():
            raise CannotTellError(f"at load {load} there are no {metric.name}")
        return self._ratio(load, total, per)

    def span(self, means: FloatArray) -> tuple[float, float]:
        """Return the interval of a difference by its resamples, which follow the sample itself [1 + S]."""
        resampled = means[1:]
        low, high = gap_interval(resampled[np.isfinite(resampled)], self.confidence, self._units)
        return float(low), float(high)

    @property
    def _units(self) -> int:
        return min(self._at(load).units for load in self.samples)

    def _at(self, load: int) -> Stratum:
        return next(iter(self.samples[load].values()))  # all metrics of a load have the same jobsets

    def has(self, metric: Metric) -> bool:
        """Return whether every load has values of a metric."""
        return all(self._sums(metric, load, self.policies[0])[1].any() for load in self.loads)

    def jobs_of(self, load: int, policy: str) -> pd.DataFrame:
        """Return the results of a policy's jobs at a load."""
        return self._by_policy.get((load, policy), self.jobs.iloc[:0])

    @cached_property
    def _by_policy(self) -> dict[Hashable, pd.DataFrame]:
        # Claims use the same jobs many times, and there may be millions.
        return dict(iter(self.jobs.groupby(["load", "policy"], sort=False)))

    def lengths(self, load: int) -> list[int]:
        """Return the durations of the jobs of a load, in rising order."""
        return sorted(int(steps) for steps in self.jobs.loc[self.jobs["load"] == load, "duration"].unique())

    def split(self, load: int) -> tuple[list[int], list[int]]:
        """Return the durations of short and of long jobs, or raise CannotTellError if either kind is missing."""
        found = self.lengths(load)
        short, long = [d for d in found if d < self.long], [d for d in found if d >= self.long]
        if not short or not long:
            raise CannotTellError(f"at load {load} there are not both jobs below {self.long:g} steps and longer ones")
        return short, long

    def _column(self, policy: str) -> int:
        if policy not in self.policies:
            raise CannotTellError(f"policy {policy} was not scored in scenario {self.roles.scenario}")
        return self.policies.index(policy)

    def _sums(self, metric: Metric, load: int, policy: str) -> tuple[FloatArray, FloatArray]:
        """Return a policy's sum of a metric in each jobset [N], and the number of terms: one jobset, or its jobs."""
        column = self._column(policy)
        if isinstance(metric, str):
            total = self.samples[load][metric].score[:, column]
            return total, np.ones(len(total))
        known, key = self._sums_of_jobs, (metric, load, policy)
        if key not in known:
            rows = self.jobs_of(load, policy)
            some = rows[(rows["duration"] > metric.above) & (rows["duration"] <= metric.most)]
            by = some.groupby("jobset")[metric.column].agg(["sum", "size"])
            whole = by.reindex(self._at(load).jobset, fill_value=0.0)
            known[key] = whole["sum"].to_numpy(dtype=float), whole["size"].to_numpy(dtype=float)
        return known[key]

    def _ratio(self, load: int, total: FloatArray, per: FloatArray) -> FloatArray:
        """Return the ratio of two sums [N] in the sample and in each resample [1 + S]."""
        counts = self._at(load).counts
        with np.errstate(invalid="ignore"):  # resamples without such jobs are left out later
            return np.asarray(counts @ total / (counts @ per))

    def _mean(self, means: FloatArray, load: int) -> Mean:
        n, mean, resampled = self._at(load).units, float(means[0]), means[1:]
        low, high = map(float, interval(resampled[np.isfinite(resampled)], self.confidence, n))
        if n < FEW:  # the range contains the mean, except for rounding
            low, high = min(low, mean), max(high, mean)
        return Mean(mean, low, high, n)


Who = str | Callable[[Evidence, str], str]  # a policy, or the choice of one from the evidence and an agent


def nearest(loads: Iterable[int], load: int) -> int:
    """Return the load nearest to a paper's, the higher of two.

    >>> nearest([90, 110, 130], 100)
    110
    """
    return min(loads, key=lambda found: (abs(found - load), -found))


def slowdown_of(lengths: Sequence[int]) -> OfJobs:
    """Return the mean slowdown of the jobs in a range of lengths."""
    ends = f"{lengths[0]} to {lengths[-1]} steps" if len(lengths) > 1 else f"length {lengths[0]}"
    return OfJobs("slowdown", lengths[0] - 1, lengths[-1], f"jobs of {ends}")


def versus(
    policy: Who, other: Who, metric: Metric | Callable[[Evidence, int], Metric] = SLOWDOWN, load: int | None = None
) -> Callable[[Evidence, str], list[Gap]]:
    """Return a function that compares two policies at the load nearest to a paper's, or at every load."""

    def find(evidence: Evidence, agent: str) -> list[Gap]:
        loads = evidence.loads if load is None else [nearest(evidence.loads, load)]
        metrics = [metric(evidence, at) if callable(metric) else metric for at in loads]
        names = [name(evidence, agent) if callable(name) else name for name in (policy, other)]
        return [evidence.gap(of, at, *names) for of, at in zip(metrics, loads, strict=True)]

    return find


def rival(evidence: Evidence, agent: str) -> str:
    """Return DeepRM's agent to compare with one of DeepRM2."""
    return evidence.roles.rival(agent)


def whiskers(means: Sequence[Mean]) -> list[list[float]]:
    """Return the lengths of error bars below and above some means, as matplotlib takes them."""
    return [[mean.value - mean.low for mean in means], [mean.high - mean.value for mean in means]]


def groups(lengths: Sequence[int]) -> dict[str, list[int]]:
    """Return groups of durations: one each, or between powers of two where there are many.

    >>> groups([1, 2, 10])
    {'1': [1], '2': [2], '10': [10]}
    """
    if len(lengths) <= MOST_LENGTHS:
        return {str(steps): [steps] for steps in lengths}
    found: dict[int, list[int]] = {}
    for steps in lengths:
        found.setdefault(int(np.log2(steps)), []).append(steps)
    return {f"{some[0]}-{some[-1]}" if len(some) > 1 else str(some[0]): some for some in found.values()}
