"""Groups that share a cluster, at one moment: what a service is asked about them, and how a controller answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.config import GroupsScenario, Params
from pipeline.core import FloatArray, IntArray, Json
from pipeline.errors import UserError
from pipeline.live.deciding import ONLY, Live, RefusedError
from pipeline.problems.groups.evaluation.foresight import Act
from pipeline.problems.groups.heuristics.names import REFERENCES
from pipeline.problems.groups.live.state import GroupMemory, GroupShare, SharesDecision, SharesState
from pipeline.problems.groups.nouns import RECENT, Jobs, Observation, SharedCluster, batch, equal_shares
from pipeline.problems.groups.policies import policy_by_name
from pipeline.problems.groups.simulator.compiled.batch import Groups
from pipeline.problems.groups.simulator.knapsack.several import plan
from pipeline.problems.groups.workload.source import cluster_of, configurations_of


@dataclass(frozen=True)
class Names:
    """What a scenario calls its resources and queues."""

    resources: tuple[str, ...]
    queues: tuple[str, ...]
    orders: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, row: GroupsScenario) -> "Names":
        """Return those of a scenario."""
        return cls(tuple(row.resources), tuple(row.queues), tuple(tuple(order) for order in row.orders))

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


def from_state(params: Params, scenario: str, state: SharesState) -> Groups:
    """Return a state of a scenario's cluster as an episode; raise what `episode_of` does."""
    row = params.groups_scenario(scenario)
    return episode_of(state, Names.of(row), cluster_of(row))


def seen(episode: Groups, state: SharesState) -> Observation:
    """Return what a controller sees [B = 1] of a state's episode, at the state's time."""
    return episode.observe(ONLY)._replace(now=np.array([state.now]))


def episode_of(state: SharesState, names: Names, cluster: SharedCluster) -> Groups:
    """Return a state as an episode, whose clock begins at the state's time.

    Raises:
        UserError: the state speaks of what is not there, or running jobs hold more than there is.
    """
    waiting = _columns(state.waiting, "waiting job", names, cluster)
    running = _columns(state.running, "running job", names, cluster)
    used = running.demand.sum(axis=0)
    for r in np.flatnonzero(used > cluster.capacity):
        raise UserError(f"running jobs hold {used[r]} of {names.resources[r]}; there are {cluster.capacity[r]}")
    by_arrival = np.argsort(waiting.arrival, kind="stable")
    both = Jobs(*(np.concatenate([one, other[by_arrival]]) for one, other in zip(running, waiting, strict=True)))
    here = both._replace(arrival=both.arrival - state.now)
    return Groups.under_way(batch([here]), cluster, running.arrival - state.now, *_memory(state, names, cluster))


def _columns(jobs: Sequence[Any], what: str, names: Names, cluster: SharedCluster) -> Jobs:
    """Return jobs that end as their users say, from when they arrived or started; of those that do neither, from 0."""
    where = [f"{what} {k}" for k in range(len(jobs))]
    for job, place in zip(jobs, where, strict=True):
        if job.group >= cluster.groups:
            raise UserError(f"{place}: there is no group {job.group}; expected 0 to {cluster.groups - 1}")
    queue = [names.queue(job.queue, at) if hasattr(job, "queue") else 0 for job, at in zip(jobs, where, strict=True)]
    units = [names.units(job.demand, at) for job, at in zip(jobs, where, strict=True)]
    demand = np.array(units, dtype=np.int64).reshape(-1, len(names.resources))
    for k in np.flatnonzero((demand > cluster.capacity).any(axis=1)):
        raise UserError(f"{where[k]} wants {units[k]} units; there are {cluster.capacity.tolist()}")
    begin = np.array([getattr(job, "arrived", getattr(job, "started", 0.0)) for job in jobs], dtype=float)
    lasting = np.array([job.duration for job in jobs], dtype=float)
    group = np.array([job.group for job in jobs], dtype=np.int64)
    return Jobs(begin, lasting, lasting, demand, group, np.array(queue, dtype=np.int64))


def _memory(
    state: SharesState, names: Names, cluster: SharedCluster
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return share [G, R], order [G], and recent jobs and work [G, Q], with what arrived mixed in."""
    share, order = equal_shares(cluster), np.zeros(cluster.groups, dtype=np.int64)
    recent, came = np.zeros((2, 2, cluster.groups, cluster.queues))  # of each, jobs and work
    if state.memory and len(state.memory) != cluster.groups:
        raise UserError(f"memory is of {len(state.memory)} groups; expected {cluster.groups}")
    for g, told in enumerate(state.memory):
        where = f"memory of group {g}"
        share[g], order[g] = names.units(told.units, where), names.order(told.order, where)
        for table, values in zip(recent, (told.recent_jobs, told.recent_work), strict=True):
            for name, value in values.items():
                table[g, names.queue(name, where)] = value
    new = _columns(state.arrived, "arrived job", names, cluster)
    np.add.at(came[0], (new.group, new.queue), 1.0)
    np.add.at(came[1], (new.group, new.queue), new.estimate * (new.demand / cluster.capacity).mean(axis=1))
    jobs, work = RECENT * came + (1 - RECENT) * recent
    return share, order, jobs, work


def remembered(view: Observation, share: IntArray, order: IntArray, names: Names) -> tuple[GroupMemory, ...]:
    """Return what the next state is to return: the shares [G, R] and orders [G] now set, and what is recent."""
    return tuple(
        GroupMemory(
            units=dict(zip(names.resources, share[g].tolist(), strict=True)),
            order=names.orders[int(order[g])],
            recent_jobs=dict(zip(names.queues, view.recent_jobs[0, g].tolist(), strict=True)),
            recent_work=dict(zip(names.queues, view.recent_work[0, g].tolist(), strict=True)),
        )
        for g in range(len(order))
    )


@dataclass(frozen=True)
class Decider:
    """A controller of a scenario's cluster."""

    names: Names
    cluster: SharedCluster
    act: Act
    rng: np.random.Generator

    def __call__(self, state: SharesState) -> SharesDecision:
        """Return what the controller wants.

        Raises:
            UserError: the state contradicts itself.
            RefusedError: what it sets cannot be set.
        """
        episode = episode_of(state, self.names, self.cluster)
        view = seen(episode, state)
        shares_of, orders_of = self.act(episode, ONLY, view, self.rng.random(1))
        share, order = shares_of[0], orders_of[0]
        good = (share >= 0).all() and (share <= self.cluster.capacity).all()
        if not good or not ((order >= 0) & (order < len(self.names.orders))).all():
            raise RefusedError("it sets shares that there are not")
        memory = remembered(view, share, order, self.names)
        shares = tuple(GroupShare(units=one.units, order=one.order) for one in memory)
        return SharesDecision(shares=shares, until=state.now + self.cluster.interval, memory=memory)


def decider(params: Params, scenario: str, name: str, tuned: Mapping[str, float]) -> Decider:
    """Return what sets shares as a controller does: a rule by name, or a model's folder.

    Raises:
        UserError: there is none, it is a model of another cluster, or a reference that divides nothing or knows all.
    """
    row = params.groups_scenario(scenario)
    if name in REFERENCES:
        raise UserError(f"policy '{name}' is not served: it is no more than a reference")
    act, cluster = policy_by_name(name, params, scenario, tuned), cluster_of(row)
    if Path(name).is_dir():
        # All groups want the most, once: what is compiled when they first do so takes longer than any answer may.
        units = configurations_of(row).units
        plan(np.tile(np.arange(len(units), dtype=float), (1, cluster.groups, 1)), units, cluster.capacity)
    return Decider(Names.of(row), cluster, act, np.random.default_rng(params.seed))


def example(params: Params, scenario: str) -> Mapping[str, Json]:
    """Return a state of a scenario's cluster: one job runs, and one waits that arrived since the last answer."""
    row = params.groups_scenario(scenario)
    least: dict[str, Json] = dict.fromkeys(row.resources, 1)
    queue = row.queues[0]
    new: dict[str, Json] = {"group": row.groups - 1, "queue": queue, "duration": 0.5 * row.interval, "demand": least}
    return {
        "version": 1,
        "now": 12.0 * row.interval,
        "waiting": [{**new, "arrived": 11.5 * row.interval}],
        "running": [{"group": 0, "started": 11.0 * row.interval, "duration": 2.0 * row.interval, "demand": least}],
        "arrived": [new],
    }


LIVE: Live[SharesState, SharesDecision] = Live(
    "shares", SharesState, SharesDecision, example, "equal", from_state, decider
)
