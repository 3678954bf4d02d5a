"""Controllers that try every configuration in the simulator before they choose: one that may, one that could not.

`lookahead` knows what any controller knows: who waits, who runs, and the estimates of their run times. It plays the
interval to come for every configuration of every group as if nobody else arrived, and hands out units by the same
knapsack as the learned controller. `expecting` does the same with one order of all queues, and counts what units save
those jobs that it expects, as many as lately arrived. `oracle` knows the jobs of the interval and all true run times as
well: what no controller can know. None looks further than the interval, so that the oracle is a reference and no bound.
"""

from collections.abc import Callable

import numpy as np

from pipeline.core import FloatArray, IntArray
from pipeline.problems.groups.evaluation.controlling import decided, setting_of
from pipeline.problems.groups.nouns import Configurations, Observation, Setting, SharedCluster
from pipeline.problems.groups.simulator.compiled.batch import Groups

Act = Callable[[Groups, IntArray, Observation, FloatArray], Setting]


EXPECTED, NEED = 0.5, 0.5  # intervals that an expected job waits if nothing is kept; equal shares kept for most of them


def foresight(
    cluster: SharedCluster, configurations: Configurations, by_estimate: bool, order: int | None = None
) -> Act:
    """Return what chooses the configurations of least cost over the interval to come.

    Args:
        cluster: that is controlled.
        configurations: of each group.
        by_estimate: does it know only estimates of run times, and nothing of jobs to come?
        order: of all groups' queues, by what expects jobs; None: each group's own best, and none are expected.
    """
    levels = len(configurations.units)
    orders = list(range(configurations.orders)) if order is None else [order]

    def act(groups: Groups, rows: IntArray, view: Observation, draws: FloatArray) -> Setting:
        cost = np.empty((*view.order.shape, levels, len(orders)))
        for level in range(levels):
            for k, place in enumerate(orders):
                share = np.broadcast_to(configurations.units[level], view.share.shape)
                every = Setting(np.ascontiguousarray(share), np.full_like(view.order, place))
                cost[:, :, level, k] = groups.what_if(rows, every, alone=True, by_estimate=by_estimate)
        if order is not None:
            cost -= cluster.interval * saved(view, cluster, configurations)[..., None]
        chosen = decided(-cost, configurations, cluster.capacity)
        setting = setting_of(chosen, view, configurations, cluster.capacity)
        return setting._replace(order=np.asarray(orders)[setting.order])

    return act


def saved(view: Observation, cluster: SharedCluster, configurations: Configurations) -> FloatArray:
    """Return the intervals [B, G, L] that expected jobs do not wait at each level, for what it leaves is kept for them.

    As many are expected as lately arrived in an interval. What is left: of the level's units, with those that jobs give
    back in the interval, those that neither run nor waiting jobs want.
    """
    taken = view.used + view.waiting_demand.sum(axis=2) - view.releasing
    left = np.maximum(configurations.units - taken[:, :, None], 0) * (cluster.groups / cluster.capacity)
    served = 1 - np.exp(-left.min(axis=-1) / NEED)
    return np.asarray(EXPECTED * view.recent_jobs.sum(axis=2)[:, :, None] * served)
