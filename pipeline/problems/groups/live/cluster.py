"""A state of groups in numbers, as a controller sees it; sums are those of the simulator."""

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.core import FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.problems.groups.live.state import GroupArrived, GroupMemory, SharesState
from pipeline.problems.groups.nouns import RECENT, Observation, SharedCluster, equal_shares


class Names:
    """What a scenario calls its resources and queues."""

    def __init__(self, resources: Sequence[str], queues: Sequence[str], orders: Sequence[Sequence[str]]) -> None:
        self.resources, self.queues = tuple(resources), tuple(queues)
        self.orders = tuple(tuple(order) for order in orders)

    def units(self, demand: Mapping[str, int], where: str) -> list[int]:
        """Return amounts [R].

        Raises:
            UserError: of a resource that there is not.
        """
        for name, amount in demand.items():
            if amount and name not in self.resources:
                raise UserError(f"{where}: there is no '{name}'; expected {', '.join(self.resources)}")
        return [demand.get(name, 0) for name in self.resources]

    def queue(self, name: str, where: str) -> int:
        """Return a queue's place.

        Raises:
            UserError: there is no such queue.
        """
        if name not in self.queues:
            raise UserError(f"{where}: there is no queue '{name}'; expected {', '.join(self.queues)}")
        return self.queues.index(name)

    def order(self, queues: Sequence[str], where: str) -> int:
        """Return an order's place.

        Raises:
            UserError: there is no such order.
        """
        if tuple(queues) not in self.orders:
            raise UserError(f"{where}: order {', '.join(queues)} is none of the scenario's")
        return self.orders.index(tuple(queues))


class Waiting:
    """Jobs by group and queue, and what they add up to."""

    def __init__(self, jobs: Sequence[GroupArrived], what: str, names: Names, cluster: SharedCluster) -> None:
        self._size = (cluster.groups, cluster.queues)
        where = [f"{what} {k}" for k in range(len(jobs))]
        for job, place in zip(jobs, where, strict=True):
            must_be_group(job.group, place, cluster)
        self.group = np.array([job.group for job in jobs], dtype=np.int64)
        self.queue = np.array([names.queue(job.queue, at) for job, at in zip(jobs, where, strict=True)], dtype=np.int64)
        units = [names.units(job.demand, at) for job, at in zip(jobs, where, strict=True)]
        self.demand = np.array(units, dtype=np.int64).reshape(-1, len(names.resources))
        self.estimate = np.array([job.duration for job in jobs], dtype=float)
        self.work = self.estimate * (self.demand / cluster.capacity).mean(axis=1)
        wide = np.flatnonzero((self.demand > cluster.capacity).any(axis=1))
        if len(wide):
            raise UserError(
                f"{where[wide[0]]} wants {self.demand[wide[0]].tolist()} units; there are {cluster.capacity.tolist()}"
            )

    def summed(self, value: FloatArray | IntArray) -> FloatArray:
        """Return a value [N] or [N, R] of the jobs, summed [G, Q] or [G, Q, R]."""
        total = np.zeros((*self._size, *value.shape[1:]))
        np.add.at(total, (self.group, self.queue), value)
        return total

    def of_heads(self, arrived: FloatArray, value: FloatArray | IntArray) -> FloatArray:
        """Return a value of the first job of each queue [G, Q] or [G, Q, R]; 0 = nobody waits."""
        found = np.zeros((*self._size, *value.shape[1:]))
        last_first = np.argsort(arrived, kind="stable")[::-1]
        for job in last_first:
            found[self.group[job], self.queue[job]] = value[job]
        return found


def must_be_group(group: int, where: str, cluster: SharedCluster) -> None:
    """Refuse a group that there is not.

    Raises:
        UserError: it is not there.
    """
    if group >= cluster.groups:
        raise UserError(f"{where}: there is no group {group}; expected 0 to {cluster.groups - 1}")


def observed(state: SharesState, names: Names, cluster: SharedCluster) -> Observation:
    """Return what a controller sees [B = 1].

    Raises:
        UserError: the state speaks of what is not there, or running jobs hold more than there is.
    """
    waiting = Waiting(state.waiting, "waiting job", names, cluster)
    arrived = np.array([job.arrived for job in state.waiting], dtype=float)
    waited = state.now - arrived
    share, order, recent_jobs, recent_work = _memory(state, names, cluster)
    running, used, left, releasing = _running(state, names, cluster)
    ones = np.ones(len(arrived))
    return Observation(
        now=np.array([state.now]),
        waiting=waiting.summed(ones)[None].astype(np.int64),
        waiting_demand=waiting.summed(waiting.demand)[None].astype(np.int64),
        waiting_work=waiting.summed(waiting.work)[None],
        waited=waiting.summed(waited)[None],
        head_waited=waiting.of_heads(arrived, waited)[None],
        head_demand=waiting.of_heads(arrived, waiting.demand)[None].astype(np.int64),
        head_estimate=waiting.of_heads(arrived, waiting.estimate)[None],
        running=running[None],
        used=used[None],
        left=left[None],
        releasing=releasing[None],
        recent_jobs=recent_jobs[None],
        recent_work=recent_work[None],
        share=share[None],
        order=order[None],
    )


def _running(
    state: SharesState, names: Names, cluster: SharedCluster
) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Return of each group its running jobs [G], units held [G, R], work left [G], units coming back [G, R]."""
    running, left = np.zeros(cluster.groups, dtype=np.int64), np.zeros(cluster.groups)
    used, releasing = np.zeros((2, cluster.groups, len(names.resources)), dtype=np.int64)
    for k, job in enumerate(state.running):
        where = f"running job {k}"
        must_be_group(job.group, where, cluster)
        units = np.array(names.units(job.demand, where), dtype=np.int64)
        running[job.group] += 1
        used[job.group] += units
        rest = max(job.duration - (state.now - job.started), 0.0)
        left[job.group] += rest * (units / cluster.capacity).mean()
        if job.started + job.duration <= state.now + cluster.interval:
            releasing[job.group] += units
    over = np.flatnonzero(used.sum(axis=0) > cluster.capacity)
    if len(over):
        r = over[0]
        raise UserError(
            f"running jobs hold {used.sum(axis=0)[r]} of {names.resources[r]}; there are {cluster.capacity[r]}"
        )
    return running, used, left, releasing


def _memory(
    state: SharesState, names: Names, cluster: SharedCluster
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return share [G, R], order [G], and recent jobs and work [G, Q], with what arrived mixed in."""
    size = (cluster.groups, cluster.queues)
    share, order = equal_shares(cluster), np.zeros(cluster.groups, dtype=np.int64)
    jobs, work = np.zeros(size), np.zeros(size)
    if state.memory:
        if len(state.memory) != cluster.groups:
            raise UserError(f"memory is of {len(state.memory)} groups; expected {cluster.groups}")
        for g, told in enumerate(state.memory):
            where = f"memory of group {g}"
            share[g], order[g] = names.units(told.units, where), names.order(told.order, where)
            for table, values in ((jobs, told.recent_jobs), (work, told.recent_work)):
                for name, value in values.items():
                    table[g, names.queue(name, where)] = value
    new = Waiting(state.arrived, "arrived job", names, cluster)
    jobs = RECENT * new.summed(np.ones(len(state.arrived))) + (1 - RECENT) * jobs
    work = RECENT * new.summed(new.work) + (1 - RECENT) * work
    return share, order, jobs, work


def remembered(view: Observation, share: IntArray, order: IntArray, names: Names) -> tuple[GroupMemory, ...]:
    """Return what is to be handed back: the shares [G, R] and orders [G] that were set, and what is recent."""
    return tuple(
        GroupMemory(
            units=dict(zip(names.resources, share[g].tolist(), strict=True)),
            order=names.orders[int(order[g])],
            recent_jobs=dict(zip(names.queues, view.recent_jobs[0, g].tolist(), strict=True)),
            recent_work=dict(zip(names.queues, view.recent_work[0, g].tolist(), strict=True)),
        )
        for g in range(len(order))
    )
