"""The test results of one scenario, and how sure they are: the same resamples of jobsets for every policy and figure.

The resamples are those of `compare`, so an interval that stands in both tables is the same. A value is a sum over
jobsets by another one (jobsets themselves, or jobs of some length), so that one formula serves every mean.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.statistics import by_jobset, interval, resample
from pipeline.config import Evaluation
from pipeline.core import FloatArray, IntArray
from pipeline.papers.cast import Cast
from pipeline.papers.verdicts import CannotTellError

METRICS = ("mean_slowdown", "completion_time", "not_work_conserving")
MOST_LENGTHS = 12  # that are shown each for itself; more are put into groups


class Sample(NamedTuple):
    """The N jobsets of one load, scored by P policies, and S resamples of them."""

    jobsets: IntArray  # [N]
    counts: FloatArray  # [1 + S, N]  how often each jobset counts; row 0 is the sample itself
    scores: dict[str, FloatArray]  # metric -> [N, P]
    means: dict[str, FloatArray]  # metric -> [1 + S, P]


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

    @property
    def side(self) -> int:
        """Return -1 or 1 where the whole interval is below or above, else 0."""
        return int(self.low > 0) - int(self.high < 0)


class Evidence(NamedTuple):
    """All that the figures of one scenario are drawn from."""

    cast: Cast
    results: pd.DataFrame  # JobsetResults of every policy
    jobs: pd.DataFrame  # JobResults of some policies at some loads
    curves: Mapping[str, pd.DataFrame]  # agent -> Curve of its finetuning
    levels: Mapping[str, Mapping[str, float]]  # agent -> heuristic -> mean on validation jobsets, its training loads
    best: Mapping[int, str]  # load -> heuristic that was best on validation jobsets
    long: float  # steps from which a job is a long one
    samples: Mapping[int, Sample]  # by load
    confidence: float

    @property
    def loads(self) -> list[int]:
        """Return the loads, rising."""
        return sorted(self.samples)

    @property
    def policies(self) -> list[str]:
        """Return every policy that was scored."""
        return list(self.results["policy"].unique())

    def mean(self, metric: str, load: int, policy: str) -> Mean:
        """Return a policy's mean of a jobset metric."""
        sample = self.samples[load]
        return self._mean(sample, sample.means[metric][:, self._column(policy)])

    def gap(self, metric: str, load: int, policy: str, against: str) -> Gap:
        """Compare two policies by a jobset metric."""
        sample, one, other = self.samples[load], self._column(policy), self._column(against)
        means, scores = sample.means[metric], sample.scores[metric]
        # The mean of differences, not the difference of means: between equal scores it is exactly 0.
        apart = sample.counts @ (scores[:, one] - scores[:, other]) / len(scores)
        return self._gap(load, policy, against, means[:, one], means[:, other], apart)

    def job_mean(self, load: int, policy: str, lengths: Iterable[int]) -> Mean:
        """Return the mean slowdown of a policy's jobs of some lengths."""
        total, jobs = self._sums(load, policy, lengths)
        return self._mean(self.samples[load], self._ratio(load, total, jobs))

    def job_gap(self, load: int, policy: str, against: str, lengths: Iterable[int]) -> Gap:
        """Compare two policies by the mean slowdown of the jobs of some lengths."""
        some = list(lengths)
        (one, jobs), (other, _) = self._sums(load, policy, some), self._sums(load, against, some)
        means = (self._ratio(load, total, jobs) for total in (one, other, one - other))
        return self._gap(load, policy, against, *means)

    def jobs_of(self, load: int, policy: str) -> pd.DataFrame:
        """Return what became of a policy's jobs at a load."""
        return self.jobs[(self.jobs["policy"] == policy) & (self.jobs["load"] == load)]

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
            raise CannotTellError(f"policy {policy} was not scored in scenario {self.cast.scenario}")
        return self.policies.index(policy)

    def _sums(self, load: int, policy: str, lengths: Iterable[int]) -> tuple[FloatArray, FloatArray]:
        """Return the sum of slowdowns [N] and the number [N] of a policy's jobs of some lengths."""
        rows = self.jobs_of(load, policy)
        by = rows[rows["duration"].isin(list(lengths))].groupby("jobset")["slowdown"].agg(["sum", "size"])
        whole = by.reindex(self.samples[load].jobsets, fill_value=0.0)
        return whole["sum"].to_numpy(dtype=float), whole["size"].to_numpy(dtype=float)

    def _ratio(self, load: int, total: FloatArray, per: FloatArray) -> FloatArray:
        """Return the sum of one value [N] over the sum of another, over the sample and each resample."""
        if not per.sum():
            raise CannotTellError(f"at load {load} there are no such jobs")
        counts = self.samples[load].counts
        with np.errstate(invalid="ignore"):  # a resample may hold none of some jobs: it is passed over
            return np.asarray(counts @ total / (counts @ per))

    def _mean(self, sample: Sample, means: FloatArray) -> Mean:
        return Mean(float(means[0]), *self._span(means[1:]), len(sample.jobsets))

    def _gap(
        self, load: int, policy: str, against: str, mean: FloatArray, mean_against: FloatArray, apart: FloatArray
    ) -> Gap:
        difference = apart / mean_against
        rows = self.results[(self.results["load"] == load) & self.results["policy"].isin([policy, against])]
        numbers = float(mean[0]), float(mean_against[0]), float(difference[0])
        jobsets = len(self.samples[load].jobsets)
        return Gap(policy, against, load, jobsets, *numbers, *self._span(difference[1:]), int(rows["unfinished"].sum()))

    def _span(self, resampled: FloatArray) -> tuple[float, float]:
        low, high = interval(resampled[np.isfinite(resampled)], self.confidence)
        return float(low), float(high)


def nearest(loads: Iterable[int], load: int) -> int:
    """Return the load nearest to a paper's; of two the higher one.

    >>> nearest([90, 110, 130], 100)
    110
    """
    return min(loads, key=lambda found: (abs(found - load), -found))


def samples_of(results: pd.DataFrame, settings: Evaluation, seed: int) -> dict[int, Sample]:
    """Return the sample of each load, with the resamples that `compare` draws."""
    rng = np.random.default_rng(seed)
    policies, found = list(results["policy"].unique()), {}
    for load, part in results.groupby("load"):
        tables = {metric: by_jobset(part, policies, metric) for metric in METRICS}
        jobsets = tables[METRICS[0]].index.to_numpy()
        counts = resample(len(jobsets), settings.resamples, rng)
        scores = {metric: table.to_numpy() for metric, table in tables.items()}
        means = {metric: np.asarray(counts @ value / len(jobsets)) for metric, value in scores.items()}
        found[int(str(load))] = Sample(jobsets, counts, scores, means)
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
