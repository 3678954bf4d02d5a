"""Rules that a learned controller is compared with: those of `teachers`, and those that nothing learns from.

`capacity` is the rule of Hadoop's capacity scheduler, guarantees that others borrow while their owner has no use for
them, without preemption and at the controller's pace.
"""

from collections.abc import Sequence

import numpy as np

from pipeline.core import FloatArray
from pipeline.problems.groups.heuristics.teachers import (
    TEACHERS,
    Heuristic,
    checked,
    controller_of,
    demanded,
    progressive_filling,
)
from pipeline.problems.groups.nouns import Controller, Observation, SharedCluster


def capacity(cluster: SharedCluster, order: int, guarantees: FloatArray | Sequence[float]) -> Controller:
    """Return the controller of guaranteed shares which those borrow who want more than theirs.

    Of each resource a group first has its demand up to its guarantee. What is left goes to those who want more, in
    proportion to their guarantees and never beyond their demand; what nobody wants, to all in that proportion.

    Args:
        cluster: that is shared.
        order: of all groups' queues.
        guarantees: above 0, weights [G] of the guaranteed shares.
    """
    weight = checked(cluster, guarantees, zero=False)

    def share(view: Observation) -> FloatArray:
        # Both steps at once: of one resource, guarantees and borrowing end where weighted filling does.
        alone = (demanded(view) / cluster.capacity).transpose(0, 2, 1)
        filled = progressive_filling(alone.reshape(-1, cluster.groups, 1), weight).reshape(alone.shape)
        left = np.maximum(1 - filled.sum(axis=2, keepdims=True), 0)
        return np.asarray((filled + left * weight).transpose(0, 2, 1) * cluster.capacity)

    return controller_of(cluster, order, share)


# Rules that need nothing but the cluster and an order, by their params.yaml word.
HEURISTICS: dict[str, Heuristic] = {**TEACHERS}
