"""Waits and slowdowns under an order, relative to today's order, with intervals over blocks of days and replays.

A figure is a mean over the replays of the ensemble. Its interval resamples blocks of three days and replays together,
in pairs for both orders, so that it contains the variation between replays as well as that between weeks. The interval
is widened for small numbers of blocks (Hesterberg, The American Statistician 69, 2015: the expanded percentile
interval), by the same method for any number. The interval of a maximum cannot be found by resampling: that of the
longest wait is the range over replays.
"""

from collections.abc import Callable, Mapping
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from pipeline.core.logs.trace import DAY_S
from pipeline.core.schemas.tables import BLOCK_DAYS
from pipeline.core.types import SHORTEST_BOUNDED, FloatArray, IntArray
from pipeline.sites.queue import Period

MEASURES = ("wait", "p99_wait", "longest_wait", "slowdown")  # s, s, s, 1
TAIL = 0.99
GROUPS = 1_000  # of similar waits, and as many again in the longest tenth
GAIN = ("wait", "slowdown")  # the geometric mean of their changes is `gain`, by which orders are chosen
NOTHING = 1e-9  # s; keeps ratios of waits finite: two waits of 0 do not differ


class Change(NamedTuple):
    """A figure under an order and under today's, and the relative change with its interval."""

    value: float
    today: float
    change: float
    low: float
    high: float


class Draws(NamedTuple):
    """Resamples of blocks and replays, the same for all orders; the first row is the sample itself."""

    blocks: FloatArray  # [1 + S, N]
    replays: FloatArray  # [1 + S, E]  weights with sum 1
    levels: tuple[float, float]  # of the percentiles


def blocks_of(period: Period) -> IntArray:
    """Return the block of each job that counts [J], from 0 and without gaps."""
    submit = period.queue.submit[period.first :]
    _, place = np.unique((submit - submit[0]) // (BLOCK_DAYS * DAY_S), return_inverse=True)
    return np.asarray(place, dtype=np.int64)


def draws(blocks: int, replays: int, resamples: int, confidence: float, seed: int) -> Draws:
    """Return resamples of blocks and replays.

    Args:
        blocks: number of blocks, at least 2.
        replays: number of replays.
        resamples: number of resamples.
        confidence: confidence of the intervals.
        seed: seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(blocks, np.full(blocks, 1 / blocks), size=resamples)
    weights = rng.multinomial(replays, np.full(replays, 1 / replays), size=resamples) / replays
    tail = expanded((1 - confidence) / 2, blocks)
    return Draws(
        np.vstack([np.ones(blocks), counts]), np.vstack([np.full(replays, 1 / replays), weights]), (tail, 1 - tail)
    )


def expanded(tail: float, units: int) -> float:
    """Return the level at which to take a percentile if units are few: Student's t replaces the normal distribution.

    The quantile of t is approximated as in Abramowitz and Stegun (26.7.5).

    >>> [round(expanded(0.025, units), 4) for units in (4, 10, 40, 1000)]
    [0.0001, 0.0086, 0.0203, 0.0248]
    """
    z, f = NormalDist().inv_cdf(tail), units - 1
    terms = (z**3 + z) / (4 * f), (5 * z**5 + 16 * z**3 + 3 * z) / (96 * f**2)
    t = z + sum(terms) + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * f**3)
    t += (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92_160 * f**4)
    return NormalDist().cdf(t * (units / f) ** 0.5)


def slowdown(wait: FloatArray, run: FloatArray) -> FloatArray:
    """Return bounded slowdowns."""
    return np.asarray(np.maximum((wait + run) / np.maximum(run, SHORTEST_BOUNDED), 1.0))


def relative(value: FloatArray, today: FloatArray) -> FloatArray:
    """Return relative changes.

    >>> relative(np.array([50.0, 0.0]), np.array([100.0, 0.0])).round(6).tolist()
    [-0.5, 0.0]
    """
    return np.asarray((value + NOTHING) / (today + NOTHING) - 1)


def figures(wait: FloatArray, today: FloatArray, run: FloatArray, block: IntArray, drawn: Draws) -> dict[str, Change]:
    """Return every measure of some jobs, and `gain`.

    Args:
        wait: [E, J] waits in each replay.
        today: [E, J] waits under today's order.
        run: [J] run times.
        block: [J] block of each job, a column of `drawn.blocks`.
        drawn: resamples.
    """
    found, ratio = {}, np.ones(len(drawn.blocks))
    for name in MEASURES:
        mine, other = (RESAMPLED[name](some, run, block, drawn) for some in (wait, today))
        change = relative(mine, other)
        low, high = np.quantile(change[1:], drawn.levels)
        if name == "longest_wait":
            each = relative(wait.max(axis=1), today.max(axis=1))
            low, high = each.min(), each.max()
        if name in GAIN:
            ratio *= np.maximum(1 + change, 0)
        found[name] = Change(float(mine[0]), float(other[0]), float(change[0]), float(low), float(high))
    change = np.sqrt(ratio) - 1
    low, high = np.quantile(change[1:], drawn.levels)
    return found | {"gain": Change(float(ratio[0] ** 0.5), 1.0, float(change[0]), float(low), float(high))}


def _mean(value: FloatArray, block: IntArray, drawn: Draws) -> FloatArray:
    """Return the mean over jobs and replays in each resample [1 + S]."""
    blocks = drawn.blocks.shape[1]
    sums = np.stack([np.bincount(block, row, minlength=blocks) for row in value])  # [E, N]
    jobs = drawn.blocks @ np.bincount(block, minlength=blocks)
    return np.asarray(((drawn.replays @ sums) * drawn.blocks).sum(axis=1) / np.maximum(jobs, 1))


def _p99(wait: FloatArray, block: IntArray, drawn: Draws) -> FloatArray:
    """Return the mean over replays of the 99th percentile over jobs, in each resample [1 + S].

    Jobs are counted in groups of similar waits, which are small in the tail. The value is the largest of its group.
    """
    found = np.empty((len(drawn.blocks), len(wait)))
    places = [np.linspace(first * len(block), len(block), GROUPS) for first in (0.0, 0.9)]
    ends = np.unique(np.concatenate(places).astype(int))[1:]
    group = np.searchsorted(ends, np.arange(len(block)), side="right")
    for e, row in enumerate(wait):
        order = np.argsort(row, kind="stable")
        counts = np.zeros((drawn.blocks.shape[1], len(ends)))
        np.add.at(counts, (block[order], group), 1)
        up_to = np.cumsum(drawn.blocks @ counts, axis=1)
        place = (up_to < TAIL * up_to[:, -1:] - 1e-9).sum(axis=1)
        found[:, e] = row[order][ends - 1][np.minimum(place, len(ends) - 1)]
    return np.asarray((found * drawn.replays).sum(axis=1))


RESAMPLED: Mapping[str, Callable[[FloatArray, FloatArray, IntArray, Draws], FloatArray]] = {
    "wait": lambda wait, run, block, drawn: _mean(wait, block, drawn),
    "p99_wait": lambda wait, run, block, drawn: _p99(wait, block, drawn),
    "longest_wait": lambda wait, run, block, drawn: np.full(len(drawn.blocks), wait.max(axis=1).mean()),
    "slowdown": lambda wait, run, block, drawn: _mean(slowdown(wait, run), block, drawn),
}
