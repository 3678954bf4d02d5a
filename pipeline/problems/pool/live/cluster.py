"""A state in steps: what is free in those to come, who waits in slots and behind them, and what a policy sees."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.core import FloatArray, IntArray, Observation
from pipeline.errors import UserError
from pipeline.problems.pool.live.state import PoolState
from pipeline.problems.pool.nouns import Cluster


@dataclass
class PoolNow:
    """A cluster as it is; what is started is taken from it."""

    resources: tuple[str, ...]  # [R]
    cluster: Cluster
    time: int
    last_arrival: int
    free: IntArray  # [T, R]  units in each step to come
    ids: list[str]  # [W]  waiting jobs that can run here, in order of arrival
    demand: IntArray  # [W, R]
    duration: IntArray  # [W]
    arrived: IntArray  # [W]
    slots: list[int | None]  # [M]
    backlog: deque[int]
    so_far: FloatArray | None  # [2 + R]  jobs, duration, duration * demand of all that arrived
    ends: int | None = None  # step by which arrivals end, where that is known

    @property
    def waits(self) -> list[int]:
        """Return the jobs that still wait, in slots and then behind them."""
        return [job for job in self.slots if job is not None] + list(self.backlog)

    def begins(self, job: int) -> int | None:
        """Return the first step, counted from now, from which a job fits until it ends; none in the horizon."""
        duration, steps = int(self.duration[job]), self.cluster.horizon
        short = (self.free < self.demand[job]).any(axis=1)
        for begin in range(steps - duration + 1 if self.cluster.place_ahead else 1):
            if begin + duration <= steps and not short[begin : begin + duration].any():
                return begin
        return None

    def start(self, slot: int, begin: int) -> None:
        """Start the job of a slot; the first of the backlog moves up into it."""
        job = self.slots[slot]
        assert job is not None
        self.free[begin : begin + int(self.duration[job])] -= self.demand[job]
        self.slots[slot] = self.backlog.popleft() if self.backlog else None

    def observe(self) -> Observation:
        """Return what a policy sees [B = 1]."""
        resources, slots = len(self.resources), len(self.slots)
        duration, waited, there = np.zeros((3, 1, slots), dtype=np.int64)
        demand = np.zeros((1, slots, resources), dtype=np.int64)
        fits, legal = np.zeros((2, 1, slots, 1), dtype=np.bool_)
        for slot, job in enumerate(self.slots):
            if job is None:
                continue
            begin = self.begins(job)
            duration[0, slot], demand[0, slot], there[0, slot] = self.duration[job], self.demand[job], 1
            waited[0, slot] = self.time - self.arrived[job]
            legal[0, slot, 0], fits[0, slot, 0] = begin is not None, begin == 0
        head = self.backlog[0] if self.backlog else None
        since = self.time - self.last_arrival
        return Observation(
            free=self.free[None, None].copy(),
            demand=demand,
            duration=duration,
            waited=waited,
            backlog=np.array([len(self.backlog)]),
            backlog_head=np.array(
                [[0] * (1 + resources) if head is None else [self.duration[head], *self.demand[head]]]
            ),
            capacity=np.array([[self.cluster.capacity]]),
            since_arrival=np.array([since]),
            legal=legal,
            fits_now=fits,
            now=np.array([self.time]),
            nodes=there,
            fits_in=np.zeros((1, slots)),
            arrived=np.zeros((1, 2 + resources)) if self.so_far is None else self.so_far[None],
            may_idle=np.array([since < self.cluster.stalled_after]),
            to_end=np.array([math.inf if self.ends is None else float(max(self.ends - self.time, 0))]),
        )


def cluster_now(state: PoolState, own: Mapping[str, int], cluster: Cluster) -> tuple[PoolNow, tuple[str, ...]]:
    """Return a state in steps, and the jobs that the cluster could never run.

    Args:
        state: that is asked about.
        own: the units of the scenario's resources, which the state may do without.
        cluster: the scenario's.

    Raises:
        UserError: running jobs hold what is not there, or start in a step to come where none may.
    """
    here = own if state.resources is None else state.resources
    resources = tuple(own) if set(here) == set(own) else tuple(here)
    cluster = cluster._replace(capacity=tuple(here[name] for name in resources))
    jobs = sorted(state.waiting, key=lambda job: job.arrived)
    demand = np.array([_units(job.demand, resources) for job in jobs], dtype=np.int64).reshape(-1, len(resources))
    known = [all(name in resources or not amount for name, amount in job.demand.items()) for job in jobs]
    can = np.array(known, dtype=np.bool_) & (demand <= cluster.capacity).all(axis=1)
    can &= np.array([job.duration <= cluster.horizon for job in jobs], dtype=np.bool_)
    rows = np.flatnonzero(can)
    fitting, waits = [jobs[row] for row in rows], list(range(len(rows)))
    now = PoolNow(
        resources,
        cluster,
        state.now,
        _last(state),
        _free(state, resources, cluster),
        [job.id for job in fitting],
        demand[rows],
        np.array([job.duration for job in fitting], dtype=np.int64),
        np.array([job.arrived for job in fitting], dtype=np.int64),
        [*waits[: cluster.slots], *[None] * (cluster.slots - len(waits))],
        deque(waits[cluster.slots :]),
        _so_far(state, resources),
        state.arrivals_end,
    )
    return now, tuple(jobs[row].id for row in np.flatnonzero(~can))


def _units(amounts: Mapping[str, int], resources: Sequence[str]) -> list[int]:
    return [amounts.get(name, 0) for name in resources]


def _last(state: PoolState) -> int:
    if state.last_arrival is not None:
        return state.last_arrival
    return max((job.arrived for job in state.waiting), default=state.now)


def _so_far(state: PoolState, resources: Sequence[str]) -> FloatArray | None:
    told = state.so_far
    return None if told is None else np.array([told.jobs, told.duration, *_units(told.work, resources)], dtype=float)


def _free(state: PoolState, resources: tuple[str, ...], cluster: Cluster) -> IntArray:
    """Return what running jobs leave; one that runs for longer than was told seems to end after this step."""
    free = np.tile(np.array(cluster.capacity, dtype=np.int64), (cluster.horizon, 1))
    for job in state.running:
        where = f"running job '{job.id}'"
        for name, amount in job.demand.items():
            if name not in resources and amount:
                raise UserError(f"{where}: there is no '{name}'")
        begin = job.started - state.now
        if begin > 0 and not cluster.place_ahead:
            raise UserError(f"{where} starts at {job.started}, after now, {state.now}")
        free[max(begin, 0) : max(begin + job.duration, 1)] -= _units(job.demand, resources)
    if (free < 0).any():
        step, r = np.argwhere(free < 0)[0]
        units = cluster.capacity[r]
        raise UserError(
            f"step {state.now + step}: running jobs hold {units - free[step, r]} of {resources[r]}; it has {units}"
        )
    return free
