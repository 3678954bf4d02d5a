"""Blocking dispatch: the chosen job holds the head until it fits; with EASY, others are started behind it meanwhile.

EASY backfilling: Lifka 1995; Mu'alem and Feitelson 2001; but the reservation is computed once. `easy_within` starts
only jobs that end before the reservation: RLScheduler's rule (Zhang et al. 2020).
"""

import numpy as np

from pipeline.problems.machines.nouns import BLOCKING, EASY_WITHIN, SAME_TIME
from pipeline.problems.machines.simulator.compiled.ahead import first_end, give_back, holds_spare, look_ahead, next_over
from pipeline.problems.machines.simulator.compiled.placing import (
    can_hold,
    enqueue,
    first_machine,
    look_at_machine,
    run,
    start,
    take,
    take_out,
)
from pipeline.problems.machines.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined, pop


@inlined
def next_arrival(s: State, b: int) -> float:
    """Return when the next job arrives; infinity if none does."""
    return float(s.arrival[s.to_come[b]]) if s.to_come[b] < s.first[b + 1] else np.inf


@inlined
def next_end(s: State, b: int) -> float:
    """Return when the next running job ends; infinity if none runs."""
    return float(s.ends[s.running[s.first[b]]]) if s.runs[b] > 0 else np.inf


@inlined
def _pass(s: State, b: int, until: float) -> None:
    passed = until - s.now[b]
    shares = 0.0
    for r in range(s.total.shape[0]):
        shares += s.in_use[b, r] / s.total[r] if s.total[r] > 0 else 0.0
    s.cost[b] += passed * s.rate[b]
    s.busy[b] += passed * (shares / s.total.shape[0])
    s.now[b] = until


@inlined
def pass_until(s: State, rules: Rules, b: int, until: float) -> bool:
    """Let time pass; if it would pass beyond the limit, to the limit only: the episode is over, and False returned."""
    limit = s.arrival[s.first[b]] + rules.time_limit
    if until > limit:
        _pass(s, b, limit)
        s.done[b] = True
        return False
    _pass(s, b, until)
    return True


@inlined
def arrive(s: State, b: int) -> None:
    """Let the next job arrive."""
    job = s.to_come[b]
    s.to_come[b] = job + 1
    s.last_arrival[b] = s.arrival[job]
    s.present[b] += 1
    s.rate[b] += s.unit_cost[job]
    enqueue(s, b, job)


@inlined
def end(s: State, b: int) -> None:
    """Let the job that ends first give back what it holds."""
    job = pop(s.running, s.first[b], s.runs[b], s.ends, s.rank)
    s.runs[b] -= 1
    for at in range(s.held_first[job], s.held_first[job + 1]):
        k = s.held[at]
        for r in range(s.capacity.shape[1]):
            s.free[b, k, r] += s.demand[job, r]
            s.in_use[b, r] -= s.demand[job, r]
        look_at_machine(s, b, k)
    s.finish[job] = s.ends[job]
    s.finished[b] += 1
    s.present[b] -= 1
    s.rate[b] = 0.0 if s.present[b] == 0 else s.rate[b] - s.unit_cost[job]  # so that rounding does not pile up for ever
    s.done[b] = s.finished[b] == s.first[b + 1] - s.first[b]


@inlined
def all_events(s: State, rules: Rules, b: int, pause: float) -> None:
    """Let time pass to the next event, but for a pause at most, and handle all that happens then."""
    until = min(next_arrival(s, b), next_end(s, b), s.now[b] + pause)
    if not pass_until(s, rules, b, until):
        return
    while next_end(s, b) <= s.now[b]:
        end(s, b)
    while next_arrival(s, b) <= s.now[b]:
        arrive(s, b)


@inlined
def one_event(s: State, rules: Rules, b: int) -> None:
    """Let time pass to the next event and handle it alone; an arrival comes before an end of the same time."""
    come, go = next_arrival(s, b), next_end(s, b)
    if not pass_until(s, rules, b, max(s.now[b], min(come, go))):
        return
    if come <= go:
        arrive(s, b)
    else:
        end(s, b)


@inlined
def hold(s: State, rules: Rules, b: int, m: int, k: int) -> None:
    """Start the job of a slot as soon as it fits: on machine k if that can hold it then, else on the lowest."""
    job = take_out(s, b, m)
    place = first_machine(s, b, job, k)
    reserved = -np.inf
    if place < 0 and rules.dispatch != BLOCKING:
        reserved = reserve(s, rules, b, job, k)
    while place < 0:
        if rules.dispatch != BLOCKING:
            _backfill(s, rules, b, reserved)
        one_event(s, rules, b)
        if s.done[b]:
            return
        place = first_machine(s, b, job, k)
    start(s, b, job, place)


@inlined
def _spare_machines(s: State, b: int, job: int) -> int:
    able = 0
    for k in range(s.kind.shape[0]):
        able += holds_spare(s, b, job, k)
    return able


@inlined
def reserve(s: State, rules: Rules, b: int, job: int, wanted: int) -> float:
    """Return when a job fits by the estimates; `spare` then holds what is free besides when all have ended by then."""
    at, left = -np.inf, look_ahead(s, rules, b)
    while left > 0 and (first_end(s, b) <= at or _spare_machines(s, b, job) < s.nodes[job]):
        end, over = first_end(s, b), next_over(s, b, left)
        left -= 1
        if end > at:
            at = max(end, s.now[b])
            at += 0.0 if rules.dispatch == EASY_WITHIN else SAME_TIME * abs(at)
        for place in range(s.held_first[over], s.held_first[over + 1]):
            give_back(s, b, over, s.held[place])
    _take_spare(s, b, job, wanted)
    return float(at)


@inlined
def _take_spare(s: State, b: int, job: int, wanted: int) -> None:
    begin, left = wanted, s.nodes[job]
    if not holds_spare(s, b, job, wanted):
        begin = 0
    for step in range(s.kind.shape[0]):
        k = begin + step
        if k >= s.kind.shape[0]:
            k -= s.kind.shape[0]
        if left > 0 and holds_spare(s, b, job, k):
            left -= 1
            for r in range(s.capacity.shape[1]):
                s.spare[b, k, r] -= s.demand[job, r]


@inlined
def _backfill(s: State, rules: Rules, b: int, reserved: float) -> None:
    """Start what does not delay the reservation, in order of arrival."""
    m = 0
    while m < s.waiting[b]:
        job = s.slot_job[b, m]
        if may_start(s, rules, b, job, reserved):
            take_out(s, b, m)
            start_behind(s, rules, b, job, reserved)
        else:
            m += 1
    if s.behind[b] > 0:
        for job in range(s.queue[b], s.to_come[b]):
            if np.isnan(s.start[job]) and may_start(s, rules, b, job, reserved):
                s.behind[b] -= 1
                start_behind(s, rules, b, job, reserved)


@inlined
def may_start(s: State, rules: Rules, b: int, job: int, reserved: float) -> bool:
    """Return whether a job fits now and does not delay the reservation, as far as estimates say."""
    if _ends_by(s, rules, b, job, reserved):
        return first_machine(s, b, job, -1) >= 0
    if rules.dispatch == EASY_WITHIN:
        return False
    able = 0
    for k in range(s.kind.shape[0]):
        able += can_hold(s, b, job, k) and holds_spare(s, b, job, k)
    return bool(able >= s.nodes[job])


@inlined
def _ends_by(s: State, rules: Rules, b: int, job: int, reserved: float) -> bool:
    end = s.now[b] + s.estimate[job]
    return bool(end < reserved or (end == reserved and rules.dispatch != EASY_WITHIN))


@inlined
def start_behind(s: State, rules: Rules, b: int, job: int, reserved: float) -> None:
    """Start a job that may start: before the reservation, or beside it."""
    if _ends_by(s, rules, b, job, reserved):
        start(s, b, job, first_machine(s, b, job, -1))
        return
    _start_beside(s, b, job)


@inlined
def _start_beside(s: State, b: int, job: int) -> None:
    """Start a job on machines that can hold it now and beside the reservation."""
    left, at = s.nodes[job], s.held_first[job]
    for k in range(s.kind.shape[0]):
        if left > 0 and can_hold(s, b, job, k) and holds_spare(s, b, job, k):
            if left == s.nodes[job]:
                s.machine[job] = k
            for r in range(s.capacity.shape[1]):
                s.spare[b, k, r] -= s.demand[job, r]
            take(s, b, job, k, at)
            at += 1
            left -= 1
    run(s, b, job)
