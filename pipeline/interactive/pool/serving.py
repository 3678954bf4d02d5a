"""Stored policies of a pooled cluster that answer rows of numbers.

A row [N] holds free [T * R], demand [M * R], duration [M], waited [M], backlog [1], since_arrival [1],
backlog_head [R + 1], now [1], arrived [2 + R], in that order. The legal actions follow from these.
"""

from functools import cache
from pathlib import Path

import numpy as np

from pipeline.core import storage
from pipeline.core.config import PoolCard
from pipeline.core.types import FloatArray, Observation
from pipeline.interactive.live.rows import Rows
from pipeline.problems.parts import Answering, Served
from pipeline.problems.pool.env.nouns import Cluster, room

AXES = {
    **{"free": "TR", "demand": "MR", "duration": "M", "waited": "M", "backlog": "", "since_arrival": ""},
    **{"backlog_head": "H", "now": "", "arrived": "A"},
}


def served(folder: Path) -> Served:
    """Return a stored policy that answers rows with actions: a slot or, last, void."""
    model = storage.read_model(folder, PoolCard)
    card = model.card

    @cache
    def load() -> Answering:
        from pipeline.problems.pool.agents.networks.networks import restore

        loaded = restore(card, model.weights)
        return lambda rows, draws: loaded.policy(unflatten(rows, loaded.cluster), draws)

    return Served(layout(len(card.resources), card.horizon, card.slots).width, None, load)


def layout(resources: int, horizon: int, slots: int) -> Rows:
    """Return the layout of rows.

    >>> layout(resources=2, horizon=20, slots=10).width
    90
    """
    return Rows(AXES, AXES, T=horizon, R=resources, M=slots, H=resources + 1, A=resources + 2)


def unflatten(rows: FloatArray, cluster: Cluster) -> Observation:
    """Return the observation of some rows [B, N]."""
    count = len(rows)
    fields = layout(len(cluster.capacity), cluster.horizon, cluster.slots).fields(rows)
    fits = room(fields["free"], fields["demand"], fields["duration"])
    return Observation(
        **fields | {"free": fields["free"][:, None], "arrived": fields["arrived"].astype(float)},
        legal=np.any(fits, axis=2, keepdims=True) if cluster.place_ahead else fits[:, :, :1],
        fits_now=fits[:, :, :1],
        capacity=np.tile(np.array(cluster.capacity), (count, 1, 1)),
        nodes=(fields["duration"] > 0).astype(np.int64),
        fits_in=np.zeros(fields["duration"].shape),
        may_idle=fields["since_arrival"] < cluster.stalled_after,
        to_end=np.full(count, np.inf),  # arrivals do not end
        load=np.full(count, np.nan),
    )
