"""From values of configurations to what the controller sets: the knapsack over groups, and what it leaves.

The knapsack hands out levels. What no level used up goes to groups that want more than they were given, up to that;
and what is then left, in proportion to the work that lately arrived: the source is silent about it.

Progress rule: while nothing runs, the group whose first job has waited longest is given what that job wants. Values
alone may say otherwise, in a state that then never changes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pipeline.core import FloatArray, IntArray
from pipeline.problems.groups.heuristics.teachers import demanded, whole
from pipeline.problems.groups.nouns import Configurations, Observation, Setting
from pipeline.problems.groups.simulator.knapsack.exact import own_best, squeezed
from pipeline.problems.groups.simulator.knapsack.several import plan

Choose = Callable[[FloatArray, IntArray, IntArray], IntArray]  # (values [D, G, L], units [L, R], total [R]) -> levels


class Decided(NamedTuple):
    """Configurations chosen in D cluster states."""

    level: IntArray  # [D, G]
    order: IntArray  # [D, G]
    value: FloatArray  # [D, G]  of them


def decided(
    values: FloatArray,
    configurations: Configurations,
    total: IntArray,
    choose: Choose = plan,
    rewards: FloatArray | None = None,
) -> Decided:
    """Return the configurations of most value, or reward, in all that the cluster has units for.

    Args:
        values: [D, G, L, O] of every configuration.
        configurations: their list.
        total: units [R] of the cluster.
        choose: picks the levels.
        rewards: [D, G, L, O], by which levels are chosen if given; orders are always chosen by value.
    """
    best = values.argmax(axis=-1)[..., None]
    summed = np.take_along_axis(values if rewards is None else rewards, best, axis=3)[..., 0]
    level = choose(summed.astype(np.float64), configurations.units, total)
    at = np.take_along_axis(values, level[:, :, None, None], axis=2)[:, :, 0]
    return Decided(level, at.argmax(axis=-1), at.max(axis=-1))


def setting_of(chosen: Decided, view: Observation, configurations: Configurations, total: IntArray) -> Setting:
    """Return what is set: the chosen levels, and beyond them what is left over."""
    share = configurations.units[chosen.level]
    missing = np.maximum(demanded(view) - share, 0)
    over = np.maximum(total - share.sum(axis=1, keepdims=True), 0)
    met = whole(missing, np.minimum(over, missing.sum(axis=1, keepdims=True).astype(np.int64)))
    lately = np.broadcast_to(view.recent_work.sum(axis=2)[:, :, None], missing.shape)
    share = share + met + whole(lately, over - met.sum(axis=1, keepdims=True))
    return Setting(_going_on(share, view, total), chosen.order)


def _going_on(share: IntArray, view: Observation, total: IntArray) -> IntArray:
    """Return shares [D, G, R] by the progress rule."""
    still = np.flatnonzero((view.running.sum(axis=1) == 0) & view.waiting.any(axis=(1, 2)))
    groups, queues = view.waiting.shape[1:]
    since = np.where(view.waiting > 0, view.head_waited, -1.0)[still].reshape(-1, groups * queues)
    group, queue = np.divmod(since.argmax(axis=1), queues)
    head = view.head_demand[still, group, queue]
    stuck = (head > share[still, group]).any(axis=1)
    still, group, head = still[stuck], group[stuck], head[stuck]
    others = share[still].astype(float)
    others[np.arange(len(still)), group] = 0
    given = share.copy()
    given[still] = whole(others, (total - head)[:, None])
    given[still, group] += head
    return given


def own(values: FloatArray, units: IntArray, total: IntArray) -> IntArray:
    """Return each group's own best level [D, G] (the source's equation 8), brought down to what there is."""
    return squeezed(own_best(values), units, total)
