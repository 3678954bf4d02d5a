"""Copies of decisions to try candidates on: who is tried, what is written of each, and what it comes to."""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from pipeline.core import SHORTEST_BOUNDED, FloatArray, IntArray, KeyArray
from pipeline.problems.machines.lookahead.copying import Coming, begin_again, write_coming, write_known
from pipeline.problems.machines.lookahead.listing import play_list, put_in_order
from pipeline.problems.machines.nouns import GREEDY
from pipeline.problems.machines.simulator.compiled.kernels import advance_episode, awaits
from pipeline.problems.machines.simulator.compiled.placing import take_out
from pipeline.problems.machines.simulator.compiled.rules import Players, decide
from pipeline.problems.machines.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined

SHORTEST = float(SHORTEST_BOUNDED)


class Tries(NamedTuple):
    """The decisions to take, and what candidates come to."""

    rows: IntArray  # [D]  of the episodes
    begin: IntArray  # [D, F]  where in `coming` each future begins
    key: KeyArray  # [D, F]  of the draws of how long jobs run in it
    action: IntArray  # [D, C]  candidates, the base's own first; -1 = no more
    cost: FloatArray  # [D, C, F]  written: sums of bounded slowdowns; beyond the limit of decisions it stays


class Buffers(NamedTuple):
    """What a list of jobs is written to."""

    order: IntArray  # [J] of the copies; [0]: the rule does not go by a list
    score: FloatArray  # [J]


class Limits(NamedTuple):
    """How much is tried for one decision."""

    jobs: int  # that come in each future
    decisions: int  # simulated


@inlined
def _list_candidates(
    t: State, rules: Rules, who: Players, s: State, b: int, coming: Coming, key: np.uint64, action: IntArray, i: int
) -> None:
    """Write what a rule would do, what it would do if that job were not there, and so on; or letting time pass."""
    machines, c = s.kind.shape[0], 0
    begin_again(t, i, s, b, write_known(t, i, s, b, coming, key))
    t.behind[i] = 0  # none moves up into a slot
    first, most = t.first[i] + s.runs[b], action.shape[1]
    for place in range(most):
        action[i, place] = -1
    while c < most and t.waiting[i] > 0 and awaits(t, rules, i):
        chosen = decide(t, rules, i, who)
        job = take_out(t, i, chosen // machines)
        if _is_new(t, job, action, i, c, first):
            action[i, c] = (job - first) * machines + chosen % machines
            c += 1
    if rules.dispatch == GREEDY and c < most and s.runs[b] > 0:
        action[i, c] = s.slot_job.shape[1] * machines


@inlined
def _is_new(t: State, job: int, action: IntArray, i: int, count: int, first: int) -> bool:
    """Return whether no candidate so far asks for the same."""
    for c in range(count):
        other = first + action[i, c] // t.kind.shape[0]
        same = t.estimate[job] == t.estimate[other] and t.nodes[job] == t.nodes[other]
        for r in range(t.demand.shape[1]):
            same = same and t.demand[job, r] == t.demand[other, r]
        if same and t.kinds[job] == t.kinds[other]:
            return False
    return True


@njit(cache=True, parallel=True)
def list_candidates(
    t: State, rules: Rules, who: Players, s: State, rows: IntArray, coming: Coming, key: KeyArray, action: IntArray
) -> None:
    """Write the candidates [D, C] of a rule for decisions in some episodes, each with a copy and a key to play with."""
    for i in prange(rows.shape[0]):
        # All in a function: numba loses what is written here to an array of a tuple.
        _list_candidates(t, rules, who, s, rows[i], coming, key[i], action, int(np.int64(i)))


@inlined
def _slowdown(t: State, first: int, last: int) -> float:
    """Return the sum of bounded slowdowns."""
    total = 0.0
    for j in range(first, last):
        spent = t.start[j] - t.arrival[j] + t.duration[j]
        total += max(spent / max(t.duration[j], SHORTEST), 1.0)
    return total


@inlined
def _count(s: State, tries: Tries, limits: Limits, i: int, f: int) -> int:
    """Return how many candidates of a decision are tried against a future; 0 beyond the limit of decisions."""
    b, there = tries.rows[i], 0
    jobs = s.waiting[b] + s.behind[b] + limits.jobs
    for c in range(tries.action.shape[1]):
        there += tries.action[i, c] >= 0
    count = min(there, limits.decisions // jobs)
    return int(count) if (f + 1) * count * jobs <= limits.decisions else 0


@inlined
def _write(t: State, s: State, coming: Coming, tries: Tries, limits: Limits, e: int, i: int, f: int) -> int:
    """Write the jobs of a copy of decision i against future f; return the place behind the last."""
    known = write_known(t, e, s, tries.rows[i], coming, tries.key[i, f])
    return write_coming(t, e, s, tries.rows[i], coming, tries.begin[i, f], limits.jobs, known)


@njit(cache=True, parallel=True)
def begin_all(t: State, s: State, coming: Coming, tries: Tries, limits: Limits, last: IntArray) -> None:
    """Write a copy for each decision, future and candidate, in that order; those not played get no last job."""
    most, futures = tries.action.shape[1], tries.begin.shape[1]
    for k in prange(last.shape[0]):
        e = int(np.int64(k))
        i, f = e // (most * futures), e // most % futures
        count = _count(s, tries, limits, i, f)
        if e % most < count and count > 1:
            last[e] = _write(t, s, coming, tries, limits, e, i, f)
            begin_again(t, e, s, tries.rows[i], last[e])


@njit(cache=True)
def add_up(t: State, s: State, tries: Tries, last: IntArray) -> None:
    """Write what the candidates came to whose copies were played."""
    most, futures = tries.action.shape[1], tries.begin.shape[1]
    for e in range(last.shape[0]):
        i = e // (most * futures)
        if last[e] > 0:
            first = t.first[e] + s.runs[tries.rows[i]]
            tries.cost[i, e % most, e // most % futures] = _slowdown(t, first, last[e])


@inlined
def _try(
    t: State, rules: Rules, who: Players, s: State, coming: Coming, tries: Tries, limits: Limits, buffers: Buffers,
    e: int,
) -> None:  # fmt: skip
    """Try the candidates of one decision against one future, by the rule's list or move by move."""
    i, f = e // tries.begin.shape[1], e % tries.begin.shape[1]
    b, count, listed = tries.rows[i], _count(s, tries, limits, i, f), buffers.order.shape[0] > 0
    if count < 2:
        return
    last, first = _write(t, s, coming, tries, limits, e, i, f), t.first[e] + s.runs[b]
    if listed:
        put_in_order(t, e, who.rule[e], first, last, buffers.order, buffers.score)
    for c in range(count):
        begin_again(t, e, s, b, last)
        action = tries.action[i, c]
        if listed:
            play_list(t, rules, e, buffers.order, action, first, last)
        else:
            while not t.done[e]:
                advance_episode(t, rules, e, action)
                action = -1 if t.done[e] else decide(t, rules, e, who)
        tries.cost[i, c, f] = _slowdown(t, first, last)


@njit(cache=True, parallel=True)
def try_rule(
    t: State, rules: Rules, who: Players, s: State, coming: Coming, tries: Tries, limits: Limits, buffers: Buffers
) -> None:
    """Write what each candidate comes to under a rule.

    Args:
        t: copies to play on, one for each decision and future at least.
        rules: of the copies: without a limit of time.
        who: plays on in each of them.
        s: the episodes.
        coming: what may come.
        tries: what is tried.
        limits: how much.
        buffers: a place for every job of the copies, if the rule goes by a list.
    """
    for e in prange(tries.rows.shape[0] * tries.begin.shape[1]):
        # All in a function: numba loses what is written here to an array of a tuple.
        _try(t, rules, who, s, coming, tries, limits, buffers, int(np.int64(e)))
