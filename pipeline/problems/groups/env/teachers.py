"""Rules that share a cluster among its user groups; agents learn from jobsets that are replayed under these rules.

Every rule computes fractional shares; `whole` rounds them to units of the whole cluster. A group's demand is the units
of its running and waiting jobs. All groups serve their queues in the same order, which is tuned on validation jobsets.
Rules that are not used for learning are in `tuning`: a new one there makes no training stale.

`drf` is dominant resource fairness (Ghodsi et al., NSDI 2011, section 4), filled continuously instead of task by task,
and from scratch in every interval.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numba import njit

from pipeline.core.types import BoolArray, FloatArray, IntArray
from pipeline.problems.groups.env.nouns import Controller, Observation, Setting, SharedCluster

Heuristic = Callable[[SharedCluster, int], Controller]  # (cluster, index of an order) -> controller

NEAR = 1e-6  # of a unit or a job: tolerance for the rounding of sums


def equal(cluster: SharedCluster, order: int) -> Controller:
    """Return the controller of equal shares."""
    return fixed(cluster, order, np.ones(cluster.groups))


def fixed(cluster: SharedCluster, order: int, weights: FloatArray | Sequence[float]) -> Controller:
    """Return the controller that shares by constant weights [G] (at least 0)."""
    weight = checked(cluster, weights, zero=True)
    return controller_of(cluster, order, lambda view: np.broadcast_to(weight[:, None], view.used.shape))


def proportional(cluster: SharedCluster, order: int) -> Controller:
    """Return the controller that shares each resource in proportion to demand; equally if there is none."""
    return controller_of(cluster, order, demanded)


def drf(cluster: SharedCluster, order: int, weights: FloatArray | Sequence[float] | None = None) -> Controller:
    """Return the controller of dominant resource fairness; the rest is shared equally.

    Dominant shares rise in proportion to `weights` [G] (above 0; default: equal).
    """
    weight = checked(cluster, np.ones(cluster.groups) if weights is None else weights, zero=False)

    def share(view: Observation) -> FloatArray:
        filled = progressive_filling(demanded(view) / cluster.capacity, weight)
        left = np.maximum(1 - filled.sum(axis=1, keepdims=True), 0)
        return np.asarray((filled + left / cluster.groups) * cluster.capacity)

    return controller_of(cluster, order, share)


def shortest_first(cluster: SharedCluster, order: int) -> Controller:
    """Return the controller that gives units to the queues with the smallest waiting jobs, of any group.

    It mimics an operator who minimizes the mean delay. Groups keep the units of their running jobs. The rest goes to
    the queues in ascending order of the mean work (units times the estimate) of their waiting jobs, for as many whole
    jobs as fit, each with its queue's mean demand. Remaining units are shared in proportion to the unmet demand,
    equally if there is none.
    """

    def share(view: Observation) -> FloatArray:
        jobs = view.waiting.reshape(len(view.now), -1)
        each = np.maximum(jobs, 1)
        mean = view.waiting_demand.reshape(*jobs.shape, -1) / each[:, :, None]
        work = np.where(jobs > 0, view.waiting_work.reshape(jobs.shape) / each, np.inf)
        free = (cluster.capacity - view.used.sum(axis=1)).astype(float)
        fitting = _whole_jobs(free, jobs.astype(np.int64), mean, np.argsort(work, axis=1, kind="stable"))
        kept = view.used + (fitting[:, :, None] * mean).reshape(view.waiting_demand.shape).sum(axis=2)
        left = cluster.capacity - kept.sum(axis=1, keepdims=True)
        short = np.maximum(demanded(view) - kept, 0)
        short = np.where(short.sum(axis=1, keepdims=True) > NEAR, short, 1.0)
        return np.asarray(kept + np.maximum(left, 0) * short / short.sum(axis=1, keepdims=True))

    return controller_of(cluster, order, share)


def demanded(view: Observation) -> FloatArray:
    """Return the demand [B, G, R] of each group: units of its running and waiting jobs."""
    return np.asarray((view.used + view.waiting_demand.sum(axis=2)).astype(float))


def whole(parts: FloatArray, units: IntArray) -> IntArray:
    """Share all units [R] in proportion to parts [B, G, R], by largest remainders; equally if all parts are 0.

    The lowest groups win ties.

    >>> whole(np.array([[[1.0], [1.0], [2.0]]]), np.array([10]))[0, :, 0]
    array([3, 2, 5])
    """
    total = parts.sum(axis=1, keepdims=True)
    exact = np.where(total > 0, parts / np.where(total > 0, total, 1), 1 / parts.shape[1]) * units
    sure = np.floor(exact + NEAR).astype(np.int64)
    missing = units - sure.sum(axis=1, keepdims=True)
    remainder = np.round((exact - sure) / NEAR)  # smaller differences are ties
    first = np.argsort(-remainder, axis=1, kind="stable")
    return np.asarray(sure + (np.argsort(first, axis=1, kind="stable") < missing))


def progressive_filling(wanted: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the shares of groups when all dominant shares have risen together to their limits.

    The share of a group stops when its demand is met, or a resource that it needs is exhausted.

    Args:
        wanted: demands [N, G, R] as shares of the cluster.
        weights: [G] above 0, relative speeds of the dominant shares.

    >>> many = 100 * np.array([[[1 / 9, 4 / 18], [3 / 9, 1 / 18]]])  # tasks of <1 CPU, 4 GB> and <3 CPU, 1 GB>
    >>> np.round(progressive_filling(many, np.ones(2)) * [9, 18], 6)  # the paper: 3 tasks of one user, 2 of the other
    array([[[ 3., 12.],
            [ 6.,  2.]]])
    """
    wanted = np.ascontiguousarray(wanted, dtype=np.float64)
    return np.asarray(wanted * _fill(wanted, wanted.max(axis=2), weights / weights.mean())[:, :, None])


def controller_of(cluster: SharedCluster, order: int, parts: Callable[[Observation], FloatArray]) -> Controller:
    """Return the controller that rounds the parts [B, G, R] of each group to whole units.

    Raises:
        ValueError: there is no such order.
    """
    if not 0 <= order < len(cluster.orders):
        raise ValueError(f"order {order} of the queues; expected 0 to {len(cluster.orders) - 1}")

    def control(view: Observation, _: FloatArray) -> Setting:
        return Setting(whole(parts(view), cluster.capacity), np.full(view.order.shape, order, dtype=np.int64))

    return control


def checked(cluster: SharedCluster, weights: FloatArray | Sequence[float], zero: bool) -> FloatArray:
    """Return weights [G] whose sum is 1.

    Raises:
        ValueError: their number is wrong, or one is negative (or 0, unless `zero`).
    """
    weight = np.asarray(weights, dtype=np.float64)
    good = np.isfinite(weight) & ((weight >= 0) if zero else (weight > 0))
    if weight.shape != (cluster.groups,) or not good.all() or not weight.any():
        kind = "at least 0, and one above" if zero else "above 0"
        raise ValueError(f"weights {weight.tolist()}; expected {cluster.groups} numbers {kind}")
    return np.asarray(weight / weight.sum())


@njit(cache=True)
def _fill(wanted: FloatArray, dominant: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the share [N, G] of each group's demand that is met."""
    count, groups, resources = wanted.shape
    given = np.ones((count, groups))
    for n in range(count):
        free, level = np.ones(resources), 0.0
        rising = dominant[n] > 0
        while rising.any():
            level = _rise(wanted[n], dominant[n], weights, rising, free, level)
            for g in range(groups):
                if rising[g]:
                    given[n, g] = min(1.0, level * weights[g] / dominant[n, g])
                    rising[g] = given[n, g] < 1.0 - 1e-12 and not ((wanted[n, g] > 0) & (free == 0)).any()
    return given


@njit(cache=True)
def _rise(
    wanted: FloatArray, dominant: FloatArray, weights: FloatArray, rising: BoolArray, free: FloatArray, level: float
) -> float:
    """Return the next level at which a group's demand is met or a resource is exhausted; reduce `free` accordingly."""
    pace = np.zeros(len(free))
    until = np.inf
    for g in np.flatnonzero(rising):
        until = min(until, dominant[g] / weights[g])
        for r in range(len(free)):
            pace[r] += wanted[g, r] * (weights[g] / dominant[g])
    lasts = np.full(len(free), np.inf)
    for k in np.flatnonzero(pace):
        lasts[k] = level + free[k] / pace[k]
    until = min(until, float(lasts.min()))
    free -= pace * (until - level)
    free[(lasts <= until) | (free < 1e-12)] = 0.0  # rounding errors would make groups rise forever
    return until


@njit(cache=True)
def _whole_jobs(free: FloatArray, jobs: IntArray, mean: FloatArray, rank: IntArray) -> IntArray:
    """Return how many of each queue's jobs [B, N] fit into the free units [B, R], by queues in the order `rank`."""
    fitting = np.zeros_like(jobs)
    for b in range(len(jobs)):
        for n in rank[b]:
            most = float(jobs[b, n])
            for r in np.flatnonzero(mean[b, n]):
                most = min(most, max(free[b, r], 0.0) / mean[b, n, r] + NEAR)
            fitting[b, n] = int(most)
            free[b] -= fitting[b, n] * mean[b, n]
    return fitting


# Rules that need only the cluster and an order, by their name in params.yaml.
TEACHERS: dict[str, Heuristic] = {
    "equal": equal,
    "proportional": proportional,
    "drf": drf,
    "shortest_first": shortest_first,
}
