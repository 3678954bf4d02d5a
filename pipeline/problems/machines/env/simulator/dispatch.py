"""Decisions and dispatch: reservations and backfilling by the estimates of running jobs; many episodes at once.

Blocking dispatch holds back all jobs until the chosen head job fits. With EASY, jobs that do not delay it may start
meanwhile (Lifka 1995; Mu'alem and Feitelson 2001), but here the reservation is computed once. `easy_within` starts only
jobs that end before the reservation: RLScheduler's rule (Zhang et al. 2020). The dynamic variants decide again after
every event; the other jobs start by arrival, or shortest estimate first (EASY-SJBF: Tsafrir, Etsion, Feitelson 2007).
"""

import numpy as np

from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.machines.env.nouns import BLOCKING, EASY_SHORTEST, EASY_WITHIN, GREEDY, SAME_TIME, TOGETHER
from pipeline.problems.machines.env.simulator.placement import (
    all_events,
    arrive,
    first_machine,
    fits,
    holds,
    next_arrival,
    one_event,
    run,
    start,
    take,
    take_out,
)
from pipeline.problems.machines.env.simulator.state import Rules, State
from pipeline.simulation.compiled import Span, inlined, pop, push, threaded


@inlined
def _look_ahead(s: State, rules: Rules, b: int) -> int:
    """Copy the free units to `spare` and order the running jobs by their estimated end; return their number.

    For dispatch in TOGETHER, the estimate of a job that overruns is doubled until its end is after now.
    """
    for k in range(s.kind.shape[0]):
        for r in range(s.capacity.shape[1]):
            s.spare[b, k, r] = s.free[b, k, r]
    if rules.dispatch in TOGETHER:
        for i in range(s.runs[b]):
            job = s.running[s.first[b] + i]
            estimate = s.estimate[job]
            while s.start[job] + estimate <= s.now[b]:
                estimate *= 2.0
            s.estimated[job] = s.start[job] + estimate
    for i in range(s.runs[b]):
        push(s.order, s.first[b], i, s.estimated, s.rank, s.running[s.first[b] + i])
    return int(s.runs[b])


@inlined
def _release(s: State, b: int, job: int, k: int) -> None:
    """Add a job's demand on a machine to `spare`."""
    for r in range(s.capacity.shape[1]):
        s.spare[b, k, r] += s.demand[job, r]


@inlined
def fits_in(s: State, rules: Rules, b: int, times: FloatArray, i: int) -> None:
    """Write for each slot of an episode the time until its job fits; 0 = now, or an empty slot."""
    open_slots = 0
    for m in range(s.slot_job.shape[1]):
        times[i, m] = 0.0
        if m < s.waiting[b] and s.able[b, m] < s.nodes[s.slot_job[b, m]]:
            times[i, m] = s.able[b, m] - s.nodes[s.slot_job[b, m]]  # below 0: minus the machines still missing
            open_slots += 1
    left = _look_ahead(s, rules, b) if open_slots else 0
    while left > 0 and open_slots > 0:
        over = pop(s.order, s.first[b], left, s.estimated, s.rank)
        left -= 1
        for place in range(s.held_first[over], s.held_first[over + 1]):
            k = s.held[place]
            for m in range(s.waiting[b]):
                if times[i, m] < 0.0 and holds(s, s.slot_job[b, m], k, s.spare[b, k]):
                    times[i, m] -= 1.0  # this machine is already counted
            _release(s, b, over, k)
            for m in range(s.waiting[b]):
                if times[i, m] < 0.0 and holds(s, s.slot_job[b, m], k, s.spare[b, k]):
                    times[i, m] += 1.0
                    if times[i, m] == 0.0:
                        times[i, m] = max(s.estimated[over] - s.now[b], 0.0)
                        open_slots -= 1


@inlined
def _fits_spare(s: State, b: int, job: int) -> bool:
    able = 0
    for k in range(s.kind.shape[0]):
        able += holds(s, job, k, s.spare[b, k])
    return bool(able >= s.nodes[job])


@inlined
def reserve(s: State, rules: Rules, b: int, job: int, wanted: int) -> float:
    """Return when a job fits by the estimates; `spare` then holds the units that it will leave free at that time.

    All jobs due by then count as ended. The job takes the wanted machine if that can hold it then, and the next ones.
    """
    at, left = -np.inf, _look_ahead(s, rules, b)
    while left > 0 and (s.estimated[s.order[s.first[b]]] <= at or not _fits_spare(s, b, job)):
        over = pop(s.order, s.first[b], left, s.estimated, s.rank)
        left -= 1
        if s.estimated[over] > at:
            at = max(s.estimated[over], s.now[b])
            at += 0.0 if rules.dispatch == EASY_WITHIN else SAME_TIME * abs(at)
        for place in range(s.held_first[over], s.held_first[over + 1]):
            _release(s, b, over, s.held[place])
    begin, nodes = wanted if holds(s, job, wanted, s.spare[b, wanted]) else 0, s.nodes[job]
    for step in range(s.kind.shape[0]):
        k = begin + step
        if k >= s.kind.shape[0]:
            k -= s.kind.shape[0]
        if nodes > 0 and holds(s, job, k, s.spare[b, k]):
            nodes -= 1
            for r in range(s.capacity.shape[1]):
                s.spare[b, k, r] -= s.demand[job, r]
    return float(at)


@inlined
def _ends_by(s: State, rules: Rules, b: int, job: int, reserved: float) -> bool:
    end = s.now[b] + s.estimate[job]
    return bool(end < reserved or (end == reserved and rules.dispatch != EASY_WITHIN))


@inlined
def _may_start(s: State, rules: Rules, b: int, job: int, reserved: float) -> bool:
    """Return whether a job fits now and, by the estimates, does not delay the reservation."""
    if _ends_by(s, rules, b, job, reserved):
        return first_machine(s, b, job, -1) >= 0
    if rules.dispatch == EASY_WITHIN:
        return False
    able = 0
    for k in range(s.kind.shape[0]):
        able += holds(s, job, k, s.free[b, k]) and holds(s, job, k, s.spare[b, k])
    return bool(able >= s.nodes[job])


@inlined
def _start_early(s: State, rules: Rules, b: int, job: int, reserved: float) -> None:
    """Start a job: anywhere if it ends by the reservation, else on machines with room besides the reservation."""
    if _ends_by(s, rules, b, job, reserved):
        start(s, b, job, first_machine(s, b, job, -1))
        return
    left, at = s.nodes[job], s.held_first[job]
    for k in range(s.kind.shape[0]):
        if left > 0 and holds(s, job, k, s.free[b, k]) and holds(s, job, k, s.spare[b, k]):
            if left == s.nodes[job]:
                s.machine[job] = k
            for r in range(s.capacity.shape[1]):
                s.spare[b, k, r] -= s.demand[job, r]
            take(s, b, job, k, at)
            at += 1
            left -= 1
    run(s, b, job)


@inlined
def backfill(s: State, rules: Rules, b: int, reserved: float) -> None:
    """Start the jobs that do not delay the reservation, in order of arrival."""
    m = 0
    while m < s.waiting[b]:
        job = s.slot_job[b, m]
        if _may_start(s, rules, b, job, reserved):
            take_out(s, b, m)
            _start_early(s, rules, b, job, reserved)
        else:
            m += 1
    if s.backlog[b] > 0:
        for job in range(s.queue[b], s.to_come[b]):
            if np.isnan(s.start[job]) and _may_start(s, rules, b, job, reserved):
                s.backlog[b] -= 1
                _start_early(s, rules, b, job, reserved)


@inlined
def hold(s: State, rules: Rules, b: int, m: int, k: int) -> None:
    """Start the job of a slot as soon as it fits: on machine k if that can hold it, else on the lowest that can."""
    job = take_out(s, b, m)
    place = first_machine(s, b, job, k)
    reserved = -np.inf
    if place < 0 and rules.dispatch != BLOCKING:
        reserved = reserve(s, rules, b, job, k)
    while place < 0:
        if rules.dispatch != BLOCKING:
            backfill(s, rules, b, reserved)
        one_event(s, rules, b)
        if s.done[b]:
            return
        place = first_machine(s, b, job, k)
    start(s, b, job, place)


@inlined
def _precedes(s: State, rules: Rules, job: int, other: int) -> bool:
    if rules.dispatch == EASY_SHORTEST and s.estimate[job] != s.estimate[other]:
        return bool(s.estimate[job] < s.estimate[other])
    return job < other


@inlined
def _nearer(s: State, rules: Rules, job: int, head: int, last: int, found: int) -> int:
    if job == head or (last >= 0 and not _precedes(s, rules, last, job)):
        return found
    return job if found < 0 or _precedes(s, rules, job, found) else found


@inlined
def _next(s: State, rules: Rules, b: int, head: int, last: int) -> int:
    """Return the waiting job that follows `last` in the order of backfilling; -1 = none."""
    found = -1
    for m in range(s.waiting[b]):
        found = _nearer(s, rules, s.slot_job[b, m], head, last, found)
    if s.backlog[b] > 0:
        for job in range(s.queue[b], s.to_come[b]):
            if np.isnan(s.start[job]):
                found = _nearer(s, rules, job, head, last, found)
    return found


@inlined
def _leave(s: State, b: int, job: int) -> None:
    """Remove a job from its slot or from the backlog."""
    for m in range(s.waiting[b]):
        if s.slot_job[b, m] == job:
            take_out(s, b, m)
            return
    s.backlog[b] -= 1


@inlined
def start_or_backfill(s: State, rules: Rules, b: int, m: int, k: int) -> None:
    """Start the job of a slot if it fits; otherwise backfill, and continue to the next event."""
    head = s.slot_job[b, m]
    place = first_machine(s, b, head, k)
    if place >= 0:
        start(s, b, take_out(s, b, m), place)
        return
    reserved = reserve(s, rules, b, head, k)
    job = _next(s, rules, b, head, -1)
    while job >= 0:
        if _may_start(s, rules, b, job, reserved):
            _leave(s, b, job)
            _start_early(s, rules, b, job, reserved)
        job = _next(s, rules, b, head, job)
    all_events(s, rules, b, np.inf)


@inlined
def awaits(s: State, rules: Rules, b: int) -> bool:
    """Return whether an episode awaits a decision."""
    return bool(s.fitting[b] > 0 if rules.dispatch == GREEDY else s.waiting[b] > 0)


@inlined
def _settle(s: State, rules: Rules, b: int) -> None:
    """Continue to the next decision, or to the end of the episode.

    Where only some jobs are measured, it ends once these have started or, as arrivals must continue, with the last one.
    """
    while True:
        if rules.measured > 0:
            last = s.first[b] + rules.measured
            while s.to_start[b] < last and not np.isnan(s.start[s.to_start[b]]):
                s.to_start[b] += 1
            s.done[b] = s.done[b] or s.to_start[b] == last or s.to_come[b] == s.first[b + 1]
        if s.done[b] or awaits(s, rules, b):
            return
        if rules.dispatch in TOGETHER:
            all_events(s, rules, b, np.inf)
        else:
            one_event(s, rules, b)


@inlined
def apply_action(s: State, rules: Rules, b: int, action: int) -> None:
    """Carry out one decision, and continue to the next."""
    machines = s.kind.shape[0]
    m, k = action // machines, action % machines
    there = m < s.waiting[b]
    if rules.dispatch == GREEDY:
        if there and s.can[b, m, k] and fits(s, b, m):
            start(s, b, take_out(s, b, m), k)
        else:
            all_events(s, rules, b, rules.pause)
    else:
        if not (there and holds(s, s.slot_job[b, m], k, s.capacity[k])):  # illegal: take the first legal action
            m, k = 0, 0
            while k < machines and not holds(s, s.slot_job[b, 0], k, s.capacity[k]):
                k += 1
            k = k if k < machines else 0
        if rules.dispatch in TOGETHER:
            start_or_backfill(s, rules, b, m, k)
        else:
            hold(s, rules, b, m, k)
    _settle(s, rules, b)


@inlined
def _begin(s: State, rules: Rules, b: int) -> None:
    s.done[b] = s.first[b] == s.first[b + 1]
    if not s.done[b]:
        arrive(s, b)
        while rules.dispatch in TOGETHER and next_arrival(s, b) <= s.now[b]:
            arrive(s, b)
        _settle(s, rules, b)


@threaded(lambda s, rules: len(s.now))
def begin_all(span: Span, s: State, rules: Rules) -> None:
    """Let the first jobs arrive, and continue to the first decision of every episode."""
    for i in range(*span):
        _begin(s, rules, i)


@threaded(lambda s, rules, rows, *_: len(rows))
def step_rows(span: Span, s: State, rules: Rules, rows: IntArray, actions: IntArray) -> int:
    """Carry out one decision in each of some episodes; return how many of them are over."""
    over = 0
    for i in range(*span):
        apply_action(s, rules, rows[i], actions[i])
        over += s.done[rows[i]]
    return over
