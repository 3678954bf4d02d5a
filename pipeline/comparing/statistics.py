"""How sure are we? A paired bootstrap over what is independent.

The estimand is the mean over jobsets of the jobset's mean slowdown, at each load; "all" is the mean over loads of those
means. Resamples draw independent units: jobsets within their load (stratified), or, where all loads are cut from the
same windows of a log, windows with the jobsets of all loads (cluster bootstrap, Davison and Hinkley 1997, section 3.8).
They are the same for every policy (paired), and intervals are percentiles of them (Efron and Tibshirani 1993, section
13.3). A resample is a row of counts, how often each jobset was drawn, so one matrix product per load resamples all
policies at once.

Trainings that differ by their seed alone are also one policy, their mean, whose resamples draw seeds, too.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import by_jobset, gap_interval, interval, resample, seeds_drawn
from pipeline.config import Evaluation
from pipeline.core import FloatArray, IntArray

ALL = "all"
NOTHING = 1e-9  # a reference under which nobody waits has no relative difference: whoever waits is far above it


class Stratum(NamedTuple):
    """The N jobsets of one load, scored by P policies, and S resamples of them."""

    load: int
    slowdown: FloatArray  # [N, P]  mean slowdown of each jobset
    unfinished: IntArray  # [P]     jobs, over all jobsets
    unit: IntArray  # [N]     what each jobset is independent by: other ones are of other units
    counts: FloatArray  # [1 + S, N]  how often each jobset counts; row 0: once each, the sample itself

    def means(self, value: FloatArray) -> FloatArray:
        """Return the mean of a value [N, P] over the sample and over each resample, [1 + S, P]."""
        return np.asarray(self.counts @ value / self.counts.sum(axis=1, keepdims=True))


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
    trainings: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> pd.DataFrame:
    """Compare every policy of one scenario with every reference, at each load and over all.

    Args:
        frame: JobsetResults of one scenario, every policy scored on the same jobsets; with `unit` where jobsets of
            different loads are not independent (`windows`).
        scenario: its name.
        references: label -> load -> policy. Choose a best heuristic on other jobsets than these: the interval does
            not know of the choice. A policy is not compared with itself.
        settings: of the bootstrap.
        rng: from the same seed, a policy's interval is the same here and in `summary`, whoever it is compared with.
        trainings: label -> policies that differ by their training seed alone.

    Raises:
        ValueError: policies were scored on different jobsets, or a reference has no scores.
    """
    policies = list(frame["policy"].unique())
    strata = _strata(frame, policies, settings.resamples, rng)
    groups = {f"{stratum.load:03d}": [place] for place, stratum in enumerate(strata)} | {ALL: list(range(len(strata)))}
    weights = seeds_drawn(policies, trainings, settings.resamples, rng)
    tables = []
    for label, choice in references.items():
        columns = [_column(policies, label, choice, stratum.load) for stratum in strata]
        estimates = _estimates(strata, columns, weights)
        for load, places in groups.items():
            names = {"scenario": scenario, "load": load, "policy": [*policies, *trainings], "against": label}
            numbers = _compare([strata[k] for k in places], _over(estimates, places), weights[0], settings.confidence)
            other = [any(columns[k] != p for k in places) for p in range(len(policies) + len(trainings))]
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


def _strata(frame: pd.DataFrame, policies: list[str], resamples: int, rng: np.random.Generator) -> list[Stratum]:
    together = resample(frame["unit"].nunique(), resamples, rng) if "unit" in frame else None
    strata: list[Stratum] = []
    for _, part in frame.groupby("load"):
        slowdown, load = by_jobset(part, policies, "mean_slowdown"), int(part["load"].iloc[0])
        unfinished = part.groupby("policy")["unfinished"].sum().loc[policies].to_numpy()
        if together is None:
            unit = sum(len(stratum.unit) for stratum in strata) + np.arange(len(slowdown))
            counts = resample(len(slowdown), resamples, rng)
        else:
            unit = part.groupby("jobset")["unit"].first().loc[slowdown.index].to_numpy()
            counts = together[:, unit]
        strata.append(Stratum(load, slowdown.to_numpy(), unfinished, unit, counts))
    return strata


def _column(policies: Sequence[str], label: str, choice: Mapping[int, str], load: int) -> int:
    if load not in choice:
        raise ValueError(f"reference '{label}' names no policy for load {load}")
    if choice[load] not in policies:
        raise ValueError(f"reference '{label}' is policy '{choice[load]}' at load {load}, which has no scores")
    return policies.index(choice[load])


def _estimates(strata: Sequence[Stratum], columns: Sequence[int], weights: FloatArray) -> Estimates:
    """Return means and gaps at each load; columns [L] holds the reference's place among the policies."""
    mean = np.stack([stratum.means(stratum.slowdown) for stratum in strata])
    against = np.stack([mean[k, :, column] for k, column in enumerate(columns)])
    # The mean of differences, not the difference of means: between equal scores it is exactly 0, however BLAS rounds.
    gap = [s.means(s.slowdown - s.slowdown[:, [column]]) for s, column in zip(strata, columns, strict=True)]
    return Estimates(_with_trainings(mean, weights), against, _with_trainings(np.stack(gap), weights))


def _with_trainings(value: FloatArray, weights: FloatArray) -> FloatArray:
    return np.concatenate([value, np.einsum("lsp,spt->lst", value, weights)], axis=2) if weights.shape[2] else value


def _over(estimates: Estimates, loads: list[int]) -> Estimates:
    """Return the mean over some loads, without the axis of loads."""
    return Estimates._make(field[loads].mean(axis=0) for field in estimates)


def _compare(
    strata: Sequence[Stratum], estimates: Estimates, seeds: FloatArray, confidence: float
) -> dict[str, FloatArray | IntArray]:
    """Return the numbers of a Comparison, each [P + T]; seeds [P, T] are above 0 where a training belongs to a mean."""
    difference = estimates.gap / np.maximum(estimates.mean_against, NOTHING)[:, None]
    units = min(len(np.unique(stratum.unit)) for stratum in strata)
    # Means of few trainings could be resampled below what is possible.
    low, high = interval(np.maximum(estimates.mean[1:], 0.0), confidence, units)
    difference_low, difference_high = gap_interval(np.maximum(difference[1:], -1.0), confidence, units)
    policies = len(low)
    unfinished = np.sum([stratum.unfinished for stratum in strata], axis=0)
    return {
        "n": np.full(policies, len(np.unique(np.concatenate([stratum.unit for stratum in strata])))),
        "mean": estimates.mean[0],
        "low": low,
        "high": high,
        "mean_against": np.full(policies, estimates.mean_against[0]),
        "difference": difference[0],
        "difference_low": difference_low,
        "difference_high": difference_high,
        "unfinished": np.concatenate([unfinished, unfinished @ (seeds > 0)]),
    }


def _summary(
    frame: pd.DataFrame, scenario: str, policies: list[str], stratum: Stratum, settings: Evaluation
) -> pd.DataFrame:
    mean = stratum.means(stratum.slowdown)
    units = len(np.unique(stratum.unit))
    low, high = interval(mean[1:], settings.confidence, units)
    scored = frame[frame["load"] == stratum.load].groupby("policy")
    averages = scored.mean(numeric_only=True).loc[policies]
    withheld = averages.get("not_work_conserving", pd.Series(np.nan, averages.index))  # of scenarios in steps only
    totals = scored[["jobs", "unfinished"]].sum().loc[policies]
    columns = {
        "scenario": scenario,
        "load": stratum.load,
        "policy": policies,
        "n": units,
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
