"""Input phi(s) of a controller's network, with a fixed length for any number of jobs in the queues.

The source does not define its phi; this one is ours. Units are counted in equal shares of the cluster (1 = capacity /
G), work in equal shares times intervals, times in intervals, so that a network knows neither the size of the cluster
nor the number of its groups. Unbounded values enter as log(1 + x).

A state has two parts. `features` do not depend on the units that the group will be given. `amounts` determine the
effect of a number of units on the group: s* of equation 9, the state of a group *when given* these units.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pipeline.core.types import FloatArray
from pipeline.problems.groups.env.nouns import Jobs, Observation, SharedCluster

OF_QUEUE, OF_GROUP, OF_CLUSTER = 9, 4, 2  # features per queue, group, cluster; one per order: is it the present one?
OF_PAST = 3  # number of features of each queue in the training jobsets
OF_LEVEL = 6  # number of features of a level, without one for each queue
MOST_SHARES = 20.0  # more than a group can use


class Shape(NamedTuple):
    """Dimensions of a network's input."""

    queues: int  # Q
    orders: int  # O
    resources: int  # R

    @property
    def features(self) -> int:
        """Number of features of a group."""
        return OF_QUEUE * self.queues + OF_GROUP + self.orders + OF_CLUSTER

    @property
    def past(self) -> int:
        """Number of features of a group in the training jobsets."""
        return OF_PAST * self.queues

    @property
    def amounts(self) -> int:
        """Number of `amounts` of a group."""
        return self.resources * (4 + self.queues)

    @property
    def level(self) -> int:
        """Number of features of a level."""
        return OF_LEVEL + self.queues


class States(NamedTuple):
    """D states of the cluster."""

    features: FloatArray  # [D, G, F]
    amounts: FloatArray  # [D, G, P]  used, releasing, present share, wanted, wanted by the head of each queue; each [R]


def shape_of(cluster: SharedCluster) -> Shape:
    """Return the shape of a cluster's states."""
    return Shape(cluster.queues, len(cluster.orders), len(cluster.capacity))


def states(view: Observation, cluster: SharedCluster) -> States:
    """Return the network's input for B observations."""
    features, amounts = input_of(view, cluster, np)
    return States(features.astype(np.float32), amounts.astype(np.float32))


def input_of(view: Any, cluster: Any, xp: Any) -> tuple[Any, Any]:
    """Return the features and amounts of `States`.

    Args:
        view: an `Observation`, or its fields as tensors of float64.
        cluster: a `SharedCluster`, with its capacity as a tensor of float64 if observations are tensors.
        xp: numpy or torch, which have all functions used here.
    """
    shares, time = cluster.groups / cluster.capacity, cluster.interval
    work = cluster.groups / time
    wanted, heads = view.waiting_demand * shares, view.head_demand * shares
    of_queue = [
        xp.log1p(view.waiting),
        xp.log1p(xp.amax(wanted, axis=-1)),
        xp.log1p(view.waiting_work * work),
        xp.log1p(view.waited / time),
        xp.log1p(view.head_waited / time),
        xp.clip(xp.amax(heads, axis=-1), None, MOST_SHARES),
        xp.log1p(view.head_estimate / time),
        xp.log1p(view.recent_jobs),
        xp.log1p(view.recent_work * work),
    ]
    used, releasing, share = (amount * shares for amount in (view.used, view.releasing, view.share))
    of_group = [
        xp.log1p(view.running),
        xp.clip(xp.amax(used, axis=-1), None, MOST_SHARES),
        xp.log1p(view.left * work),
        xp.clip(xp.amin(share, axis=-1), None, MOST_SHARES),
    ]
    order = xp.ones_like(view.running)[:, :, None] * (view.order[:, :, None] == xp.arange(len(cluster.orders)))
    waits = wanted.sum(axis=2)
    others = xp.amax(waits.sum(axis=1, keepdims=True) - waits, axis=-1) / cluster.groups
    idle = xp.amin(1 - view.used.sum(axis=1, keepdims=True) / cluster.capacity, axis=-1)
    of_cluster = xp.stack([xp.log1p(others), xp.broadcast_to(idle, others.shape)], axis=-1)
    count, groups, queues = view.waiting.shape
    by_queue = xp.stack(of_queue, axis=-1).reshape(count, groups, queues * OF_QUEUE)
    features = xp.concatenate([by_queue, xp.stack(of_group, axis=-1), order, of_cluster], axis=-1)
    flat = heads.reshape(count, groups, queues * len(shares))
    return features, xp.concatenate([used, releasing, share, waits, flat], axis=-1)


def of_levels(shape: Shape, amounts: Tensor, given: Tensor) -> Tensor:
    """Return the features [D, G, L, .] of s*, the groups' states when given some levels.

    Args:
        shape: shape of the states.
        amounts: [D, G, P], as in `States`.
        given: [D, G, L, R] or a shape that can be broadcast to it, in equal shares.
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
    """Return the features [G, .] of each group in training jobsets: each queue's share of the jobs, and its means."""
    every = [jobs for group in jobsets.values() for jobs in group]
    place = np.concatenate([jobs.group * cluster.queues + jobs.queue for jobs in every])

    def summed(value: FloatArray) -> FloatArray:
        found = np.bincount(place, weights=value, minlength=cluster.groups * cluster.queues)
        return np.asarray(found.reshape(cluster.groups, cluster.queues), float)

    number = summed(np.ones(len(place)))
    each = np.maximum(number, 1)
    part = number / np.maximum(number.sum(axis=1, keepdims=True), 1)
    run = np.log1p(summed(np.concatenate([jobs.estimate for jobs in every])) / each / cluster.interval)
    wide = np.concatenate([(jobs.demand / cluster.capacity).max(axis=1) * cluster.groups for jobs in every])
    return np.concatenate([part, run, np.log1p(summed(wide) / each)], axis=1).astype(np.float32)
