"""Trials of candidates in copies of an episode: the candidates, the copies, and their costs.

Where dispatch blocks, a rule whose order of jobs does not change with time plays a list: the first job of the list that
has arrived is the next head job. The list includes the backlog. The result equals the simulator's, about ten times as
fast where many jobs wait, because not all of them are examined at every event.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from pipeline.core.types import SHORTEST_BOUNDED, FloatArray, IntArray, KeyArray
from pipeline.problems.machines.env.nouns import BLOCKING, GREEDY
from pipeline.problems.machines.env.simulator.dispatch import apply_action, awaits, backfill, reserve
from pipeline.problems.machines.env.simulator.placement import (
    end,
    first_machine,
    next_arrival,
    next_end,
    start,
    take_out,
)
from pipeline.problems.machines.env.simulator.rules import RULES, Players, decide, score_state
from pipeline.problems.machines.env.simulator.state import Rules, State
from pipeline.problems.machines.lookahead.futures import PastJobs, reset_copy, write_arrivals, write_known
from pipeline.simulation.compiled import Span, inlined, threaded

SHORTEST = float(SHORTEST_BOUNDED)
LISTED = tuple(RULES[name] for name in ("fcfs", "sjf", "saf", "f1"))  # rules that play a list


class Trials(NamedTuple):
    """The decisions to take, and the costs of candidates."""

    rows: IntArray  # [D]  episodes
    begin: IntArray  # [D, F]  where in the past each future begins
    key: KeyArray  # [D, F]  key of the draws of run times in each future
    action: IntArray  # [D, C]  candidates, the base's own first; -1 = no more
    cost: FloatArray  # [D, C, F]  output: sums of bounded slowdowns; unchanged beyond the limit of decisions
    arrivals: int  # in each future
    decisions: int  # maximum number simulated for one decision


@inlined
def _write_list(t: State, e: int, rule: int, first: int, last: int, order: IntArray, score: FloatArray) -> None:
    """Write the list of jobs [first, last): best score first; of equals, the earliest job first."""
    for j in range(first, last):
        value = score_state(t, e, j, rule, 1.0)
        low, high = first, j
        while low < high:
            middle = (low + high) // 2
            if score[middle] < value:
                high = middle
            else:
                low = middle + 1
        for place in range(j, low, -1):
            order[place], score[place] = order[place - 1], score[place - 1]
        order[low], score[low] = j, value


@inlined
def _event(t: State, e: int) -> None:
    """Let time pass to the next event and handle only that; an arrival precedes an end at the same time."""
    come, due = next_arrival(t, e), next_end(t, e)
    t.now[e] = max(t.now[e], min(come, due))
    if come <= due:
        t.to_come[e] += 1
        t.backlog[e] += 1
    else:
        end(t, e)


@inlined
def _hold(t: State, rules: Rules, e: int, job: int, wanted: int) -> None:
    """Start a job as soon as it fits; backfill meanwhile if dispatch does so."""
    t.backlog[e] -= 1
    t.start[job] = t.now[e]  # so that the job does not belong to the backlog
    place, reserved = first_machine(t, e, job, wanted), -np.inf
    if place < 0 and rules.dispatch != BLOCKING:
        reserved = reserve(t, rules, e, job, wanted)
    while place < 0:
        if rules.dispatch != BLOCKING:
            backfill(t, rules, e, reserved)
        _event(t, e)
        place = first_machine(t, e, job, wanted)
    start(t, e, job, place)


@inlined
def _waits(t: State, e: int, job: int) -> bool:
    return bool(job < t.to_come[e] and np.isnan(t.start[job]))


@inlined
def _play_list(t: State, rules: Rules, e: int, order: IntArray, action: int, first: int, last: int) -> None:
    """Start the job of an action, and then all jobs [first, last) in the list's order."""
    machines, low = t.kind.shape[0], first
    t.queue[e], t.backlog[e], t.waiting[e] = first, t.to_come[e] - first, 0  # all in the backlog: no slots to update
    job, wanted = first + action // machines, action % machines
    while True:
        _hold(t, rules, e, job, wanted)
        while low < last and not np.isnan(t.start[order[low]]):
            low += 1
        if low == last:
            return
        place, wanted = low, 0
        while not _waits(t, e, order[place]):
            place += 1
            if place == last:
                _event(t, e)
                place = low
        job = order[place]


@inlined
def _is_new(t: State, job: int, action: IntArray, i: int, count: int, first: int) -> bool:
    """Return whether a job differs from all candidates so far in estimate, nodes, demand or kinds."""
    for c in range(count):
        other = first + action[i, c] // t.kind.shape[0]
        same = t.estimate[job] == t.estimate[other] and t.nodes[job] == t.nodes[other]
        for r in range(t.demand.shape[1]):
            same = same and t.demand[job, r] == t.demand[other, r]
        if same and t.kinds[job] == t.kinds[other]:
            return False
    return True


@inlined
def _list_candidates(
    t: State, rules: Rules, who: Players, s: State, b: int, past: PastJobs, key: np.uint64, action: IntArray, i: int
) -> None:
    """Write the action of a rule, then its action without that job, and so on; last, void if greedy and jobs run."""
    machines, c = s.kind.shape[0], 0
    reset_copy(t, i, s, b, write_known(t, i, s, b, past, key))
    t.backlog[i] = 0  # so that no job moves up into a slot
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


@threaded(lambda t, rules, who, s, rows, *_: len(rows))
def list_candidates(
    span: Span, t: State, rules: Rules, who: Players, s: State, rows: IntArray, past: PastJobs, key: KeyArray,
    action: IntArray,
) -> None:  # fmt: skip
    """Write the candidates [D, C] of a rule for decisions in some episodes, each with a copy and a key of its own."""
    for i in range(*span):
        _list_candidates(t, rules, who, s, rows[i], past, key[i], action, i)


@inlined
def _slowdown(t: State, first: int, last: int) -> float:
    """Return the sum of the bounded slowdowns of jobs [first, last)."""
    total = 0.0
    for j in range(first, last):
        spent = t.start[j] - t.arrival[j] + t.duration[j]
        total += max(spent / max(t.duration[j], SHORTEST), 1.0)
    return total


@inlined
def _count(s: State, tries: Trials, i: int, f: int) -> int:
    """Return the number of candidates of a decision that are tried in a future; 0 beyond the limit of decisions."""
    b, there = tries.rows[i], 0
    jobs = s.waiting[b] + s.backlog[b] + tries.arrivals
    for c in range(tries.action.shape[1]):
        there += tries.action[i, c] >= 0
    count = min(there, tries.decisions // jobs)
    return int(count) if (f + 1) * count * jobs <= tries.decisions else 0


@inlined
def _write(t: State, s: State, past: PastJobs, tries: Trials, e: int, i: int, f: int) -> int:
    """Write the jobs of a copy of decision i in future f; return the place after the last."""
    known = write_known(t, e, s, tries.rows[i], past, tries.key[i, f])
    return write_arrivals(t, e, s, tries.rows[i], past, tries.begin[i, f], tries.arrivals, known)


@threaded(lambda t, s, past, tries, last: len(last))
def begin_all(span: Span, t: State, s: State, past: PastJobs, tries: Trials, last: IntArray) -> None:
    """Write a copy for each decision, future and candidate, in that order; those not played keep `last` 0."""
    most, futures = tries.action.shape[1], tries.begin.shape[1]
    for e in range(*span):
        i, f = e // (most * futures), e // most % futures
        count = _count(s, tries, i, f)
        if e % most < count and count > 1:
            last[e] = _write(t, s, past, tries, e, i, f)
            reset_copy(t, e, s, tries.rows[i], last[e])


@njit(cache=True)
def write_costs(t: State, s: State, tries: Trials, last: IntArray) -> None:
    """Write the costs of the candidates whose copies were played."""
    most, futures = tries.action.shape[1], tries.begin.shape[1]
    for e in range(last.shape[0]):
        i = e // (most * futures)
        if last[e] > 0:
            first = t.first[e] + s.runs[tries.rows[i]]
            tries.cost[i, e % most, e // most % futures] = _slowdown(t, first, last[e])


@inlined
def _try(
    t: State, rules: Rules, who: Players, s: State, past: PastJobs, tries: Trials, order: IntArray, score: FloatArray,
    e: int,
) -> None:  # fmt: skip
    """Try the candidates of one decision in one future, with the rule's list or decision by decision."""
    i, f = e // tries.begin.shape[1], e % tries.begin.shape[1]
    b, count, listed = tries.rows[i], _count(s, tries, i, f), order.shape[0] > 0
    if count < 2:
        return
    last, first = _write(t, s, past, tries, e, i, f), t.first[e] + s.runs[b]
    if listed:
        _write_list(t, e, who.rule[e], first, last, order, score)
    for c in range(count):
        reset_copy(t, e, s, b, last)
        action = tries.action[i, c]
        if listed:
            _play_list(t, rules, e, order, action, first, last)
        else:
            while not t.done[e]:
                apply_action(t, rules, e, action)
                action = -1 if t.done[e] else decide(t, rules, e, who)
        tries.cost[i, c, f] = _slowdown(t, first, last)


@threaded(lambda t, rules, who, s, past, tries, *_: len(tries.rows) * tries.begin.shape[1])
def try_rule(
    span: Span, t: State, rules: Rules, who: Players, s: State, past: PastJobs, tries: Trials, order: IntArray,
    score: FloatArray,
) -> None:  # fmt: skip
    """Write the cost of each candidate if a rule continues.

    Args:
        span: of the pairs of a decision and a future.
        t: copies, at least one for each decision and future.
        rules: rules of the copies, without a time limit.
        who: players that continue in the copies.
        s: the episodes.
        past: source of arrivals and run times.
        tries: decisions and candidates.
        order: buffer [J] for the jobs of the copies; empty if the rule plays no list.
        score: like `order`.
    """
    for e in range(*span):
        _try(t, rules, who, s, past, tries, order, score, e)
