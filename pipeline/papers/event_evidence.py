"""The test results of one event-driven scenario, and how sure they are: the same resamples of jobsets as `compare`.

Every metric is a sum over jobsets by another one: of a jobset's metric by the jobsets, or of the completion times of
its short or long tasks by the number of those, so that one formula serves every mean. The words at the foot say
of differences whether they keep to a bound.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.statistics import by_jobset, interval, resample
from pipeline.config import Evaluation, Params
from pipeline.core import FloatArray, IntArray
from pipeline.papers.cast import Cast
from pipeline.papers.evidence import Gap, Mean
from pipeline.papers.verdicts import CANNOT, NO, PARTLY, YES, CannotTellError, every

HEURISTICS = ("fcfs", "random", "sjf", "tetris")  # Deepk8s's
METRICS = ("mean_slowdown", "completion_time", "makespan")
NEARLY = 0.05  # a share: policies that differ by less are nearly equal
SHORT, LONG = "short tasks", "long tasks"  # completion time of those; all: completion_time


class EventSample(NamedTuple):
    """The N jobsets of one load, scored by P policies, and S resamples of them."""

    counts: FloatArray  # [1 + S, N]  how often each jobset counts; row 0 is the sample itself
    totals: dict[str, FloatArray]  # metric -> [N, P]
    per: dict[str, FloatArray]  # metric -> [N]  what its total is of: one jobset, or tasks
    unfinished: IntArray  # [P]  jobs


class EventEvidence(NamedTuple):
    """All that the figures of one event-driven scenario are drawn from."""

    cast: Cast
    policies: list[str]  # those that are compared, in the order of the results
    samples: Mapping[int, EventSample]  # by load
    curves: Mapping[str, pd.DataFrame]  # agent -> Curve of its finetuning
    levels: Mapping[str, Mapping[str, float]]  # agent -> heuristic -> mean on validation jobsets, its training loads
    long: float  # time units: a task that runs for more is a long one
    confidence: float

    @property
    def loads(self) -> list[int]:
        """Return the loads, rising."""
        return sorted(self.samples)

    def has(self, metric: str) -> bool:
        """Return whether there is anything of a metric at every load."""
        return all(sample.per[metric].any() for sample in self.samples.values())

    def mean(self, metric: str, load: int, policy: str) -> Mean:
        """Return a policy's mean of a metric."""
        sample = self.samples[load]
        means = self._ratio(metric, load, sample.totals[metric][:, self._column(policy)])
        return Mean(float(means[0]), *self._span(means[1:]), sample.counts.shape[1])

    def gap(self, metric: str, load: int, policy: str, against: str) -> Gap:
        """Compare two policies by a metric at one load."""
        sample, one, other = self.samples[load], self._column(policy), self._column(against)
        total = sample.totals[metric]
        # The mean of differences, not the difference of means: between equal scores it is exactly 0.
        pairs = (total[:, one], total[:, other], total[:, one] - total[:, other])
        mean, mean_against, apart = (self._ratio(metric, load, values) for values in pairs)
        difference = apart / mean_against
        numbers = float(mean[0]), float(mean_against[0]), float(difference[0])
        unfinished = int(sample.unfinished[one] + sample.unfinished[other])
        jobsets = sample.counts.shape[1]
        return Gap(policy, against, load, jobsets, *numbers, *self._span(difference[1:]), unfinished)

    def gaps(self, metric: str, policy: str, against: str) -> list[Gap]:
        """Compare two policies by a metric at every load."""
        return [self.gap(metric, load, policy, against) for load in self.loads]

    def _column(self, policy: str) -> int:
        if policy not in self.policies:
            raise CannotTellError(f"policy {policy} was not scored in scenario {self.cast.scenario}")
        return self.policies.index(policy)

    def _ratio(self, metric: str, load: int, total: FloatArray) -> FloatArray:
        """Return a metric's total [N] over what it is of, in the sample and in each resample [1 + S]."""
        sample = self.samples[load]
        if not sample.per[metric].any():
            raise CannotTellError(f"at load {load} there are no {metric} (they are told apart at {self.long:.4g})")
        with np.errstate(invalid="ignore"):  # a resample may hold none of such tasks: it is passed over
            return np.asarray(sample.counts @ total / (sample.counts @ sample.per[metric]))

    def _span(self, resampled: FloatArray) -> tuple[float, float]:
        low, high = interval(resampled[np.isfinite(resampled)], self.confidence)
        return float(low), float(high)


def compared(cast: Cast) -> list[str]:
    """Return the policies whose single jobs are looked at: the paper's heuristics, and agents for slowdown."""
    return [*HEURISTICS, *cast.of("slowdown")]


def gathered_events(
    params: Params,
    cast: Cast,
    results: pd.DataFrame,
    jobs: pd.DataFrame,
    curves: Mapping[str, pd.DataFrame],
    levels: Mapping[str, Mapping[str, float]],
) -> EventEvidence:
    """Return the evidence of one event-driven scenario.

    Args:
        params: the bootstrap's settings, and the seed.
        cast: the scenario's agents.
        results: EventJobsetResults of all its policies.
        jobs: EventJobResults of the policies that are `compared`, at every load.
        curves: of the finetuning of each agent for slowdown.
        levels: agent -> heuristic -> mean slowdown on validation jobsets of the loads that it was trained on.
    """
    wanted = compared(cast)
    policies = [policy for policy in results["policy"].unique() if policy in wanted]
    long = float(jobs["duration"].mean())
    samples = _samples(results, jobs, policies, long, params.evaluation, params.seed)
    return EventEvidence(cast, policies, samples, curves, levels, long, params.evaluation.confidence)


def _samples(
    results: pd.DataFrame, jobs: pd.DataFrame, policies: Sequence[str], long: float, settings: Evaluation, seed: int
) -> dict[int, EventSample]:
    """Return the sample of each load, with the resamples that `compare` draws."""
    rng, found = np.random.default_rng(seed), {}
    spent, tasks = _by_length(jobs, policies, long)
    for load, part in results.groupby("load"):
        tables = {metric: by_jobset(part, policies, metric) for metric in METRICS}
        jobsets = tables[METRICS[0]].index
        per: dict[str, FloatArray] = {metric: np.ones(len(jobsets)) for metric in METRICS}
        for length in (SHORT, LONG):
            rows = pd.MultiIndex.from_product([[load], [length], jobsets])
            tables[length] = spent.reindex(rows, fill_value=0.0)
            per[length] = tasks.reindex(rows, fill_value=0).to_numpy(dtype=float)
        counts = resample(len(jobsets), settings.resamples, rng)
        totals: dict[str, FloatArray] = {metric: table.to_numpy(dtype=float) for metric, table in tables.items()}
        unfinished = part.groupby("policy")["unfinished"].sum().loc[list(policies)].to_numpy()
        found[int(str(load))] = EventSample(counts, totals, per, unfinished)
    return found


def _by_length(jobs: pd.DataFrame, policies: Sequence[str], long: float) -> tuple[pd.DataFrame, pd.Series]:
    """Return the sum of completion times of each policy, and the tasks, by load, length and jobset."""
    length = np.where(jobs["duration"] > long, LONG, SHORT)
    keyed = jobs[["load", "jobset", "policy"]].assign(length=length, spent=jobs["finish"] - jobs["arrival"])
    by = ["load", "length", "jobset"]
    spent = keyed.pivot_table(index=by, columns="policy", values="spent", aggfunc="sum", fill_value=0.0)
    tasks = keyed[keyed["policy"] == policies[0]].groupby(by).size()  # the same under every policy
    return spent.reindex(columns=list(policies), fill_value=0.0), tasks


def nearly(gaps: Sequence[Gap]) -> str:
    """Return whether policies are nearly equal everywhere: the whole interval must be within the bound."""
    within = sum(gap.low > -NEARLY and gap.high < NEARLY for gap in gaps)
    beyond = sum(gap.low > NEARLY or gap.high < -NEARLY for gap in gaps)
    if not within and not beyond:
        return CANNOT
    return {len(gaps): YES, 0: NO}.get(within, PARTLY)


def below_by(gaps: Sequence[Gap], share: float) -> str:
    """Return whether a policy is below another by at least a share everywhere: the whole interval must be."""
    return every([gap._replace(low=gap.low + share, high=gap.high + share) for gap in gaps])


def below_by_at_most(gaps: Sequence[Gap], share: float) -> str:
    """Return whether a policy is nowhere below another by more than a share: the whole interval must be nearer."""
    return every([gap._replace(low=-gap.high - share, high=-gap.low - share) for gap in gaps])
