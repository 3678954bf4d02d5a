"""How sure are we? A paired bootstrap over what is independent.

The estimand is the mean over jobsets of the jobset's mean slowdown, at each load; "all" is the mean over loads of those
means. Resamples draw independent units: jobsets within their load (stratified), or, where all loads are cut from the
same windows of a log, windows with the jobsets of all loads (cluster bootstrap, Davison and Hinkley 1997, section 3.8).
They are the same for every policy (paired), and intervals are percentiles of them (Efron and Tibshirani 1993, section
13.3). A resample is a row of counts, how often each jobset was drawn, so one matrix product per load resamples all
policies at once.

Trainings that differ by their seed alone are also one policy, their mean, whose resamples draw seeds, too.
"""

from collections.abc import Callable, Mapping, Sequence
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
    jobset: IntArray  # [N]  numbers
    score: FloatArray  # [N, P]  of each jobset: its mean slowdown, or another column
    unfinished: IntArray  # [P]     jobs, over all jobsets
    unit: IntArray  # [N]     what each jobset is independent by: other ones are of other units
    counts: FloatArray  # [1 + S, N]  how often each jobset counts; row 0: once each, the sample itself

    def means(self, value: FloatArray) -> FloatArray:
        """Return the mean of a value [N, P] over the sample and over each resample, [1 + S, P]."""
        return np.asarray(self.counts @ value / self.counts.sum(axis=1, keepdims=True))

    @property
    def units(self) -> int:
        """Return how many jobsets, or windows, are independent."""
        return len(np.unique(self.unit))


class Averages(NamedTuple):
    """Means of P policies in the sample and in its resamples, at one load or over several, and their intervals."""

    value: FloatArray  # [1 + S, P]
    low: FloatArray  # [P]
    high: FloatArray  # [P]


def comparison(
    frame: pd.DataFrame,
    scenario: str,
    references: Mapping[str, Mapping[int, str]],
    settings: Evaluation,
    rng: np.random.Generator,
    trainings: Mapping[str, Sequence[str]] = MappingProxyType({}),
    asked: Callable[[str, str], bool] = lambda policy, label: True,
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
        asked: is a policy, or the mean of trainings, compared with the reference of a label at all?

    Raises:
        ValueError: policies were scored on different jobsets, or a reference has no scores.
    """
    policies = list(frame["policy"].unique())
    strata = stratified(frame, policies, settings.resamples, rng)
    groups = {f"{stratum.load:03d}": [place] for place, stratum in enumerate(strata)} | {ALL: list(range(len(strata)))}
    weights = seeds_drawn(policies, trainings, settings.resamples, rng)
    names = [*policies, *trainings]
    value = _with_trainings(np.stack([stratum.means(stratum.score) for stratum in strata]), weights)
    means = {load: _over(value, [strata[k] for k in places], places, settings) for load, places in groups.items()}
    tables = []
    for label, choice in references.items():
        columns = [_column(policies, label, choice, stratum.load) for stratum in strata]
        gap = _gaps(strata, columns, weights)
        for load, places in groups.items():
            other = [p for p, name in enumerate(names) if any(columns[k] != p for k in places) and asked(name, label)]
            about = {"scenario": scenario, "load": load, "policy": [names[p] for p in other], "against": label}
            against = np.mean([value[k, :, columns[k]] for k in places], axis=0)
            apart = gap[places].mean(axis=0)[:, other]
            numbers = _compare([strata[k] for k in places], means[load], apart, against, weights[0], other, settings)
            tables.append(pd.DataFrame(about | numbers))
    return pd.concat(tables, ignore_index=True)


def summary(frame: pd.DataFrame, scenario: str, settings: Evaluation, rng: np.random.Generator) -> pd.DataFrame:
    """Return every metric of each policy of one scenario, at each load.

    Raises:
        ValueError: policies were scored on different jobsets.
    """
    policies = list(frame["policy"].unique())
    strata = stratified(frame, policies, settings.resamples, rng)
    return pd.concat([_summary(frame, scenario, policies, stratum, settings) for stratum in strata], ignore_index=True)


def stratified(
    frame: pd.DataFrame, policies: list[str], resamples: int, rng: np.random.Generator, column: str = "mean_slowdown"
) -> list[Stratum]:
    """Return the scores of each load, of one column, and their resamples.

    Raises:
        ValueError: policies were scored on different jobsets.
    """
    together = resample(frame["unit"].nunique(), resamples, rng) if "unit" in frame else None
    strata: list[Stratum] = []
    for _, part in frame.groupby("load"):
        score, load = by_jobset(part, policies, column), int(part["load"].iloc[0])
        unfinished = part.groupby("policy")["unfinished"].sum().loc[policies].to_numpy()
        if together is None:
            unit = sum(len(stratum.unit) for stratum in strata) + np.arange(len(score))
            counts = resample(len(score), resamples, rng)
        else:
            unit = part.groupby("jobset")["unit"].first().loc[score.index].to_numpy()
            counts = together[:, unit]
        strata.append(Stratum(load, score.index.to_numpy(), score.to_numpy(), unfinished, unit, counts))
    return strata


def _column(policies: Sequence[str], label: str, choice: Mapping[int, str], load: int) -> int:
    if load not in choice:
        raise ValueError(f"reference '{label}' names no policy for load {load}")
    if choice[load] not in policies:
        raise ValueError(f"reference '{label}' is policy '{choice[load]}' at load {load}, which has no scores")
    return policies.index(choice[load])


def _gaps(strata: Sequence[Stratum], columns: Sequence[int], weights: FloatArray) -> FloatArray:
    """Return [L, 1 + S, P + T], means of slowdown less the reference's; columns [L]: its place among the policies."""
    # The mean of differences, not the difference of means: between equal scores it is exactly 0, however BLAS rounds.
    gap = [s.means(s.score - s.score[:, [column]]) for s, column in zip(strata, columns, strict=True)]
    return _with_trainings(np.stack(gap), weights)


def _with_trainings(value: FloatArray, weights: FloatArray) -> FloatArray:
    return np.concatenate([value, np.einsum("lsp,spt->lst", value, weights)], axis=2) if weights.shape[2] else value


def _over(value: FloatArray, strata: Sequence[Stratum], loads: list[int], settings: Evaluation) -> Averages:
    """Return the means over some loads of all."""
    mean = value[loads].mean(axis=0)
    # Means of few trainings could be resampled below what is possible.
    return Averages(mean, *interval(np.maximum(mean[1:], 0.0), settings.confidence, _fewest(strata)))


def _fewest(strata: Sequence[Stratum]) -> int:
    return min(stratum.units for stratum in strata)


def _compare(
    strata: Sequence[Stratum],
    means: Averages,
    gap: FloatArray,
    against: FloatArray,
    seeds: FloatArray,
    other: list[int],
    settings: Evaluation,
) -> dict[str, FloatArray | IntArray]:
    """Return the numbers of a Comparison, each [O], of the O policies whose gaps [1 + S, O] to the reference are given.

    Seeds [P, T] are above 0 where a training belongs to a mean.
    """
    difference = gap / np.maximum(against, NOTHING)[:, None]
    low, high = gap_interval(np.maximum(difference[1:], -1.0), settings.confidence, _fewest(strata))
    unfinished = np.sum([stratum.unfinished for stratum in strata], axis=0)
    return {
        "n": np.full(len(other), len(np.unique(np.concatenate([stratum.unit for stratum in strata])))),
        "mean": means.value[0, other],
        "low": means.low[other],
        "high": means.high[other],
        "mean_against": np.full(len(other), against[0]),
        "difference": difference[0],
        "difference_low": low,
        "difference_high": high,
        "unfinished": np.concatenate([unfinished, unfinished @ (seeds > 0)])[other],
    }


def _summary(
    frame: pd.DataFrame, scenario: str, policies: list[str], stratum: Stratum, settings: Evaluation
) -> pd.DataFrame:
    mean = stratum.means(stratum.score)
    low, high = interval(mean[1:], settings.confidence, stratum.units)
    scored = frame[frame["load"] == stratum.load].groupby("policy")
    averages = scored.mean(numeric_only=True).loc[policies]
    withheld = averages.get("not_work_conserving", pd.Series(np.nan, averages.index))  # of scenarios in steps only
    totals = scored[["jobs", "unfinished"]].sum().loc[policies]
    columns = {
        "scenario": scenario,
        "load": stratum.load,
        "policy": policies,
        "n": stratum.units,
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
