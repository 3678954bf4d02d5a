"""Resampling of a bootstrap with its intervals, and a confidence sequence.

With fewer than FEW independent units, the range over single units replaces the percentiles. A difference is never
significant if so few units could all lie on one side by chance (sign test).

A confidence sequence is a limit of a mean that is valid at all times simultaneously, so that it may be checked daily.
Values between -bound and bound arrive one after another. If no value has an expectation above m, given the previous
ones, then a player who bets that the next value is above m has no expected gain: the capital is a supermartingale that
begins at 1, and ever reaches 1 / level with a probability of at most `level` (Ville). So a mean is rejected when the
capital reaches it. The bets are those of Waudby-Smith and Ramdas (2024, Estimating means of bounded random variables
by betting, section 4), a fixed part of the possible loss. Departures: a mixture of many parts, each with its share of
the capital, replaces one part that is predicted from the past; and the capital enters gradually, 1 / (j (j + 1)) of it
at value j. Mixtures of supermartingales are supermartingales; this way, earlier values do not mask a late change.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from pipeline.core.types import FloatArray

FEW = 10  # percentiles of resamples of fewer units are too close to each other
NORMAL = 1.960  # half width of its 95 % interval, and of Student's t with 1, 2, ... degrees of freedom
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
KEPT, LARGEST = 16, 4_000_000  # cached draws, and the largest number of counts in one of them
PARTS = np.array([0.8, 0.4, 0.2, 0.1, 0.05, 0.025])  # of the possible loss at the next value
GRID = 400  # tested means
ENOUGH = 1e12  # limit of the capital


def windows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return jobset results with their units, for jobsets of all loads that are cut from the same windows of a log.

    A load may have several consecutive jobsets in each window, the same number in every window.

    >>> windows(pd.DataFrame({"load": [60] * 4 + [90] * 2, "jobset": [0, 1, 2, 3, 0, 1]}))["unit"].tolist()
    [0, 0, 1, 1, 0, 1]
    """
    count = frame.groupby("load")["jobset"].transform("nunique")
    return frame.assign(unit=frame["jobset"] * count.min() // count)


def interval(resampled: FloatArray, confidence: float, units: int) -> tuple[FloatArray, FloatArray]:
    """Return the percentile interval over the first axis; for few units the range.

    >>> low, high = interval(np.arange(101.0), 0.9, units=50)
    >>> round(float(low), 6), round(float(high), 6)
    (5.0, 95.0)
    """
    tail = (1 - confidence) / 2 if units >= FEW else 0.0
    low, high = np.quantile(resampled, [tail, 1 - tail], axis=0)
    return low, high


def gap_interval(resampled: FloatArray, confidence: float, units: int) -> tuple[FloatArray, FloatArray]:
    """Return the interval of a difference; it contains 0 if so few units could all lie on one side by chance.

    >>> [tuple(map(float, gap_interval(np.array([0.1, 0.3]), 0.95, units))) for units in (5, 6)]
    [(0.0, 0.3), (0.1, 0.3)]
    """
    low, high = interval(resampled, confidence, units)
    return (np.minimum(low, 0.0), np.maximum(high, 0.0)) if lucky(units, confidence) else (low, high)


def lucky(units: int, confidence: float) -> bool:
    """Return whether so few units could all lie on one side by chance.

    >>> lucky(5, 0.95), lucky(6, 0.95)
    (True, False)
    """
    return 2 * 0.5**units > 1 - confidence


def resample(units: int, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return the counts of units [1 + S, N]: row 0 is the sample itself; for few units, the others are single units."""
    if units < FEW:
        return np.vstack([np.ones(units), units * np.resize(np.eye(units), (resamples, units))])
    if units * resamples > LARGEST:
        return _counted(units, resamples, rng)
    counts, after = _cached(units, resamples, json.dumps(rng.bit_generator.state))
    rng.bit_generator.state = json.loads(after)
    return counts


@lru_cache(KEPT)
def _cached(units: int, resamples: int, state: str) -> tuple[FloatArray, str]:
    """Return the next draws of a generator, and its state afterwards; tables of a scenario share them."""
    rng = np.random.default_rng()
    rng.bit_generator.state = json.loads(state)
    counts = _counted(units, resamples, rng)
    counts.setflags(write=False)
    return counts, json.dumps(rng.bit_generator.state)


def _counted(units: int, resamples: int, rng: np.random.Generator) -> FloatArray:
    return np.vstack([np.ones(units), rng.multinomial(units, np.full(units, 1 / units), size=resamples)])


def by_jobset(part: pd.DataFrame, policies: Sequence[str], column: str) -> pd.DataFrame:
    """Return a metric of one load by jobset and policy; ValueError if policies were scored on different jobsets."""
    found = part.pivot(index="jobset", columns="policy", values=column).reindex(columns=list(policies))
    missing = np.argwhere(found.isna().to_numpy())
    if len(missing):
        jobset, policy, load = found.index[missing[0, 0]], found.columns[missing[0, 1]], part["load"].iloc[0]
        raise ValueError(f"policy '{policy}' was not scored on jobset {jobset} of load {load}, but another one was")
    return found


def seeds_drawn(
    policies: Sequence[str], trainings: Mapping[str, Sequence[str]], resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Return the weight of each policy in each mean of training runs, [1 + S, P, T]; row 0: equal weights.

    K - 1 of K seeds are drawn, for an unbiased spread (Rao and Wu 1988), and their distance from the mean is scaled by
    the ratio of Student's t to the normal distribution, because two or three seeds say little about others.
    """
    weights = np.zeros((1 + resamples, len(policies), len(trainings)))
    for t, names in enumerate(trainings.values()):
        seeds, columns = len(names), [policies.index(name) for name in names]
        weights[0, columns, t] = 1 / seeds
        wider = STUDENT[min(seeds - 1, len(STUDENT)) - 1] / NORMAL
        drawn = rng.multinomial(seeds - 1, np.full(seeds, 1 / seeds), size=resamples) / (seeds - 1)
        weights[1:, columns, t] = 1 / seeds + wider * (drawn - 1 / seeds)
    return weights


def capital(values: FloatArray, means: FloatArray, bound: float) -> FloatArray:
    """Return the capital of bets against each mean, after each value [V, G].

    Values [V] in order of time are cut to the bound, the largest absolute value. The means [G] are hypothetical upper
    limits, above -bound.

    >>> capital(np.array([1.0, 1.0]), np.array([1.0]), bound=1.0).ravel().round(6).tolist()
    [1.0, 1.0]
    """
    cut = np.clip(values, -bound, bound)
    bets = PARTS[:, None] / (bound + means)  # [P, G]
    at_work, found = np.zeros_like(bets), np.empty((len(cut), len(means)))
    for j, value in enumerate(cut, start=1):
        at_work = np.minimum((at_work + 1 / (j * (j + 1))) * (1 + bets * (value - means)), ENOUGH)
        found[j - 1] = at_work.mean(axis=0) + 1 / (j + 1)  # the rest enters at later values
    return found


def shared(streams: FloatArray, shares: FloatArray, means: FloatArray, bound: float) -> FloatArray:
    """Return the capital [V, G] of bets on several streams [H, V], each with its share of the capital [H].

    The hypothesis concerns all streams together: no value of any has an expectation above m.
    """
    found = [share * capital(values, means, bound) for values, share in zip(streams, shares, strict=True)]
    return np.asarray(np.sum(found, axis=0))


def lower_limits(streams: FloatArray, shares: FloatArray, level: float, bound: float) -> FloatArray:
    """Return, after each value, the mean that some stream exceeded so far; -bound if none is certain.

    All limits hold simultaneously with a probability of 1 - level.
    """
    means = np.linspace(-bound, bound, GRID + 1)[1:]
    rejected = np.maximum.accumulate(shared(streams, shares, means, bound), axis=0) >= 1 / level
    # Capital falls with the mean, so the rejected means are the first ones of the grid.
    return np.asarray(np.concatenate([[-bound], means])[rejected.sum(axis=1)])


def seen_at(streams: FloatArray, shares: FloatArray, mean: float, level: float, bound: float) -> int | None:
    """Return the number of values after which a mean is first rejected as too low; None: never.

    >>> seen_at(np.full((1, 50), 0.5), np.ones(1), mean=0.0, level=0.05, bound=1.0)
    15
    """
    reached = np.flatnonzero(shared(streams, shares, np.array([mean]), bound)[:, 0] >= 1 / level)
    return int(reached[0]) + 1 if len(reached) else None
