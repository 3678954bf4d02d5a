"""Paired bootstrap over independent units.

The estimand is the mean over jobsets of the jobset's mean slowdown, at each load; "all" is the mean over loads of those
means. Resamples draw independent units: jobsets within their load (stratified), or, if all loads are cut from the same
windows of a log, windows with the jobsets of all loads (cluster bootstrap, Davison and Hinkley 1997, section 3.8). All
policies share the resamples (paired), and intervals are their percentiles (Efron and Tibshirani 1993, section 13.3). A
resample is a row of counts, how often each jobset was drawn, so one matrix product per load resamples all policies.

Training runs that differ only by their seed also form one policy, their mean, whose resamples draw seeds as well.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import by_jobset, gap_interval, interval, resample, seeds_drawn
from pipeline.core.config import Evaluation
from pipeline.core.schemas import SUMMARY
from pipeline.core.types import FloatArray, IntArray

ALL = "all"
NOTHING = 1e-9  # avoids division by 0: relative to a reference without waiting, any waiting is far above


class Stratum(NamedTuple):
    """Scores of P policies on the N jobsets of one load, and S resamples of the jobsets."""

    load: int
    jobset: IntArray  # [N]  numbers
    score: FloatArray  # [N, P]  of each jobset: its mean slowdown, or another column
    unfinished: IntArray  # [P]     jobs, over all jobsets
    unit: IntArray  # [N]     independent unit of each jobset
    counts: FloatArray  # [1 + S, N]  how often each jobset counts; row 0: once each, the sample itself

    def means(self, value: FloatArray) -> FloatArray:
        """Return the mean of a value [N, P] over the sample and over each resample, [1 + S, P]."""
        return np.asarray(self.counts @ value / self.counts.sum(axis=1, keepdims=True))

    @property
    def units(self) -> int:
        """Number of independent jobsets, or windows."""
        return len(np.unique(self.unit))


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

    `frame` has the unit of each jobset if jobsets of different loads are not independent (`windows`). `references` are
    label -> load -> policy. Choose a best heuristic on other jobsets than these: the interval does not account for the
    choice. With an `rng` of the same seed, a policy's interval is the same here and in `summary`, for all references.
    `trainings` are label -> policies that differ only by their seed. `asked` says whether a policy, or the mean of
    runs, is compared with the reference of a label. Raises ValueError: policies were scored on different jobsets,
    or a reference was not scored.
    """
    policies = list(frame["policy"].unique())
    strata = stratified(frame, policies, settings.resamples, rng)
    groups = {f"{stratum.load:03d}": [place] for place, stratum in enumerate(strata)} | {ALL: list(range(len(strata)))}
    weights = seeds_drawn(policies, trainings, settings.resamples, rng)
    names = [*policies, *trainings]
    value = _with_trainings(np.stack([stratum.means(stratum.score) for stratum in strata]), weights)
    means = {}
    for load, places in groups.items():
        mean, units = value[places].mean(axis=0), min(strata[k].units for k in places)
        # Resampled means of few runs could be below the possible minimum.
        low, high = interval(np.maximum(mean[1:], 0.0), settings.confidence, units)
        means[load] = {"mean": mean[0], "low": low, "high": high}
    tables = []
    for label, choice in references.items():
        columns = [column_of(policies, label, choice, stratum.load) for stratum in strata]
        # The mean of differences, not the difference of means: for equal scores it is exactly 0 despite rounding.
        gaps = [s.means(s.score - s.score[:, [column]]) for s, column in zip(strata, columns, strict=True)]
        gap = _with_trainings(np.stack(gaps), weights)
        for load, places in groups.items():
            other = [p for p, name in enumerate(names) if any(columns[k] != p for k in places) and asked(name, label)]
            about = {"scenario": scenario, "load": load, "policy": [names[p] for p in other], "against": label}
            against = np.mean([value[k, :, columns[k]] for k in places], axis=0)
            apart = gap[places].mean(axis=0)[:, other]
            numbers = _compare([strata[k] for k in places], means[load], apart, against, weights[0], other, settings)
            tables.append(pd.DataFrame(about | numbers))
    return pd.concat(tables, ignore_index=True)


def summary(frame: pd.DataFrame, scenario: str, settings: Evaluation, rng: np.random.Generator) -> pd.DataFrame:
    """Return every metric of each policy of one scenario, at each load; ValueError if their jobsets differ."""
    policies = list(frame["policy"].unique())
    parts = []
    for stratum in stratified(frame, policies, settings.resamples, rng):
        mean = stratum.means(stratum.score)
        low, high = interval(mean[1:], settings.confidence, stratum.units)
        scored = frame[frame["load"] == stratum.load].groupby("policy")
        averages = scored.mean(numeric_only=True).loc[policies]
        rows = averages.assign(
            scenario=scenario,
            load=stratum.load,
            policy=policies,
            n=stratum.units,
            slowdown=mean[0],
            slowdown_low=low,
            slowdown_high=high,
            worst_slowdown=scored["worst_slowdown"].max(),
            jobs=scored["jobs"].sum(),
            unfinished=scored["unfinished"].sum(),
        )
        parts.append(rows.reindex(columns=list(SUMMARY.columns)))  # only scenarios in steps have all of them
    return pd.concat(parts, ignore_index=True)


def stratified(
    frame: pd.DataFrame, policies: list[str], resamples: int, rng: np.random.Generator, column: str = "mean_slowdown"
) -> list[Stratum]:
    """Return the scores of each load, of one column, and their resamples; ValueError if policies' jobsets differ."""
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


def column_of(policies: Sequence[str], label: str, choice: Mapping[int, str], load: int) -> int:
    """Return the place of a reference among the policies at a load; ValueError if it has no scores."""
    if load not in choice:
        raise ValueError(f"reference '{label}' names no policy for load {load}")
    if choice[load] not in policies:
        raise ValueError(f"reference '{label}' is policy '{choice[load]}' at load {load}, which has no scores")
    return policies.index(choice[load])


def _with_trainings(value: FloatArray, weights: FloatArray) -> FloatArray:
    return np.concatenate([value, np.einsum("lsp,spt->lst", value, weights)], axis=2) if weights.shape[2] else value


def _compare(
    strata: Sequence[Stratum],
    means: Mapping[str, FloatArray],
    gap: FloatArray,
    against: FloatArray,
    seeds: FloatArray,
    other: list[int],
    settings: Evaluation,
) -> dict[str, FloatArray | IntArray]:
    """Return the columns [O] of COMPARISON for O policies with gaps [1 + S, O].

    `means` are columns [P] of all policies; seeds [P, T] mark the policies of a mean.
    """
    difference = gap / np.maximum(against, NOTHING)[:, None]
    low, high = gap_interval(
        np.maximum(difference[1:], -1.0), settings.confidence, min(stratum.units for stratum in strata)
    )
    unfinished = np.sum([stratum.unfinished for stratum in strata], axis=0)
    return {
        "n": np.full(len(other), len(np.unique(np.concatenate([stratum.unit for stratum in strata])))),
        **{name: column[other] for name, column in means.items()},
        "mean_against": np.full(len(other), against[0]),
        "difference": difference[0],
        "difference_low": low,
        "difference_high": high,
        "unfinished": np.concatenate([unfinished, unfinished @ (seeds > 0)])[other],
    }
