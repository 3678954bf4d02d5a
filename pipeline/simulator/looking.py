"""What a policy sees of `batched`, in compact form: one compiled call for any number of episodes."""

import numpy as np
from numba import njit, prange

from pipeline.compiled import inlined
from pipeline.core import IntArray, Seen, cell_type
from pipeline.simulator.state import State


def room(state: State, count: int) -> Seen:
    """Return empty arrays for `count` observations."""
    _, steps, resources = state.free.shape
    slots = state.slot_job.shape[1]
    kind = cell_type(max(steps, int(state.capacity.max())))
    return Seen(
        np.empty((count, steps * resources + slots * (1 + resources)), dtype=kind),
        np.empty((count, 2), dtype=np.int32),
        np.empty((count, slots + 1), dtype=np.bool_),
    )


@njit(cache=True, parallel=True)
def look(s: State, rows: IntArray, seen: Seen) -> None:
    """Write what `core.compact` would return of what each of some episodes shows."""
    for i in prange(rows.shape[0]):
        look_at(s, rows[i], seen, i)  # a call: numba takes writes to a tuple's arrays within prange for dead code


@inlined
def look_at(s: State, b: int, seen: Seen, i: int) -> None:
    """Write what one episode shows."""
    steps, resources = s.free.shape[1], s.free.shape[2]
    slots = s.slot_job.shape[1]
    idle = True
    for t in range(steps):
        row = s.head[b] + t if s.head[b] + t < steps else s.head[b] + t - steps
        for r in range(resources):
            seen.cells[i, t * resources + r] = s.free[b, row, r]
            idle = idle and s.free[b, row, r] == s.capacity[r]
    for m in range(slots):
        at = steps * resources + m * (1 + resources)
        seen.cells[i, at] = min(s.slot_duration[b, m], steps)
        for r in range(resources):
            seen.cells[i, at + 1 + r] = s.slot_demand[b, m, r]
        seen.may[i, m] = s.legal[b, m]
    seen.may[i, slots] = not (idle and s.fitting[b] > 0)
    seen.rest[i, 0] = s.to_come[b] - s.queue[b]
    seen.rest[i, 1] = s.now[b] - s.last_arrival[b]
