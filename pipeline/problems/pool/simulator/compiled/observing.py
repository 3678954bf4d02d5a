"""What a policy sees of `batched`, in compact form: one compiled call for any number of episodes."""

import numpy as np
from numba import njit, prange

from pipeline.compiled import inlined
from pipeline.core import IntArray
from pipeline.problems.pool.nouns import Seen, cell_type
from pipeline.problems.pool.simulator.compiled.kernels import idle
from pipeline.problems.pool.simulator.compiled.state import Rules, State


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
def look(s: State, rules: Rules, rows: IntArray, seen: Seen) -> None:
    """Write what `core.compact` would return of what each of some episodes shows."""
    free = flat(s)
    for i in prange(rows.shape[0]):
        look_at(
            s, rules, free, rows[i], seen, i
        )  # a call: numba takes writes to a tuple's arrays within prange for dead code


@njit(cache=True)
def flat(s: State) -> IntArray:
    """Return the ring of free units as [B, T * R], not copied."""
    return s.free.reshape(s.free.shape[0], -1)


@inlined
def look_at(s: State, rules: Rules, free: IntArray, b: int, seen: Seen, i: int) -> None:
    """Write what one episode shows; `free` is `flat(s)`.

    Indices are unsigned, for numba lets signed ones count from the end, and then does not copy by vectors.
    """
    steps, resources = s.free.shape[1], s.free.shape[2]
    slots, head, row = s.slot_job.shape[1], np.uintp(s.head[b] * resources), np.uintp(i)
    rest, b = np.uintp(steps * resources) - head, np.uintp(b)  # type: ignore[assignment]
    for k in range(rest):
        seen.cells[row, k] = free[b, head + k]
    for k in range(head):
        seen.cells[row, rest + k] = free[b, k]
    at = rest + head
    for m in range(np.uintp(slots)):
        seen.cells[row, at] = min(s.slot_duration[b, m], steps)
        for r in range(np.uintp(resources)):
            seen.cells[row, at + np.uintp(1) + r] = s.slot_demand[b, m, r]
        at += np.uintp(1 + resources)
        seen.may[row, m] = s.legal[b, m]
    seen.may[i, slots] = not (s.fitting[b] > 0 and idle(s, rules, b))
    seen.rest[i, 0] = s.to_come[b] - s.queue[b]
    seen.rest[i, 1] = s.now[b] - s.last_arrival[b]
