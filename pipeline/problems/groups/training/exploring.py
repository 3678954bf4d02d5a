"""Settings at random, which fill a replay memory with other configurations than rules and networks choose.

All numbers of a decision come from its one uniform draw, whose 53 bits are a key of `core.uniform`'s.
"""

import numpy as np
from numba import njit

from pipeline.core import FloatArray, IntArray, uniform
from pipeline.problems.groups.nouns import Configurations, Controller, Observation, Setting, SharedCluster


def random_setting(cluster: SharedCluster, configurations: Configurations) -> Controller:
    """Return the controller that draws every group's configuration, all equally likely, and then makes them fit.

    Where the cluster has not that many units, groups drawn at random go down by a level until it has.
    """

    def control(view: Observation, draws: FloatArray) -> Setting:
        (of_level, of_order), rest = _split(draws, cluster, configurations, numbers=2)
        level, order = _place(of_level, len(configurations.units)), _place(of_order, configurations.orders)
        return Setting(_fitted(configurations.units[level], cluster, configurations, rest), order)

    return control


def noisy(cluster: SharedCluster, controller: Controller, configurations: Configurations, chance: float) -> Controller:
    """Return a controller with, by chance, a random configuration in the place of a group's own; then made to fit.

    Where the cluster has not that many units, groups drawn at random go down by a level, to the next one below what
    they have, until it has; a share that is between levels stays so unless that befalls it.
    """

    def control(view: Observation, draws: FloatArray) -> Setting:
        (chances, of_level, of_order, own), rest = _split(draws, cluster, configurations, numbers=4)
        setting = controller(view, own[:, 0])
        changed = chances < chance
        level = _place(of_level, len(configurations.units))
        share = np.where(changed[:, :, None], configurations.units[level], setting.share)
        order = np.where(changed, _place(of_order, configurations.orders), setting.order)
        return Setting(_fitted(share, cluster, configurations, rest), order)

    return control


def _level(share: IntArray, configurations: Configurations) -> IntArray:
    each = [np.searchsorted(units, share[:, :, r], side="right") for r, units in enumerate(configurations.units.T)]
    return np.asarray(np.min(each, axis=0) - 1)


def _split(
    draws: FloatArray, cluster: SharedCluster, configurations: Configurations, numbers: int
) -> tuple[FloatArray, FloatArray]:
    """Return `numbers` uniform draws [numbers, B, G], and others [B, S] for as many steps down as there can be."""
    key = (draws * float(1 << 53)).astype(np.uint64)
    steps = cluster.groups * len(configurations.units)
    drawn = uniform(key[:, None], np.arange(1, numbers * cluster.groups + steps + 1)[None, :])
    first, rest = np.split(drawn, [numbers * cluster.groups], axis=1)
    return first.reshape(-1, numbers, cluster.groups).transpose(1, 0, 2), np.ascontiguousarray(rest)


def _place(draws: FloatArray, count: int) -> IntArray:
    return np.asarray((draws * count).astype(np.int64))


def _fitted(share: IntArray, cluster: SharedCluster, configurations: Configurations, draws: FloatArray) -> IntArray:
    """Return the shares after as many steps down as it takes until the cluster has the units."""
    below = _level(share, configurations)
    below -= (configurations.units[below] == share).all(axis=2)
    fitted = np.array(share, dtype=np.int64, order="C")
    units, capacity = (np.ascontiguousarray(a, dtype=np.int64) for a in (configurations.units, cluster.capacity))
    _step_down(fitted, below, units, capacity, draws)
    return fitted


@njit(cache=True)
def _step_down(share: IntArray, below: IntArray, units: IntArray, capacity: IntArray, draws: FloatArray) -> None:
    """Take groups drawn at random down to the level `below` their share, and on, until the capacity does."""
    for b in range(len(share)):
        total = share[b].sum(axis=0)
        step = 0
        while (total > capacity).any():
            open_to_it = np.flatnonzero(below[b] >= 0)
            g = open_to_it[int(draws[b, step] * len(open_to_it))]
            total += units[below[b, g]] - share[b, g]
            share[b, g] = units[below[b, g]]
            below[b, g] -= 1
            step += 1
