"""What a controller's network sees: phi(s), of fixed length whatever a group's queues hold.

The source does not say what its phi is; this one is ours. Amounts of units are counted in equal shares of the cluster
(1 = capacity / G), work in equal shares times intervals, times in intervals, so that a network knows neither the size
of the cluster nor the number of its groups. What has no upper bound enters as log(1 + x).

A state is in two parts. `features` does not depend on what the group will be given. `amounts` is what must be known to
say what a number of units would mean to the group: s* of equation 9, the state of a group *when given* these units.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pipeline.core import FloatArray, IntArray
from pipeline.problems.groups.nouns import Jobs, Observation, SharedCluster

OF_QUEUE, OF_GROUP, OF_CLUSTER = 9, 4, 2  # features of `features`; the present order has one more for each order
OF_PAST = 3  # features of each queue in what is known of a group from the training jobsets
OF_LEVEL = 6  # features of a level; and one more for each queue
MOST_SHARES = 20.0  # beyond, a group has more than it could use


class Shape(NamedTuple):
    """What a network knows of the problem that it was trained on."""

    queues: int  # Q
    orders: int  # O
    resources: int  # R

    @property
    def features(self) -> int:
        """Return the features of a group whatever it will be given."""
        return OF_QUEUE * self.queues + OF_GROUP + self.orders + OF_CLUSTER

    @property
    def past(self) -> int:
        """Return the features of a group in the training jobsets."""
        return OF_PAST * self.queues

    @property
    def amounts(self) -> int:
        """Return the numbers that say what a level would mean."""
        return self.resources * (4 + self.queues)

    @property
    def level(self) -> int:
        """Return the features of a level."""
        return OF_LEVEL + self.queues


class States(NamedTuple):
    """D states of the cluster."""

    features: FloatArray  # [D, G, F]
    amounts: FloatArray  # [D, G, P]  used, releasing, present share, wanted, wanted by the head of each queue; each [R]


def shape_of(cluster: SharedCluster) -> Shape:
    """Return the shape of a cluster's states."""
    return Shape(cluster.queues, len(cluster.orders), len(cluster.capacity))


def states(view: Observation, cluster: SharedCluster) -> States:
    """Return what a network sees of B cluster states."""
    shares, time = cluster.groups / cluster.capacity, cluster.interval
    work = cluster.groups / time
    wanted = view.waiting_demand * shares
    of_queue = [
        np.log1p(view.waiting),
        np.log1p(wanted.max(axis=-1)),
        np.log1p(view.waiting_work * work),
        np.log1p(view.waited / time),
        np.log1p(view.head_waited / time),
        np.minimum((view.head_demand * shares).max(axis=-1), MOST_SHARES),
        np.log1p(view.head_estimate / time),
        np.log1p(view.recent_jobs),
        np.log1p(view.recent_work * work),
    ]
    used, releasing, share = (amount * shares for amount in (view.used, view.releasing, view.share))
    of_group = [
        np.log1p(view.running),
        np.minimum(used.max(axis=-1), MOST_SHARES),
        np.log1p(view.left * work),
        np.minimum(share.min(axis=-1), MOST_SHARES),
    ]
    order = view.order[:, :, None] == np.arange(len(cluster.orders))
    waits = wanted.sum(axis=2)
    others = (waits.sum(axis=1, keepdims=True) - waits).max(axis=-1) / cluster.groups
    idle = 1 - view.used.sum(axis=1, keepdims=True) / cluster.capacity
    of_cluster = [np.log1p(others), np.broadcast_to(idle.min(axis=-1), others.shape)]
    parts = [_flat(of_queue), np.stack(of_group, axis=-1), order, np.stack(of_cluster, axis=-1)]
    heads = (view.head_demand * shares).reshape(*waits.shape[:2], -1)
    amounts = np.concatenate([used, releasing, share, waits, heads], axis=-1)
    return States(np.concatenate(parts, axis=-1).astype(np.float32), amounts.astype(np.float32))


def of_levels(shape: Shape, amounts: Tensor, given: Tensor) -> Tensor:
    """Return what some levels would mean to groups: features [D, G, L, .] of s*.

    Args:
        shape: of the states.
        amounts: [D, G, P], of `States`.
        given: [D, G, L, R] or what can be broadcast to it, in equal shares.
    """
    r = shape.resources
    used, releasing, share, wanted = (amounts[:, :, None, k * r : (k + 1) * r] for k in range(4))
    heads = amounts[:, :, 4 * r :].reshape(*amounts.shape[:2], 1, shape.queues, r)
    spare = given - used
    served = (spare.clamp(min=0) / wanted.clamp(min=1e-6)).clamp(max=1)
    features = [
        given.amin(-1).clamp(max=MOST_SHARES),
        spare.amin(-1).clamp(-MOST_SHARES, MOST_SHARES),
        (spare + releasing).amin(-1).clamp(-MOST_SHARES, MOST_SHARES),
        served.amin(-1),
        torch.log1p((wanted - spare.clamp(min=0)).clamp(min=0).amax(-1)),
        (given - share).amin(-1).clamp(-MOST_SHARES, MOST_SHARES),
    ]
    fits = (heads <= spare[:, :, :, None] + 1e-5).all(-1) & (heads > 0).any(-1)
    whole: list[Tensor] = torch.broadcast_tensors(*features)  # type: ignore[no-untyped-call]
    return torch.cat([torch.stack(whole, dim=-1), fits.expand(*whole[0].shape, -1).to(spare.dtype)], dim=-1)


def past(jobsets: Mapping[int, Sequence[Jobs]], cluster: SharedCluster) -> FloatArray:
    """Return what training jobsets tell of each group [G, .]: of each queue, its part of the jobs, and their means."""
    every: Iterable[Jobs] = (jobs for group in jobsets.values() for jobs in group)
    columns = [(jobs.group * cluster.queues + jobs.queue, jobs.estimate, _wide(jobs, cluster)) for jobs in every]
    place, estimate, wide = (np.concatenate(column) for column in zip(*columns, strict=True))
    number = _sum(place, np.ones(len(place)), cluster)
    each = np.maximum(number, 1)
    part = number / np.maximum(number.sum(axis=1, keepdims=True), 1)
    run = np.log1p(_sum(place, estimate, cluster) / each / cluster.interval)
    demand = np.log1p(_sum(place, wide, cluster) / each)
    return np.concatenate([part, run, demand], axis=1).astype(np.float32)


def _wide(jobs: Jobs, cluster: SharedCluster) -> FloatArray:
    widest: FloatArray = (jobs.demand / cluster.capacity).max(axis=1) * cluster.groups
    return widest


def _sum(place: IntArray, value: FloatArray, cluster: SharedCluster) -> FloatArray:
    size = cluster.groups * cluster.queues
    return np.asarray(np.bincount(place, weights=value, minlength=size).reshape(cluster.groups, cluster.queues), float)


def _flat(columns: Sequence[FloatArray]) -> FloatArray:
    stacked = np.stack(columns, axis=-1)  # [B, G, Q, features of a queue]
    return stacked.reshape(*stacked.shape[:2], -1)
