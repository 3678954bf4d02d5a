"""Controllers that try every configuration in the simulator before they choose: one that may, one that could not.

`lookahead` knows what any controller knows: who waits, who runs, and the estimates of their run times. It plays the
interval to come for every configuration of every group as if nobody else arrived, and hands out units by the same
knapsack as the learned controller. `oracle` knows the jobs of the interval and all true run times as well: what no
controller can know. Both look no further than the interval, so that the oracle is a reference and not a bound.
"""

from collections.abc import Callable

import numpy as np

from pipeline.core import FloatArray, IntArray
from pipeline.problems.groups.evaluation.controlling import decided, setting_of
from pipeline.problems.groups.nouns import Configurations, Observation, Setting, SharedCluster
from pipeline.problems.groups.simulator.compiled.batch import Groups

Act = Callable[[Groups, IntArray, Observation, FloatArray], Setting]


def foresight(cluster: SharedCluster, configurations: Configurations, by_estimate: bool) -> Act:
    """Return what chooses the configurations of least cost over the interval to come.

    Args:
        cluster: that is controlled.
        configurations: of each group.
        by_estimate: does it know only estimates of run times, and nothing of jobs to come?
    """
    levels, orders = len(configurations.units), configurations.orders

    def act(groups: Groups, rows: IntArray, view: Observation, draws: FloatArray) -> Setting:
        cost = np.empty((*view.order.shape, levels, orders))
        for place in range(configurations.total):
            level, order = divmod(place, orders)
            share = np.broadcast_to(configurations.units[level], view.share.shape)
            every = Setting(np.ascontiguousarray(share), np.full_like(view.order, order))
            cost[:, :, level, order] = groups.what_if(rows, every, alone=True, by_estimate=by_estimate)
        chosen = decided(-cost, configurations, cluster.capacity)
        return setting_of(chosen, view, configurations, cluster.capacity)

    return act
