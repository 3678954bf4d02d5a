"""Controllers that choose configurations: from their values to a setting, and rules that simulate all of them.

The knapsack distributes levels. The remaining units go to groups that want more than they got, up to their demand; the
rest is shared in proportion to the work that recently arrived (the source does not mention it). Progress rule: while no
job runs, the group whose first job has waited longest gets the units that this job needs. Otherwise values could keep
the cluster in a state that never changes.

`lookahead` knows what any controller knows: waiting and running jobs, and estimates of their run times. It simulates
the next interval for every configuration of every group without further arrivals, and distributes units by the same
knapsack as the learned controller. `expecting` does the same with one order of all queues, and adds the waiting that
units save for expected jobs, as many as recently arrived. `oracle` also knows the jobs of the interval and all true run
times, which no controller can know. As none looks beyond the interval, the oracle is a reference and not a bound.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.groups.env.nouns import Configurations, Observation, Setting, SharedCluster
from pipeline.problems.groups.env.simulator.batch import GroupsSimulator
from pipeline.problems.groups.env.simulator.knapsack.exact import own_best, squeezed
from pipeline.problems.groups.env.simulator.knapsack.several import plan
from pipeline.problems.groups.env.teachers import demanded, whole

Choose = Callable[[FloatArray, IntArray, IntArray], IntArray]  # (values [D, G, L], units [L, R], total [R]) -> levels
Act = Callable[[GroupsSimulator, IntArray, Observation, FloatArray], Setting]
EXPECTED, NEED = 0.5, 0.5  # intervals that an unserved expected job waits; equal shares that serve most of them


class Decided(NamedTuple):
    """Configurations chosen in D cluster states."""

    level: IntArray  # [D, G]
    order: IntArray  # [D, G]
    value: FloatArray  # [D, G]  of these configurations


def decided(
    values: FloatArray,
    configurations: Configurations,
    total: IntArray,
    choose: Choose = plan,
    rewards: FloatArray | None = None,
) -> Decided:
    """Return the configurations with the largest sum of values, or rewards, for which the cluster has enough units.

    Args:
        values: [D, G, L, O], of every configuration.
        configurations: the possible configurations.
        total: units [R] of the cluster.
        choose: picks the levels.
        rewards: [D, G, L, O], for choosing levels; orders are always chosen by value.
    """
    best = values.argmax(axis=-1)[..., None]
    summed = np.take_along_axis(values if rewards is None else rewards, best, axis=3)[..., 0]
    level = choose(summed.astype(np.float64), configurations.units, total)
    at = np.take_along_axis(values, level[:, :, None, None], axis=2)[:, :, 0]
    return Decided(level, at.argmax(axis=-1), at.max(axis=-1))


def setting_of(chosen: Decided, view: Observation, configurations: Configurations, total: IntArray) -> Setting:
    """Return the setting for chosen configurations, with all remaining units distributed."""
    share = configurations.units[chosen.level]
    missing = np.maximum(demanded(view) - share, 0)
    over = np.maximum(total - share.sum(axis=1, keepdims=True), 0)
    met = whole(missing, np.minimum(over, missing.sum(axis=1, keepdims=True).astype(np.int64)))
    lately = np.broadcast_to(view.recent_work.sum(axis=2)[:, :, None], missing.shape)
    share = share + met + whole(lately, over - met.sum(axis=1, keepdims=True))
    # The progress rule.
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
    return Setting(given, chosen.order)


def own(values: FloatArray, units: IntArray, total: IntArray) -> IntArray:
    """Return each group's own best level [D, G] (the source's equation 8), reduced until the cluster has the units."""
    return squeezed(own_best(values), units, total)


def foresight(
    cluster: SharedCluster, configurations: Configurations, by_estimate: bool, order: int | None = None
) -> Act:
    """Return the rule that chooses the configurations with the least simulated cost over the next interval.

    Args:
        cluster: the cluster.
        configurations: the possible configurations of a group.
        by_estimate: does the rule know only estimates of run times, and no future jobs?
        order: index of the order of all groups, with expected jobs; None: each group's best order, without them.
    """
    levels = len(configurations.units)
    orders = list(range(configurations.orders)) if order is None else [order]

    def act(groups: GroupsSimulator, rows: IntArray, view: Observation, draws: FloatArray) -> Setting:
        cost = np.empty((*view.order.shape, levels, len(orders)))
        for level in range(levels):
            for k, place in enumerate(orders):
                share = np.broadcast_to(configurations.units[level], view.share.shape)
                every = Setting(np.ascontiguousarray(share), np.full_like(view.order, place))
                cost[:, :, level, k] = groups.what_if(rows, every, isolated=True, by_estimate=by_estimate)
        if order is not None:
            cost -= cluster.interval * saved(view, cluster, configurations)[..., None]
        chosen = decided(-cost, configurations, cluster.capacity)
        setting = setting_of(chosen, view, configurations, cluster.capacity)
        return setting._replace(order=np.asarray(orders)[setting.order])

    return act


def saved(view: Observation, cluster: SharedCluster, configurations: Configurations) -> FloatArray:
    """Return how much waiting of expected jobs, in intervals, each level avoids [B, G, L] with the units left for them.

    As many jobs are expected as recently arrived in an interval. The units left are the level's units and those that
    jobs release in the interval, less those that running and waiting jobs want.
    """
    taken = view.used + view.waiting_demand.sum(axis=2) - view.releasing
    left = np.maximum(configurations.units - taken[:, :, None], 0) * (cluster.groups / cluster.capacity)
    served = 1 - np.exp(-left.min(axis=-1) / NEED)
    return np.asarray(EXPECTED * view.recent_jobs.sum(axis=2)[:, :, None] * served)
