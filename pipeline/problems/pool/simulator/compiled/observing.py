"""What a policy sees of `batch`, in compact form: one compiled call for any number of episodes."""

import numpy as np
from numba import njit, prange

from pipeline.core import IntArray
from pipeline.problems.pool.nouns import CompactObservation, cell_type
from pipeline.problems.pool.simulator.compiled.kernels import may_pass
from pipeline.problems.pool.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined


def compact_buffer(state: State, count: int) -> CompactObservation:
    """Return empty arrays for `count` observations."""
    _, steps, resources = state.free.shape
    slots = state.slot_job.shape[1]
    kind = cell_type(max(steps, int(state.capacity.max())))
    return CompactObservation(
        np.empty((count, steps * resources + slots * (1 + resources)), dtype=kind),
        np.empty((count, 2), dtype=np.int32),
        np.empty((count, slots + 1), dtype=np.bool_),
    )


@njit(cache=True, parallel=True)
def observe(s: State, rules: Rules, rows: IntArray, observed: CompactObservation) -> None:
    """Write what `nouns.compact` would return of what each of some episodes shows."""
    free = flat(s)
    for i in prange(rows.shape[0]):
        # A call, for numba takes writes to a tuple's arrays within prange for dead code.
        observe_one(s, rules, free, rows[i], observed, i)


@njit(cache=True)
def flat(s: State) -> IntArray:
    """Return the ring of free units as [B, T * R], not copied."""
    return s.free.reshape(s.free.shape[0], -1)


@inlined
def observe_one(s: State, rules: Rules, free: IntArray, b: int, observed: CompactObservation, i: int) -> None:
    """Write what one episode shows; `free` is `flat(s)`.

    Indices are unsigned, for numba lets signed ones count from the end, and then does not copy by vectors.
    """
    steps, resources = s.free.shape[1], s.free.shape[2]
    slots, head, row = s.slot_job.shape[1], np.uintp(s.head[b] * resources), np.uintp(i)
    rest, b = np.uintp(steps * resources) - head, np.uintp(b)  # type: ignore[assignment]
    for k in range(rest):
        observed.cells[row, k] = free[b, head + k]
    for k in range(head):
        observed.cells[row, rest + k] = free[b, k]
    at = rest + head
    for m in range(np.uintp(slots)):
        observed.cells[row, at] = min(s.slot_duration[b, m], steps)
        for r in range(np.uintp(resources)):
            observed.cells[row, at + np.uintp(1) + r] = s.slot_demand[b, m, r]
        at += np.uintp(1 + resources)
        observed.may[row, m] = s.legal[b, m]
    observed.may[i, slots] = may_pass(s, rules, b)
    observed.rest[i, 0] = s.to_come[b] - s.queue[b]
    observed.rest[i, 1] = s.now[b] - s.last_arrival[b]
