"""EASY backfilling that is decided anew after every event: the job at the head, its reservation, and who may start.

The order in which others start behind the head is that of arrival (Lifka 1995), or the shortest first as far as is
told of them (EASY-SJBF: Tsafrir, Etsion and Feitelson 2007).
"""

import numpy as np

from pipeline.problems.machines.nouns import EASY_SHORTEST
from pipeline.problems.machines.simulator.compiled.clock import all_events
from pipeline.problems.machines.simulator.compiled.holding import may_start, reserve, start_behind
from pipeline.problems.machines.simulator.compiled.placing import first_machine, start, take_out
from pipeline.problems.machines.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined


@inlined
def start_or_backfill(s: State, rules: Rules, b: int, m: int, k: int) -> None:
    """Start the job of a slot if it fits; else start others that do not delay it, and go on to the next event."""
    head = s.slot_job[b, m]
    place = first_machine(s, b, head, k)
    if place >= 0:
        start(s, b, take_out(s, b, m), place)
        return
    reserved = reserve(s, rules, b, head, k)
    job = _next(s, rules, b, head, -1)
    while job >= 0:
        if may_start(s, rules, b, job, reserved):
            _leave(s, b, job)
            start_behind(s, rules, b, job, reserved)
        job = _next(s, rules, b, head, job)
    all_events(s, rules, b, np.inf)


@inlined
def _leave(s: State, b: int, job: int) -> None:
    """Take a job out of its slot, or out of the backlog."""
    for m in range(s.waiting[b]):
        if s.slot_job[b, m] == job:
            take_out(s, b, m)
            return
    s.behind[b] -= 1


@inlined
def _next(s: State, rules: Rules, b: int, head: int, last: int) -> int:
    """Return which waiting job is looked at behind the last one; -1 = none is left."""
    found = -1
    for m in range(s.waiting[b]):
        found = _nearer(s, rules, s.slot_job[b, m], head, last, found)
    if s.behind[b] > 0:
        for job in range(s.queue[b], s.to_come[b]):
            if np.isnan(s.start[job]):
                found = _nearer(s, rules, job, head, last, found)
    return found


@inlined
def _nearer(s: State, rules: Rules, job: int, head: int, last: int, found: int) -> int:
    if job == head or (last >= 0 and not _before(s, rules, last, job)):
        return found
    return job if found < 0 or _before(s, rules, job, found) else found


@inlined
def _before(s: State, rules: Rules, job: int, other: int) -> bool:
    if rules.dispatch == EASY_SHORTEST and s.estimate[job] != s.estimate[other]:
        return bool(s.estimate[job] < s.estimate[other])
    return job < other
