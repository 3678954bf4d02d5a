"""A stored controller that maps rows of numbers to rows of numbers.

A row holds the fields of `nouns.Observation` in their order, each flattened with its last axis the fastest: `now` [1],
`waiting` [G * Q], `waiting_demand` [G * Q * R], `waiting_work`, `waited` and `head_waited` [G * Q] each, `head_demand`
[G * Q * R], `head_estimate` [G * Q], `running` [G], `used` [G * R], `left` [G], `releasing` [G * R], `recent_jobs` and
`recent_work` [G * Q] each, `share` [G * R], `order` [G]. G, Q and R are the groups, queues and resources of the model's
card; queues and resources are in its order. `Observation` defines the values.

An answer holds the units of each group and resource [G * R], then the place of each group's order among the orders of
the card [G].
"""

from functools import cache
from pathlib import Path

import numpy as np

from pipeline.core import storage
from pipeline.core.config import GroupsCard
from pipeline.core.types import FloatArray
from pipeline.interactive.live.rows import Rows
from pipeline.problems.groups.env.nouns import Observation, Setting, SharedCluster
from pipeline.problems.groups.env.workload.source import cluster_of, configurations_of
from pipeline.problems.parts import Answering, Served

# Axes of the fields after [B]; those of COUNTS are whole numbers.
SHAPES: dict[str, str] = {
    **{"now": "", "waiting": "GQ", "waiting_demand": "GQR", "waiting_work": "GQ", "waited": "GQ", "head_waited": "GQ"},
    **{"head_demand": "GQR", "head_estimate": "GQ", "running": "G", "used": "GR", "left": "G", "releasing": "GR"},
    **{"recent_jobs": "GQ", "recent_work": "GQ", "share": "GR", "order": "G"},
}
COUNTS = ("waiting", "waiting_demand", "head_demand", "running", "used", "releasing", "share", "order")


def served(folder: Path) -> Served:
    """Return a stored controller as a function of rows."""
    model = storage.read_model(folder, GroupsCard)
    cluster = cluster_of(model.card)

    @cache
    def load() -> Answering:
        from pipeline.problems.groups.agents.networks.q_network import controller, restore

        control = controller(restore(model.card, model.weights), cluster, configurations_of(model.card))
        return lambda rows, draws: answers(control(Observation(**layout(cluster).fields(rows)), draws))

    return Served(layout(cluster).width, cluster.groups * (len(cluster.capacity) + 1), load)


def layout(cluster: SharedCluster) -> Rows:
    """Return the layout of rows.

    >>> layout(SharedCluster(np.array([64]), 4, np.array([[0, 1, 2]]), 10.0, False, np.inf)).width
    133
    """
    return Rows(SHAPES, COUNTS, G=cluster.groups, Q=cluster.queues, R=len(cluster.capacity))


def answers(setting: Setting) -> FloatArray:
    """Return settings as rows [B, G * R + G]."""
    parts = (np.asarray(part, dtype=np.float64).reshape(len(part), -1) for part in setting)
    return np.concatenate(list(parts), axis=1)
