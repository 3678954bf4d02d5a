"""Try each action of a decision in the simulator, and let a network of `sets` play on from it, all of it compiled.

What `trying` does with a rule. The network is asked only where there is a choice, and takes what it likes best.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from pipeline.core import FloatArray, IntArray
from pipeline.problems.pool.networks.compiled_sets import SetBuffer, SetWeights, logits_of, set_buffer
from pipeline.problems.pool.networks.describing import describe
from pipeline.problems.pool.networks.relative import EpisodeArrays, Notes, Relative, arrays_of, notes_for, refresh
from pipeline.problems.pool.simulator.compiled.kernels import _forced_move, carry_out
from pipeline.problems.pool.simulator.compiled.state import Rules, State
from pipeline.problems.pool.simulator.compiled.trying import (
    Futures,
    Limits,
    Seen,
    Tried,
    _begin,
    _cost,
    _waits,
    _write_jobs,
)
from pipeline.simulation.compiled import inlined


class SetPlayer(NamedTuple):
    """A network of `sets` that plays on."""

    weights: SetWeights


@inlined
def _count_arrivals(s: State, b: int, place: int, so_far: FloatArray) -> int:
    """Add the jobs that have arrived since to what is known of all before; return the place behind the last."""
    while place < s.to_come[b]:
        steps = float(s.requested[place])
        so_far[0] += 1.0
        so_far[1] += steps
        for r in range(s.capacity.shape[0]):
            so_far[2 + r] += steps * s.demand[place, r]
        place += 1
    return int(place)


@inlined
def _liked(
    s: State, rules: Rules, b: int, w: SetWeights, arrays: EpisodeArrays, so_far: FloatArray, observed: Relative,
    buffer: SetBuffer, notes: Notes,
) -> int:  # fmt: skip
    """Return the action that the network likes best of those that it may take, the lowest of equals."""
    refresh(s, rules, b, arrays, observed, b)
    for k in range(so_far.shape[0]):
        arrays.arrived[0, k] = so_far[k]
    describe(arrays, 0, observed, b, notes)
    logits_of(w, observed, b, buffer)
    chosen = -1
    for a in range(observed.may.shape[1]):
        if observed.may[b, a] and (chosen < 0 or buffer.logits[a] > buffer.logits[chosen]):
            chosen = a
    return int(chosen)


@njit(cache=True)
def _play(
    s: State, rules: Rules, b: int, action: int, w: SetWeights, known: FloatArray, last: int, end: int,
    observed: Relative, arrays: EpisodeArrays, so_far: FloatArray, buffer: SetBuffer, notes: Notes,
) -> int:  # fmt: skip
    """Carry out an action, and what the network does then, until no job is left to start; return how many choices."""
    count, place = 1, s.to_come[b]
    so_far[:] = known[b]
    while True:
        carry_out(s, rules, b, action)
        if s.now[b] >= end or (s.to_come[b] == last and not _waits(s, b)):
            return count
        action = _forced_move(s, rules, b)
        if action < 0:
            if known[b, 0] > 0.0:  # arrivals are told
                place = _count_arrivals(s, b, place, so_far)
            action = _liked(s, rules, b, w, arrays, so_far, observed, buffer, notes)
            count += 1


@njit(cache=True)
def _try(
    s: State, rules: Rules, b: int, view: Seen, known: FloatArray, w: SetWeights, observed: Relative,
    futures: Futures, chosen: IntArray, limits: Limits, tried: Tried,
) -> None:  # fmt: skip
    """Try the actions of one decision."""
    arrays, buffer, so_far = arrays_of(s, b), set_buffer(w, s.slot_job.shape[1]), np.empty(known.shape[1])
    notes = notes_for(s.slot_job.shape[1], s.capacity.shape[0])
    count, end = 0, view.now[b] + limits.ahead
    for f in range(chosen.shape[1]):
        if count >= limits.decisions:
            break
        last = _write_jobs(s, b, view, b, futures, chosen[b, f], limits)
        for c in range(view.action.shape[1]):
            if view.action[b, c] < 0:
                break
            _begin(s, rules, b, view, b, last)
            action = view.action[b, c]
            count += _play(s, rules, b, action, w, known, last, end, observed, arrays, so_far, buffer, notes)
            _cost(s, b, view.now[b], last, end, tried, b, c, f)
        tried.futures[b] = f + 1


@njit(cache=True, parallel=True)
def try_with_network(
    s: State, rules: Rules, view: Seen, known: FloatArray, w: SetWeights, observed: Relative, futures: Futures,
    chosen: IntArray, limits: Limits, tried: Tried,
) -> None:  # fmt: skip
    """Write what each action costs in each of the futures [D, F'] that were chosen for its decision.

    Args:
        s: a buffer of at least D episodes.
        rules: of the run.
        view: the decisions.
        known: [D, 2 + R], of the jobs that have arrived so far: how many, their steps, and steps times demand.
        w: of the network that plays on.
        observed: a buffer of at least D observations.
        futures: all of them.
        chosen: which each decision is tried against.
        limits: how far; of decisions, only those count that the network is asked for, and the one that is tried.
        tried: written; zeros.
    """
    for i in prange(view.now.shape[0]):
        # All in a function: numba loses what is written here to an array of a tuple.
        _try(s, rules, int(np.int64(i)), view, known, w, observed, futures, chosen, limits, tried)
