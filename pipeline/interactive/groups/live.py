"""Groups that share a live cluster: the state that a service receives, and the shares that a controller returns.

Groups are identified by their numbers, from 0, as in params.yaml; queues by their names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from pipeline.core.config import GroupsScenario, Params
from pipeline.core.config.records import Frozen, Name
from pipeline.core.types import FloatArray, IntArray, Json
from pipeline.errors import UserError
from pipeline.interactive.groups.scheduling import policy_by_name
from pipeline.interactive.live.deciding import ONLY, Live, RefusedError
from pipeline.interactive.live.states import Amounts, Running, Waiting, at_most, in_the_past
from pipeline.problems.groups.env.evaluation.controllers import Act
from pipeline.problems.groups.env.nouns import RECENT, Jobs, Observation, SharedCluster, batch, equal_shares
from pipeline.problems.groups.env.simulator.batch import GroupsSimulator
from pipeline.problems.groups.env.simulator.knapsack.several import plan
from pipeline.problems.groups.env.workload.source import cluster_of, configurations_of
from pipeline.problems.groups.heuristics.names import REFERENCES

LATEST = 1e12  # in the cluster's time, on either side of 0
MOST_GROUPS, MOST_QUEUES, MOST_ARRIVED = 1000, 64, 20_000
Group = Annotated[int, Field(ge=0, lt=MOST_GROUPS)]
Time = Annotated[float, Field(ge=-LATEST, le=LATEST)]
Length = Annotated[float, Field(ge=1e-6, le=LATEST)]
Units = Annotated[int, Field(ge=0, le=10**6)]
Demand = Amounts[Units]
Number = Annotated[float, Field(ge=0, le=1e15)]
ByQueue = Annotated[dict[Name, Number], at_most(MOST_QUEUES)]


class GroupArrived(Frozen):
    """A job that arrived."""

    group: Group
    queue: Name
    duration: Length  # run time, as far as known
    demand: Demand


class GroupWaiting(GroupArrived):
    """A job that waits in a queue."""

    arrived: Time


class GroupRunning(Frozen):
    """A job that runs."""

    group: Group
    started: Time
    duration: Length
    demand: Demand


class GroupMemory(Frozen):
    """Data of one group from the previous answer, to be returned with the next state."""

    units: Demand
    order: Annotated[tuple[Name, ...], at_most(MOST_QUEUES)]
    recent_jobs: ByQueue  # that arrived in an interval, smoothed
    recent_work: ByQueue


class SharesState(Frozen):
    """State of a cluster at the beginning of an interval."""

    version: Literal[1] = 1
    now: Time
    waiting: Waiting[GroupWaiting]
    running: Running[GroupRunning] = ()
    arrived: Annotated[tuple[GroupArrived, ...], at_most(MOST_ARRIVED)] = ()  # since the previous answer
    memory: Annotated[tuple[GroupMemory, ...], at_most(MOST_GROUPS)] = ()  # from that answer; none: equal shares so far

    @model_validator(mode="after")
    def _all_in_the_past(self) -> "SharesState":
        in_the_past("waiting", self.waiting, "arrived", self.now)
        in_the_past("running", self.running, "started", self.now)
        return self


class GroupShare(Frozen):
    """Share of one group until the next request."""

    units: dict[str, int]
    order: tuple[str, ...]  # of its queues, the first to be served at the head


class SharesDecision(Frozen):
    """Answer of a controller."""

    shares: tuple[GroupShare, ...]  # group by group
    until: float  # when the next request is due: an interval from now
    memory: tuple[GroupMemory, ...]  # to be returned with the next state


def seen(episode: GroupsSimulator, state: SharesState) -> Observation:
    """Return the observation [B = 1] of a state's episode, at the state's time."""
    return episode.observe(ONLY)._replace(now=np.array([state.now]))


def episode_of(state: SharesState, row: GroupsScenario, cluster: SharedCluster) -> GroupsSimulator:
    """Return a state as an episode, whose clock begins at the state's time.

    Raises:
        UserError: the state contains unknown names, or running jobs use more units than there are.
    """
    waiting = _columns(state.waiting, "waiting job", row, cluster)
    running = _columns(state.running, "running job", row, cluster)
    used = running.demand.sum(axis=0)
    for r in np.flatnonzero(used > cluster.capacity):
        raise UserError(f"running jobs hold {used[r]} of {list(row.resources)[r]}; there are {cluster.capacity[r]}")
    by_arrival = np.argsort(waiting.arrival, kind="stable")
    both = Jobs(*(np.concatenate([one, other[by_arrival]]) for one, other in zip(running, waiting, strict=True)))
    here = both._replace(arrival=both.arrival - state.now)
    memory = _memory(state, row, cluster)
    return GroupsSimulator.under_way(batch([here]), cluster, running.arrival - state.now, *memory)


def _units(demand: Mapping[str, int], row: GroupsScenario, where: str) -> list[int]:
    """Return amounts [R]."""
    for name, amount in demand.items():
        if amount and name not in row.resources:
            raise UserError(f"{where}: there is no '{name}'; expected {', '.join(row.resources)}")
    return [demand.get(name, 0) for name in row.resources]


def _queue(name: str, row: GroupsScenario, where: str) -> int:
    """Return a queue's place."""
    if name not in row.queues:
        raise UserError(f"{where}: there is no queue '{name}'; expected {', '.join(row.queues)}")
    return row.queues.index(name)


def _columns(jobs: Sequence[Any], what: str, row: GroupsScenario, cluster: SharedCluster) -> Jobs:
    """Return jobs with their estimated run times; their arrival is when they arrived or started, otherwise 0."""
    where = [f"{what} {k}" for k in range(len(jobs))]
    for job, place in zip(jobs, where, strict=True):
        if job.group >= cluster.groups:
            raise UserError(f"{place}: there is no group {job.group}; expected 0 to {cluster.groups - 1}")
    queue = [_queue(job.queue, row, at) if hasattr(job, "queue") else 0 for job, at in zip(jobs, where, strict=True)]
    units = [_units(job.demand, row, at) for job, at in zip(jobs, where, strict=True)]
    demand = np.array(units, dtype=np.int64).reshape(-1, len(row.resources))
    for k in np.flatnonzero((demand > cluster.capacity).any(axis=1)):
        raise UserError(f"{where[k]} wants {units[k]} units; there are {cluster.capacity.tolist()}")
    begin = np.array([getattr(job, "arrived", getattr(job, "started", 0.0)) for job in jobs], dtype=float)
    lasting = np.array([job.duration for job in jobs], dtype=float)
    group = np.array([job.group for job in jobs], dtype=np.int64)
    return Jobs(begin, lasting, lasting, demand, group, np.array(queue, dtype=np.int64))


def _memory(
    state: SharesState, row: GroupsScenario, cluster: SharedCluster
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return share [G, R], order [G], and recent jobs and work [G, Q] including the arrivals."""
    share, order = equal_shares(cluster), np.zeros(cluster.groups, dtype=np.int64)
    recent, came = np.zeros((2, 2, cluster.groups, cluster.queues))  # of each, jobs and work
    if state.memory and len(state.memory) != cluster.groups:
        raise UserError(f"memory is of {len(state.memory)} groups; expected {cluster.groups}")
    for g, one in enumerate(state.memory):
        where = f"memory of group {g}"
        if one.order not in row.orders:
            raise UserError(f"{where}: order {', '.join(one.order)} is none of the scenario's")
        share[g], order[g] = _units(one.units, row, where), row.orders.index(one.order)
        for table, values in zip(recent, (one.recent_jobs, one.recent_work), strict=True):
            for name, value in values.items():
                table[g, _queue(name, row, where)] = value
    new = _columns(state.arrived, "arrived job", row, cluster)
    np.add.at(came[0], (new.group, new.queue), 1.0)
    np.add.at(came[1], (new.group, new.queue), new.estimate * (new.demand / cluster.capacity).mean(axis=1))
    jobs, work = RECENT * came + (1 - RECENT) * recent
    return share, order, jobs, work


@dataclass(frozen=True)
class Decider:
    """A controller of a scenario's cluster."""

    row: GroupsScenario
    cluster: SharedCluster
    act: Act
    rng: np.random.Generator

    def __call__(self, state: SharesState) -> SharesDecision:
        """Return the controller's answer.

        Raises:
            UserError: the state contradicts itself.
            RefusedError: the answer is not a valid setting.
        """
        row = self.row
        episode = episode_of(state, row, self.cluster)
        view = seen(episode, state)
        shares_of, orders_of = self.act(episode, ONLY, view, self.rng.random(1))
        share, order = shares_of[0], orders_of[0]
        good = (share >= 0).all() and (share <= self.cluster.capacity).all()
        if not good or not ((order >= 0) & (order < len(row.orders))).all():
            raise RefusedError("it sets shares that do not exist")
        memory = tuple(
            GroupMemory(
                units=dict(zip(row.resources, share[g].tolist(), strict=True)),
                order=row.orders[int(order[g])],
                recent_jobs=dict(zip(row.queues, view.recent_jobs[0, g].tolist(), strict=True)),
                recent_work=dict(zip(row.queues, view.recent_work[0, g].tolist(), strict=True)),
            )
            for g in range(len(order))
        )
        shares = tuple(GroupShare(units=one.units, order=one.order) for one in memory)
        return SharesDecision(shares=shares, until=state.now + self.cluster.interval, memory=memory)


def decider(params: Params, scenario: str, name: str, tuned: Mapping[str, float]) -> Decider:
    """Return the decider of a controller: a rule by name, or a model's folder.

    Raises:
        UserError: the controller does not exist, is a model of another cluster, or is only a reference.
    """
    row = params.groups_scenario(scenario)
    if name in REFERENCES:
        raise UserError(f"policy '{name}' is not served: it is no more than a reference")
    act, cluster = policy_by_name(name, params, scenario, tuned), cluster_of(row)
    if Path(name).is_dir():
        # Compile the knapsack now, for the case that all groups want the most: an answer could not wait for it.
        units = configurations_of(row).units
        plan(np.tile(np.arange(len(units), dtype=float), (1, cluster.groups, 1)), units, cluster.capacity)
    return Decider(row, cluster, act, np.random.default_rng(params.seed))


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


LIVE: Live[SharesState, SharesDecision] = Live("shares", SharesState, SharesDecision, example, "equal", decider)
