"""The gate: may a candidate take the champion's place? A pure function of both one's results and of declared rules.

A candidate must be better over all loads by more than a margin: one-sided, by the share of paired resamples in which it
is not, as a p-value that Holm's procedure corrects for all candidates of the scenario (1979). And it must be shown not
to be worse by more than a margin at any load, nor in the 99th percentile over all loads: there the upper end of the
one-sided interval counts, so that a difference which cannot be told is a refusal. These must all hold at once, so that
they need no correction (Berger 1982). Resamples draw what is independent, as in every comparison.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.comparing.resampling import by_jobset, resample
from pipeline.comparing.statistics import ALL, NOTHING
from pipeline.config import Gate
from pipeline.core import FloatArray
from pipeline.schemas.columns import integers, table

RULES = ("better", "load", "tail", "unfinished", "jobsets", "rolled back")

# Each rule on each candidate; a difference is relative to the champion's mean, above 0 is worse.
GATE = table(
    "Gate",
    {
        **{column: pa.Column(str) for column in ("scenario", "champion", "candidate")},
        "rule": pa.Column(str, pa.Check.isin(RULES, error=f"one of {', '.join(RULES)}")),
        "load": pa.Column(str),  # "all": over all loads
        "n": integers(0),  # of what is independent: jobsets, or windows
        "difference": pa.Column("float64", nullable=True),
        "high": pa.Column("float64", nullable=True),  # upper end of its one-sided interval
        "p": pa.Column("float64", [pa.Check.ge(0), pa.Check.le(1)], nullable=True),  # Holm's, over the candidates
        "passed": pa.Column(bool),
        "reason": pa.Column(str),
    },
    ["scenario", "candidate", "rule", "load"],
)
Row = dict[str, str | int | float | bool]


class Trial(NamedTuple):
    """Who is judged, by what, on which results."""

    scenario: str
    champion: str
    candidates: Sequence[str]
    cost: str  # column of the results; less is better
    tail: str
    refused: Mapping[str, str] = {}  # candidates that may not be promoted, and why


class Sample(NamedTuple):
    """The results of some policies at one load, and S resamples of what is independent."""

    load: str
    cost: FloatArray  # [N, P]
    tail: FloatArray  # [N, P]
    counts: FloatArray  # [1 + S, N]; row 0: the sample itself
    units: int
    unfinished: FloatArray  # [P]


def judged(results: pd.DataFrame, trial: Trial, rules: Gate, resamples: int, seed: int) -> pd.DataFrame:
    """Return a row for each rule on each candidate.

    Args:
        results: jobset results of champion and candidates on the same jobsets; with `unit` where loads share windows.
        trial: who is judged.
        rules: what was declared.
        resamples: of the paired bootstrap.
        seed: of the same.

    Raises:
        ValueError: policies were scored on different jobsets.
    """
    policies = [trial.champion, *trial.candidates]
    samples = _samples(results[results["policy"].isin(policies)], policies, trial, resamples, seed)
    places = range(1, len(policies))
    over = [_relative([sample.counts @ sample.cost / _drawn(sample) for sample in samples], k) for k in places]
    p = holm([float((1 + (gap[1:] >= -rules.margin).sum()) / len(gap)) for gap in over])
    rows = [
        {"scenario": trial.scenario, "champion": trial.champion, "candidate": name, **row}
        for k, name in enumerate(trial.candidates)
        for row in _rows(samples, k + 1, over[k], p[k], rules, trial)
    ]
    return pd.DataFrame(rows)


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values that hold together, by Holm's procedure.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    found, least = [0.0] * len(p), 0.0
    for rank, place in enumerate(np.argsort(p, kind="stable")):
        least = max(least, min(1.0, (len(p) - rank) * p[place]))
        found[place] = round(least, 12)
    return found


def _samples(results: pd.DataFrame, policies: list[str], trial: Trial, resamples: int, seed: int) -> list[Sample]:
    rng, found = np.random.default_rng(seed), []
    together = resample(results["unit"].nunique(), resamples, rng) if "unit" in results else None
    for load, part in results.groupby("load"):
        cost, tail = (by_jobset(part, policies, column) for column in (trial.cost, trial.tail))
        counts, units = resample(len(cost), resamples, rng) if together is None else None, len(cost)
        if together is not None:
            unit = part.groupby("jobset")["unit"].first().loc[cost.index].to_numpy()
            counts, units = together[:, unit], len(np.unique(unit))
        left = part.groupby("policy")["unfinished"].sum().loc[policies].to_numpy()
        found.append(Sample(f"{load:03d}", cost.to_numpy(), tail.to_numpy(), np.asarray(counts), units, left))
    return found


def _drawn(sample: Sample) -> FloatArray:
    return np.asarray(sample.counts.sum(axis=1, keepdims=True))


def _relative(means: Sequence[FloatArray], place: int) -> FloatArray:
    """Return a candidate's mean over loads relative to the champion's, less 1, in the sample and each resample."""
    together = np.mean(means, axis=0)
    # The mean of differences: between equal results it is exactly 0.
    gap = np.mean([mean[:, place] - mean[:, 0] for mean in means], axis=0)
    return np.asarray(gap / np.maximum(together[:, 0], NOTHING))


def _rows(
    samples: Sequence[Sample], place: int, over: FloatArray, p: float, rules: Gate, trial: Trial
) -> Iterator[Row]:
    n, few = min(sample.units for sample in samples), rules.needed(trial.scenario)
    enough = n >= few
    yield _row("jobsets", ALL, n, enough, f"{n} independent jobsets a load, {few} are needed")
    name = trial.candidates[place - 1]
    if name in trial.refused:
        yield _row("rolled back", ALL, n, False, trial.refused[name])
    better = p <= rules.level
    said = f"{_percent(over[0])} over all loads, p = {p:.2g} that it is not better by more than {rules.margin:.0%}"
    yield _row("better", ALL, n, better, said) | {"difference": float(over[0]), "high": _high(over, rules), "p": p}
    for sample in samples:
        gap = _relative([sample.counts @ sample.cost / _drawn(sample)], place)
        yield _limited("load", sample.load, sample.units, gap, rules.load_margin, rules)
    tail = _relative([sample.counts @ sample.tail / _drawn(sample) for sample in samples], place)
    yield _limited("tail", ALL, n, tail, rules.tail_margin, rules)
    mine, theirs = (int(sum(sample.unfinished[k] for sample in samples)) for k in (place, 0))
    yield _row("unfinished", ALL, n, mine <= theirs, f"{mine} unfinished jobs, the champion's are {theirs}")


def _limited(rule: str, load: str, n: int, gap: FloatArray, margin: float, rules: Gate) -> Row:
    high = _high(gap, rules)
    where = f"at {int(load)} %" if rule == "load" else "in the 99th percentile"
    said = f"{_percent(float(gap[0]))} {where}, at most {_percent(high)}; {_percent(margin)} is allowed"
    return _row(rule, load, n, high <= margin, said) | {"difference": float(gap[0]), "high": high}


def _high(gap: FloatArray, rules: Gate) -> float:
    return float(np.quantile(gap[1:], 1 - rules.level))


def _row(rule: str, load: str, n: int, passed: bool, reason: str) -> Row:
    nothing = float("nan")
    measured = {"difference": nothing, "high": nothing, "p": nothing}
    return {"rule": rule, "load": load, "n": n, **measured, "passed": bool(passed), "reason": reason}


def _percent(part: float) -> str:
    """Return a part as a difference in percent.

    >>> _percent(-0.0512)
    '-5.1 %'
    """
    return f"{100 * part:+.1f} %"
