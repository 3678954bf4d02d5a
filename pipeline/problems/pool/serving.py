"""A stored policy of a pooled cluster, asked with rows of numbers.

A row [N] holds free [T * R], demand [M * R], duration [M], waited [M], backlog [1], since_arrival [1],
backlog_head [R + 1], now [1], arrived [2 + R], in that order. What may be placed follows from the rest.
"""

from functools import cache
from pathlib import Path

import numpy as np

from pipeline import storage
from pipeline.config import PoolCard
from pipeline.core import BoolArray, FloatArray, IntArray, Observation
from pipeline.problems.parts import Answering, Served
from pipeline.problems.pool.nouns import Cluster


def served(folder: Path) -> Served:
    """Return what makes a stored policy answer rows with actions: a slot or, last, void."""
    model = storage.read_model(folder, PoolCard)
    card = model.card

    @cache
    def load() -> Answering:
        from pipeline.problems.pool.networks.loading import restore

        loaded = restore(card, model.weights)

        def act(rows: FloatArray, draws: FloatArray) -> IntArray:
            return loaded.policy(unflatten(rows, loaded.cluster), draws)

        return act

    return Served(width(len(card.resources), card.horizon, card.slots), None, load)


def width(resources: int, horizon: int, slots: int) -> int:
    """Return N.

    >>> width(resources=2, horizon=20, slots=10)
    90
    """
    return horizon * resources + slots * (resources + 2) + 2 * resources + 6


def flatten(view: Observation) -> FloatArray:
    """Return the rows [B, N], float32."""
    slots = (view.demand, view.duration, view.waited)
    fields = (view.free, *slots, view.backlog, view.since_arrival, view.backlog_head, view.now, view.arrived)
    columns = [np.asarray(field).reshape(len(view.now), -1) for field in fields]
    return np.concatenate(columns, axis=1).astype(np.float32)


def unflatten(rows: FloatArray, cluster: Cluster) -> Observation:
    """Return the observation of some rows [B, N]."""
    count, resources = len(rows), len(cluster.capacity)
    sizes = (cluster.horizon * resources, cluster.slots * resources, cluster.slots, cluster.slots, 1, 1)
    whole = np.rint(rows).astype(np.int64)
    places = np.cumsum((*sizes, resources + 1, 1))
    free, demand, duration, waited, backlog, since_arrival, head, now, arrived = np.split(whole, places, axis=1)
    free = free.reshape(count, cluster.horizon, resources)
    demand = demand.reshape(count, cluster.slots, resources)
    fits = _fits(free, demand, duration, cluster)
    return Observation(
        free=free[:, None],
        demand=demand,
        duration=duration,
        waited=waited,
        backlog=backlog[:, 0],
        backlog_head=head,
        capacity=np.tile(np.array(cluster.capacity), (count, 1, 1)),
        since_arrival=since_arrival[:, 0],
        legal=np.any(fits, axis=2, keepdims=True) if cluster.place_ahead else fits[:, :, :1],
        fits_now=fits[:, :, :1],
        now=now[:, 0],
        nodes=(duration > 0).astype(np.int64),
        fits_in=np.zeros(duration.shape),
        arrived=arrived.astype(float),
        may_idle=since_arrival[:, 0] < cluster.stalled_after,
        to_end=np.full(count, np.inf),  # a served policy meets a cluster that goes on
    )


def _fits(free: IntArray, demand: IntArray, duration: IntArray, cluster: Cluster) -> BoolArray:
    """Return whether each job [B, M] would fit until it ends if it began in each step [T] of the horizon."""
    short = np.asarray((free[:, None] < demand[:, :, None]).any(axis=3))
    short_before = np.concatenate([np.zeros_like(short[:, :, :1], dtype=np.int64), short.cumsum(axis=2)], axis=2)
    begin = np.arange(cluster.horizon)
    end = begin + duration[:, :, None]
    until = np.take_along_axis(short_before, np.minimum(end, cluster.horizon), axis=2)
    free_throughout = until == short_before[:, :, :-1]
    return np.asarray(free_throughout & (end <= cluster.horizon) & (duration > 0)[:, :, None])
