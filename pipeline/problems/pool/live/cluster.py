"""A state of a pooled cluster as one episode of the simulator: what is free in steps to come, and who waits."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.config import Params
from pipeline.core import IntArray
from pipeline.errors import UserError
from pipeline.live.deciding import Now
from pipeline.live.states import amounts, in_order, last_arrival, others
from pipeline.problems.pool.live.state import PoolState
from pipeline.problems.pool.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched

LONGEST = 2**15 - 1  # steps that a running job may have in the simulator; of an older one, the first are left out


@dataclass(frozen=True)
class PoolNow(Now):
    """A live cluster as an episode, whose clock shows 0 where the state's is before it."""

    resources: tuple[str, ...]  # [R]
    cluster: Cluster
    state: PoolState


def from_state(params: Params, scenario: str, state: PoolState) -> PoolNow:
    """Return a state of a scenario's cluster as an episode; raise what `episode_of` does."""
    row = params.pool_scenario(scenario)
    return episode_of(state, row.resources, Cluster.of(row))


def episode_of(state: PoolState, own: Mapping[str, int], cluster: Cluster) -> PoolNow:
    """Return a state as an episode, without the jobs that the cluster could never run.

    Args:
        state: that is asked about.
        own: the units of the scenario's resources, which the state may do without.
        cluster: the scenario's; capacity and the end of arrivals are those of the state.

    Raises:
        UserError: running jobs hold what is not there, or start in a step to come where none may.
    """
    here = own if state.resources is None else state.resources
    resources = in_order([*own], [*here])
    zero, end = min(state.now, 0), state.arrivals_end
    cluster = cluster._replace(
        capacity=tuple(here[name] for name in resources), arrivals_end=None if end is None else max(end - zero, 0)
    )
    jobs = sorted(state.waiting, key=lambda job: job.arrived)
    demand = amounts((job.demand for job in jobs), resources)
    short = [job.duration <= cluster.horizon and not others(job.demand, resources) for job in jobs]
    can = (demand <= cluster.capacity).all(axis=1) & np.array(short, dtype=np.bool_)
    waiting, never = [jobs[k] for k in np.flatnonzero(can)], [jobs[k].id for k in np.flatnonzero(~can)]
    held, free = _held(state, resources, cluster)
    left = _steps(job.started + job.duration - state.now for job in state.running)
    seen = state.now + np.clip(left, 1, cluster.horizon)
    start = np.maximum(_steps(job.started for job in state.running), np.maximum(seen - LONGEST, zero))  # none below 0
    mine = JobSet(
        np.concatenate([start, _steps(job.arrived for job in waiting)]) - zero,
        np.concatenate([np.maximum(seen - start, 1), _steps(job.duration for job in waiting)]),
        np.concatenate([held, demand[can]]),
    )
    arrived, so_far = np.zeros(2 + len(resources)), state.so_far
    if so_far is not None:
        arrived[:] = so_far.jobs, so_far.duration, *(so_far.work.get(name, 0) for name in resources)
    simulator = Batched.under_way(
        batch([mine]),
        cluster,
        start - zero,
        free,
        state.now - zero,
        int(last_arrival(state)) - zero,
        arrived,
    )
    return PoolNow(simulator, [job.id for job in waiting], tuple(never), resources, cluster, state)


def _steps(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)


def _held(state: PoolState, resources: Sequence[str], cluster: Cluster) -> tuple[IntArray, IntArray]:
    """Return what running jobs hold [H, R] and leave [T, R]; one that overruns seems to end after this step."""
    held = amounts((job.demand for job in state.running), resources)
    free = np.tile(np.array(cluster.capacity, dtype=np.int64), (cluster.horizon, 1))
    for job, units in zip(state.running, held, strict=True):
        where = f"running job '{job.id}'"
        for name in others(job.demand, resources):
            raise UserError(f"{where}: there is no '{name}'")
        begin = job.started - state.now
        if begin > 0 and not cluster.place_ahead:
            raise UserError(f"{where} starts at {job.started}, after now, {state.now}")
        free[max(begin, 0) : max(begin + job.duration, 1)] -= units
    if (free < 0).any():
        step, r = np.argwhere(free < 0)[0]
        units = cluster.capacity[r]
        raise UserError(
            f"step {state.now + step}: running jobs hold {units - free[step, r]} of {resources[r]}; it has {units}"
        )
    return held, free
