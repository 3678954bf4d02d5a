"""The test results of one scenario, and how sure they are: the same resamples of jobsets for every policy and figure.

The resamples are those of `compare`, so an interval that stands in both tables is the same. A value is a sum over
jobsets by another one (jobsets themselves, or jobs of some length), so that one formula serves every mean.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import FEW, gap_interval, interval, lucky
from pipeline.comparing.statistics import Stratum, stratified
from pipeline.config import Evaluation
from pipeline.core import FloatArray
from pipeline.papers.roles import Roles
from pipeline.papers.verdicts import CannotTellError

METRICS = ("mean_slowdown", "completion_time", "makespan", "not_work_conserving")  # those that results have
MOST_LENGTHS = 12  # that are shown each for itself; more are put into groups


class OfJobs(NamedTuple):
    """The mean of a column over jobs whose durations are above one bound and at most another."""

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


class Gap(NamedTuple):
    """How a policy's mean differs from another's on the same jobsets; the difference is relative."""

    policy: str
    against: str
    load: int
    n: int  # jobsets
    mean: float
    mean_against: float
    difference: float
    low: float
    high: float
    unfinished: int  # jobs of both
    of: str = ""  # which jobs, if not all
    few: bool = False  # are there so few jobsets that all could lie on one side by luck?

    @property
    def side(self) -> int:
        """Return -1 or 1 where the whole interval is below or above, else 0."""
        return int(self.low > 0) - int(self.high < 0)


@dataclass(frozen=True)
class Evidence:
    """All that the figures of one scenario are drawn from."""

    roles: Roles
    policies: list[str]  # that are compared, in the order of the results
    jobs: pd.DataFrame  # results of single jobs, of some policies at some loads
    curves: Mapping[str, pd.DataFrame]  # agent -> Curve of its finetuning
    levels: Mapping[str, Mapping[str, float]]  # agent -> heuristic -> mean on validation jobsets, its training loads
    best: Mapping[int, str]  # load -> heuristic that was best on validation jobsets
    long: float  # duration from which a job is a long one; of tasks on machines, above which
    samples: Samples
    confidence: float
    # The sums over jobs that were asked for so far.
    _sums_of_jobs: dict[tuple[OfJobs, int, str], tuple[FloatArray, FloatArray]] = field(default_factory=dict)

    @property
    def loads(self) -> list[int]:
        """Return the loads, rising."""
        return sorted(self.samples)

    def mean(self, metric: Metric, load: int, policy: str) -> Mean:
        """Return a policy's mean of a metric."""
        return self._mean(self.means(metric, load, policy), load)

    def share(self, load: int, policy: str, column: str, lengths: Sequence[int]) -> Mean:
        """Return which share of the sum of a column over a policy's jobs is of jobs of some lengths."""
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

    def gaps(self, metric: Metric, policy: str, against: str) -> list[Gap]:
        """Compare two policies by a metric at every load."""
        return [self.gap(metric, load, policy, against) for load in self.loads]

    def means(self, metric: Metric, load: int, policy: str) -> FloatArray:
        """Return a policy's mean of a metric, in the sample and in each resample [1 + S]."""
        if isinstance(metric, str):
            stratum = self.samples[load][metric]
            return stratum.means(stratum.score)[:, self._column(policy)]
        total, per = self._sums(metric, load, policy)
        if not per.any():
            raise CannotTellError(f"at load {load} there are no {metric.name}")
        return self._ratio(load, total, per)

    def span(self, means: FloatArray) -> tuple[float, float]:
        """Return the interval of a difference by its resamples, which follow the sample itself [1 + S]."""
        low, high = gap_interval(_finite(means[1:]), self.confidence, self._units)
        return float(low), float(high)

    @property
    def _units(self) -> int:
        return min(self._at(load).units for load in self.samples)

    def _at(self, load: int) -> Stratum:
        """Return the sample of a load by the first metric."""
        return next(iter(self.samples[load].values()))

    def has(self, metric: Metric) -> bool:
        """Return whether there is anything of a metric at every load."""
        return all(self._sums(metric, load, self.policies[0])[1].any() for load in self.loads)

    def jobs_of(self, load: int, policy: str) -> pd.DataFrame:
        """Return what became of a policy's jobs at a load."""
        return self._by_policy.get((load, policy), self.jobs.iloc[:0])

    @cached_property
    def _by_policy(self) -> dict[Hashable, pd.DataFrame]:
        """Return all jobs by load and policy: claims ask for the same ones many times, and there may be millions."""
        return dict(iter(self.jobs.groupby(["load", "policy"], sort=False)))

    def lengths(self, load: int) -> list[int]:
        """Return the durations of the jobs of a load, rising."""
        return sorted(int(steps) for steps in self.jobs.loc[self.jobs["load"] == load, "duration"].unique())

    def split(self, load: int) -> tuple[list[int], list[int]]:
        """Return the durations of short jobs and those of long ones.

        Raises:
            CannotTellError: there are none of one kind.
        """
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
        """Return a policy's sum of a metric in each jobset [N], and what it is a sum of: one jobset, or its jobs."""
        column = self._column(policy)
        if isinstance(metric, str):
            total = self.samples[load][metric].score[:, column]
            return total, np.ones(len(total))
        known, asked = self._sums_of_jobs, (metric, load, policy)
        if asked not in known:
            rows = self.jobs_of(load, policy)
            some = rows[(rows["duration"] > metric.above) & (rows["duration"] <= metric.most)]
            by = some.groupby("jobset")[metric.column].agg(["sum", "size"])
            whole = by.reindex(self._at(load).jobset, fill_value=0.0)
            known[asked] = whole["sum"].to_numpy(dtype=float), whole["size"].to_numpy(dtype=float)
        return known[asked]

    def _ratio(self, load: int, total: FloatArray, per: FloatArray) -> FloatArray:
        """Return the sum of one value [N] over the sum of another, over the sample and each resample [1 + S]."""
        counts = self._at(load).counts
        if (per == 1.0).all():  # of jobsets, of which each resample has as many
            return np.asarray(counts @ total / len(per))
        with np.errstate(invalid="ignore"):  # a resample may hold none of some jobs: it is passed over
            return np.asarray(counts @ total / (counts @ per))

    def _mean(self, means: FloatArray, load: int) -> Mean:
        n = self._at(load).units
        mean, (low, high) = float(means[0]), map(float, interval(_finite(means[1:]), self.confidence, n))
        if n < FEW:  # the range holds the mean, but for rounding
            low, high = min(low, mean), max(high, mean)
        return Mean(mean, low, high, n)


def _finite(resampled: FloatArray) -> FloatArray:
    return resampled[np.isfinite(resampled)]


def nearest(loads: Iterable[int], load: int) -> int:
    """Return the load nearest to a paper's; of two the higher one.

    >>> nearest([90, 110, 130], 100)
    110
    """
    return min(loads, key=lambda found: (abs(found - load), -found))


def slowdown_of(lengths: Sequence[int]) -> OfJobs:
    """Return the mean slowdown of the jobs of some lengths, of which none between is left out."""
    ends = f"{lengths[0]} to {lengths[-1]} steps" if len(lengths) > 1 else f"length {lengths[0]}"
    return OfJobs("slowdown", lengths[0] - 1, lengths[-1], f"jobs of {ends}")


def samples_of(results: pd.DataFrame, policies: list[str], settings: Evaluation, seed: int) -> Samples:
    """Return the sample of each load by each metric, with the resamples that `compare` draws."""
    found: dict[int, dict[str, Stratum]] = {}
    for metric in (metric for metric in METRICS if metric in results):
        for stratum in stratified(results, policies, settings.resamples, np.random.default_rng(seed), metric):
            found.setdefault(stratum.load, {})[metric] = stratum
    return found


def groups(lengths: Sequence[int]) -> dict[str, list[int]]:
    """Return durations to be shown: each for itself, or between powers of two where there are many.

    >>> groups([1, 2, 10])
    {'1': [1], '2': [2], '10': [10]}
    """
    if len(lengths) <= MOST_LENGTHS:
        return {str(steps): [steps] for steps in lengths}
    found: dict[int, list[int]] = {}
    for steps in lengths:
        found.setdefault(int(np.log2(steps)), []).append(steps)
    return {f"{some[0]}-{some[-1]}" if len(some) > 1 else str(some[0]): some for some in found.values()}
