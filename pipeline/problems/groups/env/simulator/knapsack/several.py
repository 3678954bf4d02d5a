"""Shares of several resources at once: exact if that is fast, otherwise by a Lagrangian relaxation.

Prices of the resources replace their limits: at given prices each group chooses independently, and the total value of
the choices plus the price of all units is an upper bound of the optimum (Everett 1963). The least bound is found by the
ellipsoid method (Shor 1977) on its subgradients, in a fixed number of steps. The choices at intermediate prices are
made feasible and filled up; the best of these, improved in pairs, is the result.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.groups.env.simulator.knapsack.exact import (
    best_shares,
    best_shares_two,
    check,
    own_best,
    work,
    worth,
)
from pipeline.simulation.compiled import Span, inlined, threaded

PRICES = 100  # steps per resource
EVERY = 4  # steps between two choices that are made feasible
PAIRS = 1_000_000  # (groups * levels)^2: with more groups, the improvement by pairs is relatively small
FAR = 4  # initial steps per resource, when prices are far from the optimum and choices would need many changes
QUICK_WORK = 10_000_000  # steps per state of dynamic programming on two resources that `plan` accepts: some 5 ms


class Bounded(NamedTuple):
    """Levels of B clusters, and an upper bound of their value."""

    level: IntArray  # [B, G]
    value: FloatArray  # [B]     summed over groups
    bound: FloatArray  # [B]     never below the optimum; the gap is bound - value


def plan(value: FloatArray, units: IntArray, total: IntArray) -> IntArray:
    """Return levels [B, G] with the largest value, or nearly, among those for which the cluster has enough units.

    Exact for one resource; if the optimum by one resource also satisfies the others (always the case if units are
    proportional to totals, or one resource is the scarcest at every level); and for two resources with few units.
    Otherwise, the result is that of `lagrangian`.

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
    """Return feasible levels for any number of resources, and an upper bound of the optimum.

    Args:
        value: of each group at each level [B, G, L].
        units: of each level [L, R]; those of level 0 are 0.
        total: units of the cluster [R].
    """
    check(value, units, total)
    usable = np.flatnonzero((units <= total).all(axis=1))  # by a single group
    gain = np.ascontiguousarray(value[:, :, usable] - value[:, :, :1], dtype=np.float64)
    # An ellipsoid has at least two dimensions: a single resource is doubled.
    columns = np.arange(len(total)) if len(total) > 1 else np.zeros(2, dtype=np.int64)
    each, most = units[usable][:, columns].astype(np.int64, order="C"), np.asarray(total)[columns].astype(np.int64)
    level = np.zeros(value.shape[:2], dtype=np.int64)
    bound = np.zeros(len(value))
    _relax_all(gain, each, each / np.maximum(most, 1), most, level, bound)
    reached = worth(value, usable[level])
    # Sums in another order may differ by rounding, and a bound is not below the value reached.
    return Bounded(usable[level], reached, np.maximum(bound + value[:, :, 0].sum(axis=1), reached))


@threaded(lambda gain, *_: len(gain))
def _relax_all(
    span: Span, gain: FloatArray, units: IntArray, part: FloatArray, total: IntArray, level: IntArray, bound: FloatArray
) -> None:
    for b in range(*span):
        bound[b] = _relax(gain[b], units, part, total, level[b])


@njit(cache=True)
def _relax(gain: FloatArray, units: IntArray, part: FloatArray, total: IntArray, level: IntArray) -> float:
    """Write the levels [G] of one state; return its bound. `part` contains units relative to the totals."""
    chosen, cost = np.zeros_like(level), np.zeros(len(units))
    bound, reached = _choose(gain, cost, chosen), 0.0
    if (_holding(units, chosen) <= total).all():
        level[:] = chosen
        return bound
    # A bound is at least the sum of its prices, so the best prices do not sum to more than the bound at prices of 0.
    price = np.full(len(total), bound / (len(total) + 1))
    ellipsoid = np.eye(len(total)) * bound * bound
    for step in range(PRICES * len(total)):
        slope = _below_zero(price)
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
        _better_in_pairs(gain, units, total, level)
    return bound


@njit(cache=True)
def _below_zero(price: FloatArray) -> FloatArray:
    """Return the slope that raises the lowest price to 0 if it is negative; else zeros."""
    slope = np.zeros(len(price))
    lowest = price.argmin()
    if price[lowest] < 0.0:
        slope[lowest] = -1.0
    return slope


@njit(cache=True)
def _cut(ellipsoid: FloatArray, price: FloatArray, slope: FloatArray) -> bool:
    """Move the prices to the centre of the half of the ellipsoid down the slope; return False if it is a point."""
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
    """Write each group's best level at the prices; return their total value less their cost."""
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
    """Make a choice feasible, fill it up, and write it if its value is above `reached`; return the better value."""
    trial = chosen.copy()
    _repair(gain, units, part, total, trial)
    _fill(gain, units, total, cost, trial)
    value = 0.0
    for g in range(len(gain)):
        value += gain[g, trial[g]]
    if value > reached:
        level[:] = trial
    return max(value, reached)


@njit(cache=True)
def _holding(units: IntArray, level: IntArray) -> IntArray:
    """Return the units [R] of all groups."""
    held = np.zeros(units.shape[1], dtype=np.int64)
    for g in range(len(level)):
        held += units[level[g]]
    return held


@inlined
def _swap(held: IntArray, units: IntArray, old: int, new: int) -> None:
    for r in range(len(held)):
        held[r] += units[new, r] - units[old, r]


@inlined
def _fits(held: IntArray, units: IntArray, old: int, new: int, total: IntArray) -> bool:
    for r in range(len(held)):  # noqa: SIM110  a generator is not compiled into kernels
        if held[r] + units[new, r] - units[old, r] > total[r]:
            return False
    return True


@inlined
def _relief(held: IntArray, units: IntArray, part: FloatArray, old: int, new: int, total: IntArray) -> float:
    """Return the relief of the shortage by another level; 0 if that needs more of any resource."""
    relief = 0.0
    for r in range(len(held)):
        if units[new, r] > units[old, r]:  # units in use must only shrink, so that the loop ends
            return 0.0
        if held[r] > total[r]:
            relief += min(part[old, r] - part[new, r], (held[r] - total[r]) / max(total[r], 1))
    return relief


@njit(cache=True)
def _repair(gain: FloatArray, units: IntArray, part: FloatArray, total: IntArray, level: IntArray) -> None:
    """Lower levels until they fit, each time the one with the least loss per unit of relief."""
    held = _holding(units, level)
    while (held > total).any():
        least, who, to = np.inf, -1, -1
        for g in range(len(gain)):
            for l in range(len(units)):  # noqa: E741  the glossary's letter
                relief = _relief(held, units, part, level[g], l, total)
                if relief > 0.0 and (gain[g, level[g]] - gain[g, l]) / relief < least:
                    least, who, to = (gain[g, level[g]] - gain[g, l]) / relief, g, l
        _swap(held, units, level[who], to)
        level[who] = to


@njit(cache=True)
def _fill(gain: FloatArray, units: IntArray, total: IntArray, cost: FloatArray, level: IntArray) -> None:
    """Distribute the remaining units, each time to the fitting level with the largest gain less cost [L]."""
    held = _holding(units, level)
    while True:
        most, who, to = -np.inf, -1, -1
        for g in range(len(gain)):
            now = level[g]
            for l in range(len(units)):  # noqa: E741
                more = gain[g, l] - gain[g, now] - (cost[l] - cost[now])
                if more > most and gain[g, l] > gain[g, now] and _fits(held, units, now, l, total):
                    most, who, to = more, g, l
        if who < 0:
            return
        _swap(held, units, level[who], to)
        level[who] = to


@njit(cache=True)
def _better_in_pairs(gain: FloatArray, units: IntArray, total: IntArray, level: IntArray) -> None:
    """Change the levels of two groups at once, as long as any such change fits and gains."""
    held = _holding(units, level)
    better = True
    while better:
        better = False
        for g in range(len(gain)):
            for h in range(g):
                without = held - units[level[g]] - units[level[h]]
                most = gain[g, level[g]] + gain[h, level[h]]
                for l in range(len(units)):  # noqa: E741
                    for m in range(len(units)):
                        if gain[g, l] + gain[h, m] > most and (without + units[l] + units[m] <= total).all():
                            most, better = gain[g, l] + gain[h, m], True
                            level[g], level[h] = l, m
                held = without + units[level[g]] + units[level[h]]
