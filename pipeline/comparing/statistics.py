"""How sure are we? A paired bootstrap over jobsets.

The estimand is the mean over jobsets of the jobset's mean slowdown, at each load; "all" is the mean over loads of those
means. Resamples draw jobsets within their load (stratified), the same ones for every policy (paired), and intervals are
percentiles of them (Efron and Tibshirani 1993, section 13.3). A resample is a row of counts, how often each jobset was
drawn, so one matrix product per load resamples all policies at once.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.config import Evaluation
from pipeline.core import FloatArray, IntArray

ALL = "all"
NOTHING = 1e-9  # a reference under which nobody waits has no relative difference: whoever waits is far above it


class Stratum(NamedTuple):
    """The N jobsets of one load, scored by P policies, and S resamples of them."""

    load: int
    slowdown: FloatArray  # [N, P]  mean slowdown of each jobset
    unfinished: IntArray  # [P]     jobs, over all jobsets
    counts: FloatArray  # [1 + S, N]  how often each jobset counts; row 0: once each, the sample itself

    def means(self, value: FloatArray) -> FloatArray:
        """Return the mean of a value [N, P] over the sample and over each resample, [1 + S, P]."""
        return np.asarray(self.counts @ value / len(value))


class Estimates(NamedTuple):
    """Means of P policies and their gaps to a reference, in the sample (row 0) and in S resamples, at L loads."""

    mean: FloatArray  # [L, 1 + S, P]
    mean_against: FloatArray  # [L, 1 + S]
    gap: FloatArray  # [L, 1 + S, P]  mean of slowdown less the reference's


def comparison(
    frame: pd.DataFrame,
    scenario: str,
    references: Mapping[str, Mapping[int, str]],
    settings: Evaluation,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Compare every policy of one scenario with every reference, at each load and over all.

    Args:
        frame: JobsetResults of one scenario, every policy scored on the same jobsets.
        scenario: its name.
        references: label -> load -> policy. Choose a best heuristic on other jobsets than these: the interval does
            not know of the choice. A policy is not compared with itself.
        settings: of the bootstrap.
        rng: from the same seed, a policy's interval is the same here and in `summary`, whoever it is compared with.

    Raises:
        ValueError: policies were scored on different jobsets, or a reference has no scores.
    """
    policies = list(frame["policy"].unique())
    strata = _strata(frame, policies, settings.resamples, rng)
    groups = {f"{stratum.load:03d}": [place] for place, stratum in enumerate(strata)} | {ALL: list(range(len(strata)))}
    tables = []
    for label, choice in references.items():
        columns = [_column(policies, label, choice, stratum.load) for stratum in strata]
        estimates = _estimates(strata, columns)
        for load, places in groups.items():
            names = {"scenario": scenario, "load": load, "policy": policies, "against": label}
            numbers = _compare([strata[k] for k in places], _over(estimates, places), settings.confidence)
            other = [any(columns[k] != p for k in places) for p in range(len(policies))]
            tables.append(pd.DataFrame(names | numbers)[other])
    return pd.concat(tables, ignore_index=True)


def summary(frame: pd.DataFrame, scenario: str, settings: Evaluation, rng: np.random.Generator) -> pd.DataFrame:
    """Return every metric of each policy of one scenario, at each load.

    Raises:
        ValueError: policies were scored on different jobsets.
    """
    policies = list(frame["policy"].unique())
    strata = _strata(frame, policies, settings.resamples, rng)
    return pd.concat([_summary(frame, scenario, policies, stratum, settings) for stratum in strata], ignore_index=True)


def interval(resampled: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Return the percentile interval over the first axis.

    >>> low, high = interval(np.arange(101.0), 0.9)
    >>> round(float(low), 6), round(float(high), 6)
    (5.0, 95.0)
    """
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail], axis=0)
    return low, high


def resample(jobsets: int, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return how often each jobset counts, [1 + S, N]: once each in row 0, the sample itself."""
    drawn = rng.multinomial(jobsets, np.full(jobsets, 1 / jobsets), size=resamples)
    return np.vstack([np.ones(jobsets), drawn])


def by_jobset(part: pd.DataFrame, policies: Sequence[str], column: str) -> pd.DataFrame:
    """Return a metric of one load, a row for each jobset and a column for each policy.

    Raises:
        ValueError: policies were scored on different jobsets.
    """
    found = part.pivot(index="jobset", columns="policy", values=column).reindex(columns=list(policies))
    _must_be_paired(found, part["load"].iloc[0])
    return found


def _strata(frame: pd.DataFrame, policies: list[str], resamples: int, rng: np.random.Generator) -> list[Stratum]:
    strata = []
    for _, part in frame.groupby("load"):
        slowdown = by_jobset(part, policies, "mean_slowdown")
        counts = resample(len(slowdown), resamples, rng)
        unfinished = part.groupby("policy")["unfinished"].sum().loc[policies].to_numpy()
        strata.append(Stratum(int(part["load"].iloc[0]), slowdown.to_numpy(), unfinished, counts))
    return strata


def _must_be_paired(slowdown: pd.DataFrame, load: object) -> None:
    missing = np.argwhere(slowdown.isna().to_numpy())
    if len(missing):
        jobset, policy = slowdown.index[missing[0, 0]], slowdown.columns[missing[0, 1]]
        raise ValueError(f"policy '{policy}' was not scored on jobset {jobset} of load {load}, but another one was")


def _column(policies: Sequence[str], label: str, choice: Mapping[int, str], load: int) -> int:
    if load not in choice:
        raise ValueError(f"reference '{label}' names no policy for load {load}")
    if choice[load] not in policies:
        raise ValueError(f"reference '{label}' is policy '{choice[load]}' at load {load}, which has no scores")
    return policies.index(choice[load])


def _estimates(strata: Sequence[Stratum], columns: Sequence[int]) -> Estimates:
    """Return means and gaps at each load; columns [L] holds the reference's place among the policies."""
    mean = np.stack([stratum.means(stratum.slowdown) for stratum in strata])
    against = np.stack([mean[k, :, column] for k, column in enumerate(columns)])
    # The mean of differences, not the difference of means: between equal scores it is exactly 0, however BLAS rounds.
    gap = [s.means(s.slowdown - s.slowdown[:, [column]]) for s, column in zip(strata, columns, strict=True)]
    return Estimates(mean, against, np.stack(gap))


def _over(estimates: Estimates, loads: list[int]) -> Estimates:
    """Return the mean over some loads, without the axis of loads."""
    return Estimates._make(field[loads].mean(axis=0) for field in estimates)


def _compare(strata: Sequence[Stratum], estimates: Estimates, confidence: float) -> dict[str, FloatArray | IntArray]:
    """Return the numbers of a Comparison, each [P]."""
    difference = estimates.gap / np.maximum(estimates.mean_against, NOTHING)[:, None]
    low, high = interval(estimates.mean[1:], confidence)
    difference_low, difference_high = interval(difference[1:], confidence)
    policies = len(low)
    return {
        "n": np.full(policies, sum(len(stratum.slowdown) for stratum in strata)),
        "mean": estimates.mean[0],
        "low": low,
        "high": high,
        "mean_against": np.full(policies, estimates.mean_against[0]),
        "difference": difference[0],
        "difference_low": difference_low,
        "difference_high": difference_high,
        "unfinished": np.sum([stratum.unfinished for stratum in strata], axis=0),
    }


def _summary(
    frame: pd.DataFrame, scenario: str, policies: list[str], stratum: Stratum, settings: Evaluation
) -> pd.DataFrame:
    mean = stratum.means(stratum.slowdown)
    low, high = interval(mean[1:], settings.confidence)
    scored = frame[frame["load"] == stratum.load].groupby("policy")
    averages = scored.mean(numeric_only=True).loc[policies]
    withheld = averages.get("not_work_conserving", pd.Series(np.nan, averages.index))  # of scenarios in steps only
    totals = scored[["jobs", "unfinished"]].sum().loc[policies]
    columns = {
        "scenario": scenario,
        "load": stratum.load,
        "policy": policies,
        "n": len(stratum.slowdown),
        "jobs": totals["jobs"].to_numpy(),
        "slowdown": mean[0],
        "slowdown_low": low,
        "slowdown_high": high,
        "unbounded_slowdown": averages["unbounded_slowdown"].to_numpy(),
        "p50_slowdown": averages["p50_slowdown"].to_numpy(),
        "p99_slowdown": averages["p99_slowdown"].to_numpy(),
        "worst_slowdown": scored["worst_slowdown"].max().loc[policies].to_numpy(),
        "completion_time": averages["completion_time"].to_numpy(),
        "makespan": averages["makespan"].to_numpy(),
        "utilisation": averages["utilisation"].to_numpy(),
        "not_work_conserving": withheld.to_numpy(),
        "unfinished": totals["unfinished"].to_numpy(),
    }
    return pd.DataFrame(columns)
