"""Shares of several resources at once: exact where that is quick, else by a Lagrangian relaxation.

Prices of the resources take the place of their limits: at given prices each group chooses by itself, and what all
groups are then worth, with the price of what is left over, is never less than the optimum (Everett 1963). The least
such bound is found by the ellipsoid method (Shor 1977) on its subgradients, in a fixed number of steps. The groups'
choices at the prices on the way are made to fit and filled up (`repair.py`); the best of these, bettered in pairs, is
the answer.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from pipeline.core import FloatArray, IntArray
from pipeline.problems.groups.simulator.knapsack.exact import best_shares, best_shares_two, check, own_best, work, worth
from pipeline.problems.groups.simulator.knapsack.repair import better_in_pairs, fill, holding, repair

PRICES = 100  # steps a resource
EVERY = 4  # steps between two choices that are made to fit
PAIRS = 1_000_000  # (groups * levels)^2: with more groups what pairs could better is a small part of the whole
FAR = 4  # steps a resource at first, when prices are far off and choices would have to be changed much
QUICK_WORK = 10_000_000  # steps of dynamic programming on two resources that `plan` takes for a state: some 5 ms


class Bounded(NamedTuple):
    """What B clusters can do, and what no choice can be worth more than."""

    level: IntArray  # [B, G]
    value: FloatArray  # [B]     summed over groups
    bound: FloatArray  # [B]     never below the optimum; the gap is bound - value


def plan(value: FloatArray, units: IntArray, total: IntArray) -> IntArray:
    """Return the levels [B, G] that are worth most among those whose units the cluster has, or nearly.

    Exact for one resource; where the best by one resource alone has the units of the others too, which no choice can
    then beat (so it is wherever units are in the proportion of totals, or one resource is the scarcest at every
    level); and for two resources of few units. Else the answer of `lagrangian`.

    Args:
        value: of each group at each level [B, G, L].
        units: of each level [L, R]; those of level 0 are 0.
        total: units of the cluster [R].
    """
    check(value, units, total)
    usable = np.flatnonzero((units <= total).all(axis=1))  # by a single group
    value, units = value[:, :, usable], units[usable]
    level = own_best(value)
    scarcest = np.argsort(-(units / np.maximum(total, 1)).sum(axis=0), kind="stable")
    for resource in scarcest:
        left = np.flatnonzero((units[level].sum(axis=1) > total).any(axis=1))
        if len(left):
            level[left] = best_shares(value[left], units[:, resource], int(total[resource])).level
    left = np.flatnonzero((units[level].sum(axis=1) > total).any(axis=1))
    if len(left):
        exact = len(total) == 2 and work(value, units, total) <= QUICK_WORK
        level[left] = (best_shares_two if exact else lagrangian)(value[left], units, total).level
    return np.asarray(usable[level])


def lagrangian(value: FloatArray, units: IntArray, total: IntArray) -> Bounded:
    """Return levels that the cluster has the units for, of any number of resources, and a bound on the best of them.

    Args:
        value: of each group at each level [B, G, L].
        units: of each level [L, R]; those of level 0 are 0.
        total: units of the cluster [R].
    """
    check(value, units, total)
    usable = np.flatnonzero((units <= total).all(axis=1))  # by a single group
    gain = np.ascontiguousarray(value[:, :, usable] - value[:, :, :1], dtype=np.float64)
    # An ellipsoid has at least two dimensions: a single resource stands twice.
    columns = np.arange(len(total)) if len(total) > 1 else np.zeros(2, dtype=np.int64)
    each, most = units[usable][:, columns].astype(np.int64, order="C"), np.asarray(total)[columns].astype(np.int64)
    level = np.zeros(value.shape[:2], dtype=np.int64)
    bound = np.zeros(len(value))
    _relax_all(gain, each, each / np.maximum(most, 1), most, level, bound)
    reached = worth(value, usable[level])
    # Sums in another order may be a rounding error apart, and what is reached bounds nothing that is less.
    return Bounded(usable[level], reached, np.maximum(bound + value[:, :, 0].sum(axis=1), reached))


@njit(cache=True, parallel=True)
def _relax_all(
    gain: FloatArray, units: IntArray, part: FloatArray, total: IntArray, level: IntArray, bound: FloatArray
) -> None:
    for b in prange(len(gain)):
        bound[b] = _relax(gain[b], units, part, total, level[b])


@njit(cache=True)
def _relax(gain: FloatArray, units: IntArray, part: FloatArray, total: IntArray, level: IntArray) -> float:
    """Write the levels [G] of one state; return its bound. `part` are units as parts of the totals."""
    chosen, cost = np.zeros_like(level), np.zeros(len(units))
    bound, reached = _choose(gain, cost, chosen), 0.0
    if (holding(units, chosen) <= total).all():
        level[:] = chosen
        return bound
    # A bound is at least the sum of its prices, so that of the best ones is not above the bound at prices of 0.
    price = np.full(len(total), bound / (len(total) + 1))
    ellipsoid = np.eye(len(total)) * bound * bound
    for step in range(PRICES * len(total)):
        slope = _below_nothing(price)
        if (slope == 0.0).all():
            for l in range(len(units)):  # noqa: E741  the glossary's letter
                cost[l] = (part[l] * price).sum()
            bound = min(bound, price.sum() + _choose(gain, cost, chosen))
            slope = np.ones(len(total))
            for g in range(len(gain)):
                slope -= part[chosen[g]]
            if step % EVERY == 0 and step >= FAR * len(total):
                reached = _keep_better(gain, units, part, total, cost, chosen, level, reached)
        if bound <= reached or not _cut(ellipsoid, price, slope):
            break
    reached = _keep_better(gain, units, part, total, cost, chosen, level, reached)
    if gain.size * gain.size <= PAIRS:
        better_in_pairs(gain, units, total, level)
    return bound


@njit(cache=True)
def _below_nothing(price: FloatArray) -> FloatArray:
    """Return the slope that leads the lowest price up to 0; zeros where none is below."""
    slope = np.zeros(len(price))
    lowest = price.argmin()
    if price[lowest] < 0.0:
        slope[lowest] = -1.0
    return slope


@njit(cache=True)
def _cut(ellipsoid: FloatArray, price: FloatArray, slope: FloatArray) -> bool:
    """Move the prices to the middle of the half of their ellipsoid that is down the slope; False: it is a point."""
    n = len(price)
    along = np.zeros(n)
    for r in range(n):
        along[r] = (ellipsoid[r] * slope).sum()
    width = (along * slope).sum()
    if not width > 1e-24 * price.sum() ** 2:
        return False
    along /= np.sqrt(width)
    for r in range(n):
        price[r] -= along[r] / (n + 1)
        for q in range(n):
            ellipsoid[r, q] = n * n / (n * n - 1.0) * (ellipsoid[r, q] - 2.0 / (n + 1) * along[r] * along[q])
    return True


@njit(cache=True)
def _choose(gain: FloatArray, cost: FloatArray, chosen: IntArray) -> float:
    """Write each group's best level at the prices; return what they are worth less what they cost."""
    value = 0.0
    for g in range(len(gain)):
        best = 0
        for l in range(len(cost)):  # noqa: E741
            if gain[g, l] - cost[l] > gain[g, best] - cost[best]:
                best = l
        chosen[g] = best
        value += gain[g, best] - cost[best]
    return value


@njit(cache=True)
def _keep_better(
    gain: FloatArray, units: IntArray, part: FloatArray, total: IntArray, cost: FloatArray, chosen: IntArray,
    level: IntArray, reached: float,
) -> float:  # fmt: skip
    """Make a choice fit, fill it up, and write it where it is worth more than the best so far; return the better."""
    trial = chosen.copy()
    repair(gain, units, part, total, trial)
    fill(gain, units, total, cost, trial)
    value = 0.0
    for g in range(len(gain)):
        value += gain[g, trial[g]]
    if value > reached:
        level[:] = trial
    return max(value, reached)
