"""What is drawn again in a bootstrap, and the intervals that come of it.

Of fewer than FEW independent units there are no percentiles: what is told is the range over the units, each by itself.
A difference is not told from 0 at all where all units of so few could lie on one side by luck (sign test).
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from pipeline.core import FloatArray

FEW = 10  # percentiles of resamples of fewer units are too near to each other
NORMAL = 1.960  # half width of its 95 % interval, and of Student's t with 1, 2, ... degrees of freedom
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
KEPT, LARGEST = 16, 4_000_000  # draws that are kept for whoever makes the same ones next, and numbers of each at most


def windows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return jobset results with their units, where jobsets of all loads are cut from the same windows of a log.

    A load may have several jobsets in each window, as many in every one, in their order.

    >>> windows(pd.DataFrame({"load": [60] * 4 + [90] * 2, "jobset": [0, 1, 2, 3, 0, 1]}))["unit"].tolist()
    [0, 0, 1, 1, 0, 1]
    """
    count = frame.groupby("load")["jobset"].transform("nunique")
    return frame.assign(unit=frame["jobset"] * count.min() // count)


def interval(resampled: FloatArray, confidence: float, units: int) -> tuple[FloatArray, FloatArray]:
    """Return the percentile interval over the first axis; of few units the range.

    >>> low, high = interval(np.arange(101.0), 0.9, units=50)
    >>> round(float(low), 6), round(float(high), 6)
    (5.0, 95.0)
    """
    tail = (1 - confidence) / 2 if units >= FEW else 0.0
    low, high = np.quantile(resampled, [tail, 1 - tail], axis=0)
    return low, high


def gap_interval(resampled: FloatArray, confidence: float, units: int) -> tuple[FloatArray, FloatArray]:
    """Return the interval of a difference; it holds 0 where so few units could all lie on one side by luck.

    >>> [tuple(map(float, gap_interval(np.array([0.1, 0.3]), 0.95, units))) for units in (5, 6)]
    [(0.0, 0.3), (0.1, 0.3)]
    """
    low, high = interval(resampled, confidence, units)
    return (np.minimum(low, 0.0), np.maximum(high, 0.0)) if lucky(units, confidence) else (low, high)


def lucky(units: int, confidence: float) -> bool:
    """Return whether so few units could all lie on one side by luck.

    >>> lucky(5, 0.95), lucky(6, 0.95)
    (True, False)
    """
    return 2 * 0.5**units > 1 - confidence


def resample(units: int, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return how often each unit counts, [1 + S, N]: once each in row 0, the sample itself; of few, each one alone."""
    if units < FEW:
        return np.vstack([np.ones(units), units * np.resize(np.eye(units), (resamples, units))])
    if units * resamples > LARGEST:
        return _counted(units, resamples, rng)
    counts, after = _kept(units, resamples, json.dumps(rng.bit_generator.state))
    rng.bit_generator.state = json.loads(after)
    return counts


@lru_cache(KEPT)
def _kept(units: int, resamples: int, state: str) -> tuple[FloatArray, str]:
    """Return the draws that follow a generator's state, and the state behind them: tables of a scenario share them."""
    rng = np.random.default_rng()
    rng.bit_generator.state = json.loads(state)
    counts = _counted(units, resamples, rng)
    counts.setflags(write=False)
    return counts, json.dumps(rng.bit_generator.state)


def _counted(units: int, resamples: int, rng: np.random.Generator) -> FloatArray:
    return np.vstack([np.ones(units), rng.multinomial(units, np.full(units, 1 / units), size=resamples)])


def by_jobset(part: pd.DataFrame, policies: Sequence[str], column: str) -> pd.DataFrame:
    """Return a metric of one load, a row for each jobset and a column for each policy.

    Raises:
        ValueError: policies were scored on different jobsets.
    """
    found = part.pivot(index="jobset", columns="policy", values=column).reindex(columns=list(policies))
    _must_be_paired(found, part["load"].iloc[0])
    return found


def seeds_drawn(
    policies: Sequence[str], trainings: Mapping[str, Sequence[str]], resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Return how much each policy counts in each mean of trainings, [1 + S, P, T]; row 0: all seeds alike.

    Of K seeds K - 1 are drawn, so that their spread comes out as large as it is (Rao and Wu 1988), and moved from the
    mean by as much more as Student's t is wider than a normal law: two or three seeds tell little of others.
    """
    weights = np.zeros((1 + resamples, len(policies), len(trainings)))
    for t, names in enumerate(trainings.values()):
        seeds, columns = len(names), [policies.index(name) for name in names]
        weights[0, columns, t] = 1 / seeds
        wider = STUDENT[min(seeds - 1, len(STUDENT)) - 1] / NORMAL
        drawn = rng.multinomial(seeds - 1, np.full(seeds, 1 / seeds), size=resamples) / (seeds - 1)
        weights[1:, columns, t] = 1 / seeds + wider * (drawn - 1 / seeds)
    return weights


def _must_be_paired(slowdown: pd.DataFrame, load: object) -> None:
    missing = np.argwhere(slowdown.isna().to_numpy())
    if len(missing):
        jobset, policy = slowdown.index[missing[0, 0]], slowdown.columns[missing[0, 1]]
        raise ValueError(f"policy '{policy}' was not scored on jobset {jobset} of load {load}, but another one was")
