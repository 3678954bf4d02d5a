"""What a roll-out shows `sets` of an episode: the simulator's own arrays, and a few that it does not keep."""

import numpy as np
from numba import njit

from pipeline.problems.pool.networks.relative import EpisodeArrays, Relative
from pipeline.problems.pool.simulator.compiled.kernels import may_pass
from pipeline.problems.pool.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined


@njit(cache=True)
def arrays_of(s: State, b: int) -> EpisodeArrays:
    """Return one episode of a simulator; `refresh` writes what it does not keep in such arrays."""
    slots, resources = s.slot_demand.shape[1], s.slot_demand.shape[2]
    return EpisodeArrays(
        s.free[b].reshape(1, -1),
        s.head[b : b + 1],
        s.capacity,
        s.slot_duration[b : b + 1],
        s.slot_demand[b : b + 1],
        np.zeros((1, slots), dtype=np.int64),
        s.fits_now[b : b + 1],
        np.zeros(1, dtype=np.int64),
        np.zeros((1, 1 + resources)),
        np.zeros(1, dtype=np.int64),
        s.now[b : b + 1],
        np.zeros((1, 2 + resources)),
        np.zeros(1),
    )


@inlined
def refresh(s: State, rules: Rules, b: int, arrays: EpisodeArrays, observed: Relative, i: int) -> None:
    """Write into the arrays of an episode what has changed since, and what is legal."""
    slots = s.slot_job.shape[1]
    for m in range(slots):
        job = s.slot_job[b, m]
        arrays.waited[0, m] = s.now[b] - s.arrival[job] if job >= 0 else 0
        observed.may[i, m] = s.legal[b, m]
    observed.may[i, slots] = may_pass(s, rules, b)
    queue, to_come = s.queue[b], s.to_come[b]
    waits = queue < to_come
    arrays.backlog[0] = to_come - queue
    arrays.behind[0, 0] = s.requested[queue] if waits else 0
    for r in range(s.capacity.shape[0]):
        arrays.behind[0, 1 + r] = s.demand[queue, r] if waits else 0
    arrays.since[0] = s.now[b] - s.last_arrival[b]
    arrays.to_end[0] = np.inf if rules.arrivals_end < 0 else max(rules.arrivals_end - s.now[b], 0)
    for k in range(s.arrived.shape[1]):
        arrays.arrived[0, k] = s.arrived[to_come, k] - s.arrived[s.first[b], k]
