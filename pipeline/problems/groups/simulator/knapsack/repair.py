"""Compiled: levels [G] of one state made to fit the cluster's units, and bettered one group or two groups at a time."""

import numpy as np
from numba import njit

from pipeline.core import FloatArray, IntArray
from pipeline.simulation.compiled import inlined


@njit(cache=True)
def holding(units: IntArray, level: IntArray) -> IntArray:
    """Return the units [R] that all groups hold."""
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
    """Return what a lower level gives back of what is short; 0 where it takes more of any resource."""
    relief = 0.0
    for r in range(len(held)):
        if units[new, r] > units[old, r]:  # what is held must only fall, for the end to be reached
            return 0.0
        if held[r] > total[r]:
            relief += min(part[old, r] - part[new, r], (held[r] - total[r]) / max(total[r], 1))
    return relief


@njit(cache=True)
def repair(gain: FloatArray, units: IntArray, part: FloatArray, total: IntArray, level: IntArray) -> None:
    """Take from groups until all fits: each time, what is lost for the least per unit that is short."""
    held = holding(units, level)
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
def fill(gain: FloatArray, units: IntArray, total: IntArray, cost: FloatArray, level: IntArray) -> None:
    """Give groups what is left: each time the level, of those that fit and gain, that gains most less its cost [L]."""
    held = holding(units, level)
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
def better_in_pairs(gain: FloatArray, units: IntArray, total: IntArray, level: IntArray) -> None:
    """Give two groups other levels at once, again and again, while any such change gains and fits."""
    held = holding(units, level)
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
