"""The knapsack over user groups, by dynamic programming (the source's equations 8 and 9).

A group at level l gets `units[l]` and has the value `value[l]`; the sum of units must not exceed the cluster's.
Algorithm 2 cannot be run as printed: line 1 has m for k; line 5 bounds the argmax by an r that is never set; line 6
records a choice even if V[i-1, u] wins; line 14 subtracts from r instead of u, so that u stays u_total. And the number
of combinations is 30^80, not "80^30".

Departure: a group without units has the value value[0], not 0. The programme sums gains over value[0], which subtracts
the same constant from every choice; if value[0] is 0, this is exactly equation 9.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from pipeline.core.types import FloatArray, IntArray
from pipeline.simulation.compiled import Span, threaded

MOST_WORK = 200_000_000  # steps of dynamic programming on two resources per state: a tenth of a second


class Planned(NamedTuple):
    """Optimal levels of B clusters."""

    level: IntArray  # [B, G]
    value: FloatArray  # [B]     summed over groups


def best_shares(value: FloatArray, units: IntArray, total: int) -> Planned:
    """Return the levels with the largest value among those for which the cluster has enough units.

    Among equals, later groups get no units, or as few as possible.

    Args:
        value: of each group at each level [B, G, L].
        units: of each level [L], or of each group's [G, L]; those of level 0 are 0.
        total: units of the cluster.

    >>> worth = np.array([[[0.0, 5.0, 6.0], [0.0, 4.0, 4.5]]])
    >>> best_shares(worth, np.array([0, 1, 2]), total=3)
    Planned(level=array([[2, 1]]), value=array([10.]))
    """
    check(value, units[..., None], np.array([total]))
    each = np.broadcast_to(units, value.shape[1:])
    return _planned(value, np.stack([np.zeros_like(each), each], axis=2), np.array([0, total]))


def best_shares_two(value: FloatArray, units: IntArray, total: IntArray) -> Planned:
    """Return the levels with the largest value among those for which the cluster has enough units of two resources.

    Args:
        value: of each group at each level [B, G, L].
        units: of each level [L, 2]; those of level 0 are 0.
        total: units of the cluster [2].

    Raises:
        ValueError: the knapsack would take more than MOST_WORK steps per state.
    """
    check(value, units, total)
    if (steps := work(value, units, total)) > MOST_WORK:
        raise ValueError(f"the knapsack on two resources would take {steps:,} steps; expected at most {MOST_WORK:,}")
    return _planned(value, np.broadcast_to(units, (*value.shape[1:], 2)), np.asarray(total))


def work(value: FloatArray, units: IntArray, total: IntArray) -> int:
    """Return the steps of the knapsack for one state: groups * levels * amounts of one resource * of the other."""
    _, most = reduced(np.broadcast_to(units, (*value.shape[1:], 2)), np.asarray(total))
    return int(value.shape[1] * value.shape[2] * (int(most[0]) + 1) * (int(most[1]) + 1))


def own_best(value: FloatArray) -> IntArray:
    """Return the level [B, G] with each group's largest value, regardless of the cluster's units (equation 8)."""
    return np.asarray(value.argmax(axis=2))


def squeezed(level: IntArray, units: IntArray, total: int | IntArray) -> IntArray:
    """Return levels [B, G], for example of `own_best`, reduced until the cluster has enough units.

    While a resource is short, the group with the most units of it goes down by a level (among equals, the lowest
    number); the resource with the largest relative shortage comes first.

    Args:
        level: of each group [B, G].
        units: of each level [L], ascending; or [L, R].
        total: units of the cluster; or [R].

    >>> squeezed(np.array([[2, 2, 1]]), np.array([0, 2, 5]), total=8)
    array([[1, 1, 1]])
    """
    fitting = np.array(level, dtype=np.int64)
    each = np.asarray(units, dtype=np.int64).reshape(len(units), -1)
    _squeeze(fitting, np.ascontiguousarray(each), np.atleast_1d(np.asarray(total, dtype=np.int64)))
    return fitting


def worth(value: FloatArray, level: IntArray) -> FloatArray:
    """Return the value [B] of levels, summed over groups."""
    return np.asarray(np.take_along_axis(value, level[:, :, None], axis=2)[:, :, 0].sum(axis=1, dtype=np.float64))


def check(value: FloatArray, units: IntArray, total: IntArray) -> None:
    """Raise ValueError if shapes do not match, a number is not finite or negative, or level 0 has units."""
    if value.ndim != 3 or units.shape[-2] != value.shape[2] or (units.ndim == 3 and len(units) != value.shape[1]):
        raise ValueError(f"values {value.shape} do not match units of levels {units.shape}")
    if np.shape(total) != units.shape[-1:]:
        raise ValueError(f"a total of {np.shape(total)} does not match units of levels {units.shape}")
    if not np.isfinite(value).all():
        raise ValueError("values: expected finite numbers")
    if (units[..., 0, :] != 0).any():
        raise ValueError(f"level 0: expected 0 units, got {units[..., 0, :].tolist()}")
    if units.min() < 0 or np.min(total) < 0:
        raise ValueError(f"expected units and totals of at least 0, got {int(units.min())} and {int(np.min(total))}")


def reduced(units: IntArray, total: IntArray) -> tuple[IntArray, IntArray]:
    """Return units [G, L, N] and totals [N] of an equivalent knapsack with as few amounts as possible.

    Amounts are counted in their greatest common divisor, and units that all groups together cannot use are left out.
    Levels above the total of a resource do not count for either, and stay above the total.
    """
    fits = np.asarray(units <= total).all(axis=2, keepdims=True)
    common = np.maximum(np.gcd.reduce(np.where(fits, units, 0).reshape(-1, units.shape[2]), axis=0), 1)
    fewer = np.where(fits, units // common, total // common + 1)
    usable = np.where(fits, fewer, 0).max(axis=1).sum(axis=0)
    return fewer, np.minimum(total // common, usable)


def _planned(value: FloatArray, units: IntArray, total: IntArray) -> Planned:
    fewer, most = reduced(units.astype(np.int64), total.astype(np.int64))
    rank = np.lexsort((fewer[:, :, 0], fewer[:, :, 1]), axis=1)
    gain = np.ascontiguousarray(value - value[:, :, :1], dtype=np.float64)
    level = np.zeros(value.shape[:2], dtype=np.int64)
    _plan_all(gain, np.ascontiguousarray(fewer), rank, int(most[0]), int(most[1]), level)
    return Planned(level, worth(value, level))


@threaded(lambda gain, *_: len(gain))
def _plan_all(
    span: Span, gain: FloatArray, units: IntArray, rank: IntArray, most: int, more: int, level: IntArray
) -> None:
    for b in range(*span):
        _plan(gain[b], units, rank, most, more, level[b])


@njit(cache=True)
def _plan(gain: FloatArray, units: IntArray, rank: IntArray, most: int, more: int, level: IntArray) -> None:
    """Write the best levels [G] of one state: equation 9 on amounts of two resources, then the backward pass.

    A single resource is the second of two; the first has a total of 0.
    """
    choice = np.zeros((len(gain), most + 1, more + 1), dtype=np.int32)
    before = np.zeros((most + 1, more + 1))
    best = np.zeros((most + 1, more + 1))
    for g in range(len(gain)):
        best[:] = before
        for at in range(gain.shape[1]):
            l = rank[g, at]  # noqa: E741  the glossary's letter
            # A level without gain never wins, because V does not decrease with the amounts.
            if gain[g, l] > 0.0 and units[g, l, 0] <= most and units[g, l, 1] <= more:
                _offer(before, best, choice[g], units[g, l, 0], units[g, l, 1], gain[g, l], l)
        before, best = best, before
    u, w = most, more
    for g in range(len(gain) - 1, -1, -1):
        level[g] = choice[g, u, w]
        u -= units[g, level[g], 0]
        w -= units[g, level[g], 1]


@njit(cache=True)
def _offer(
    before: FloatArray, best: FloatArray, choice: IntArray, first: int, second: int, gain: float, level: int
) -> None:
    """Write a level wherever its value exceeds the best so far."""
    for u in range(first, len(best)):
        rest, there, chosen = before[u - first], best[u, second:], choice[u, second:]
        for w in range(len(there)):
            offered = gain + rest[w]
            if offered > there[w]:
                there[w] = offered
                chosen[w] = level


@njit(cache=True)
def _squeeze(level: IntArray, units: IntArray, total: IntArray) -> None:
    for b in range(len(level)):
        while True:
            short, most = -1, 0.0
            for r in range(len(total)):
                held = 0
                for g in range(level.shape[1]):
                    held += units[level[b, g], r]
                if (held - total[r]) / max(total[r], 1) > most:
                    short, most = r, (held - total[r]) / max(total[r], 1)
            if short < 0:
                break
            widest = 0
            for g in range(level.shape[1]):
                if units[level[b, g], short] > units[level[b, widest], short]:
                    widest = g
            level[b, widest] -= 1
