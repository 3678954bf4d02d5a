"""Try each candidate of a decision in the simulator: a rule plays on from it, through what waits and what may come."""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from pipeline.core import SHORTEST_BOUNDED, FloatArray, IntArray, KeyArray
from pipeline.problems.machines.lookahead.copying import Coming, begin_again, write_coming, write_known
from pipeline.problems.machines.lookahead.listing import play_list, put_in_order
from pipeline.problems.machines.nouns import GREEDY
from pipeline.problems.machines.simulator.compiled.kernels import awaits, go_on
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
    action: IntArray  # [D, C]  candidates, the rule's own first; -1 = no more
    cost: FloatArray  # [D, C, F]  written: sums of bounded slowdowns; beyond the limit of decisions it stays
    order: IntArray  # buffer: a place for every job of the copies
    score: FloatArray  # buffer: the same


class Limits(NamedTuple):
    """How much is tried for one decision."""

    jobs: int  # that come in each future
    decisions: int  # simulated


@inlined
def _list_candidates(t: State, rules: Rules, who: Players, s: State, coming: Coming, tries: Tries, i: int) -> None:
    """Write what a rule would do, what it would do if that job were not there, and so on; or letting time pass."""
    b, e, machines, c = tries.rows[i], i * tries.begin.shape[1], s.kind.shape[0], 0
    begin_again(t, e, s, b, write_known(t, e, s, b, coming, tries.key[i, 0]))
    t.behind[e] = 0  # none moves up into a slot
    first, most = t.first[e] + s.runs[b], tries.action.shape[1]
    for place in range(most):
        tries.action[i, place] = -1
    while c < most and t.waiting[e] > 0 and awaits(t, rules, e):
        chosen = decide(t, rules, e, who)
        job = take_out(t, e, chosen // machines)
        if _is_new(t, job, tries, i, c, first):
            tries.action[i, c] = (job - first) * machines + chosen % machines
            c += 1
    if rules.dispatch == GREEDY and c < most and s.runs[b] > 0:
        tries.action[i, c] = s.slot_job.shape[1] * machines


@inlined
def _is_new(t: State, job: int, tries: Tries, i: int, count: int, first: int) -> bool:
    """Return whether no candidate so far asks for the same."""
    for c in range(count):
        other = first + tries.action[i, c] // t.kind.shape[0]
        same = t.estimate[job] == t.estimate[other] and t.nodes[job] == t.nodes[other]
        for r in range(t.demand.shape[1]):
            same = same and t.demand[job, r] == t.demand[other, r]
        if same and t.kinds[job] == t.kinds[other]:
            return False
    return True


@njit(cache=True, parallel=True)
def list_candidates(t: State, rules: Rules, who: Players, s: State, coming: Coming, tries: Tries) -> None:
    """Write the candidates of decisions."""
    for i in prange(tries.rows.shape[0]):
        # All in a function: numba loses what is written here to an array of a tuple.
        _list_candidates(t, rules, who, s, coming, tries, int(np.int64(i)))


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
def _try(t: State, rules: Rules, who: Players, s: State, coming: Coming, tries: Tries, limits: Limits, e: int) -> None:
    """Try the candidates of one decision against one future, move by move."""
    i, f = e // tries.begin.shape[1], e % tries.begin.shape[1]
    b, count = tries.rows[i], _count(s, tries, limits, i, f)
    if count < 2:
        return
    known = write_known(t, e, s, b, coming, tries.key[i, f])
    last = write_coming(t, e, s, b, coming, tries.begin[i, f], limits.jobs, known)
    for c in range(count):
        begin_again(t, e, s, b, last)
        action = tries.action[i, c]
        while not t.done[e]:
            go_on(t, rules, e, action)
            action = -1 if t.done[e] else decide(t, rules, e, who)
        tries.cost[i, c, f] = _slowdown(t, t.first[e] + s.runs[b], last)


@inlined
def _try_list(
    t: State, rules: Rules, who: Players, s: State, coming: Coming, tries: Tries, limits: Limits, e: int
) -> None:
    """Try the candidates of one decision against one future, by the rule's list."""
    i, f = e // tries.begin.shape[1], e % tries.begin.shape[1]
    b, count = tries.rows[i], _count(s, tries, limits, i, f)
    if count < 2:
        return
    known = write_known(t, e, s, b, coming, tries.key[i, f])
    last = write_coming(t, e, s, b, coming, tries.begin[i, f], limits.jobs, known)
    first = t.first[e] + s.runs[b]
    put_in_order(t, e, who.rule[e], first, last, tries.order, tries.score)
    for c in range(count):
        begin_again(t, e, s, b, last)
        play_list(t, rules, e, tries.order, tries.action[i, c], first, last)
        tries.cost[i, c, f] = _slowdown(t, first, last)


@njit(cache=True, parallel=True)
def try_moves(t: State, rules: Rules, who: Players, s: State, coming: Coming, tries: Tries, limits: Limits) -> None:
    """Write what each candidate comes to.

    Args:
        t: copies to play on, one for each decision and future at least.
        rules: of the copies: without a limit of time.
        who: plays on in each of them.
        s: the episodes.
        coming: what may come.
        tries: what is tried.
        limits: how much.
    """
    for e in prange(tries.rows.shape[0] * tries.begin.shape[1]):
        # All in a function: numba loses what is written here to an array of a tuple.
        _try(t, rules, who, s, coming, tries, limits, int(np.int64(e)))


@njit(cache=True, parallel=True)
def try_lists(t: State, rules: Rules, who: Players, s: State, coming: Coming, tries: Tries, limits: Limits) -> None:
    """Do as `try_moves`, under rules that go by a list."""
    for e in prange(tries.rows.shape[0] * tries.begin.shape[1]):
        _try_list(t, rules, who, s, coming, tries, limits, int(np.int64(e)))
