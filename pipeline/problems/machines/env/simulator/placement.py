"""Slots, machines, and the table of which fit together; arrivals, starts and ends of jobs."""

import numpy as np

from pipeline.core.types import IntArray
from pipeline.problems.machines.env.simulator.state import Rules, State
from pipeline.simulation.compiled import inlined, pop, push


@inlined
def holds(s: State, job: int, k: int, free: IntArray) -> bool:
    """Return whether a machine with free amounts [R] could hold a job."""
    for r in range(free.shape[0]):
        if s.demand[job, r] > free[r]:
            return False
    return bool((s.kinds[job] >> np.uint64(s.kind[k])) & np.uint64(1))


@inlined
def fits(s: State, b: int, m: int) -> bool:
    """Return whether the job of a slot fits."""
    return bool(s.able[b, m] >= s.nodes[s.slot_job[b, m]])


@inlined
def _fill(s: State, b: int, m: int, job: int) -> None:
    """Put a job into a slot, and determine which machines could hold it."""
    s.slot_job[b, m] = job
    able = 0
    for k in range(s.kind.shape[0]):
        can = holds(s, job, k, s.free[b, k])
        s.can[b, m, k] = can
        able += can
    s.able[b, m] = able
    s.fitting[b] += fits(s, b, m)


@inlined
def _update_column(s: State, b: int, k: int) -> None:
    """Update which waiting jobs a machine could hold."""
    for m in range(s.waiting[b]):
        can = holds(s, s.slot_job[b, m], k, s.free[b, k])
        if can != s.can[b, m, k]:
            fitted = fits(s, b, m)
            s.can[b, m, k] = can
            s.able[b, m] += 1 if can else -1
            s.fitting[b] += int(fits(s, b, m)) - int(fitted)


@inlined
def take_out(s: State, b: int, m: int) -> int:
    """Remove and return the job of a slot; later jobs move up, and the first of the backlog fills the last slot."""
    job = s.slot_job[b, m]
    s.fitting[b] -= fits(s, b, m)
    last = s.waiting[b] - 1
    for i in range(m, last):
        s.slot_job[b, i], s.able[b, i] = s.slot_job[b, i + 1], s.able[b, i + 1]
        for k in range(s.kind.shape[0]):
            s.can[b, i, k] = s.can[b, i + 1, k]
    if s.backlog[b] > 0:
        head = s.queue[b]
        while not np.isnan(s.start[head]):  # started by backfilling
            head += 1
        s.queue[b] = head + 1
        s.backlog[b] -= 1
        _fill(s, b, last, head)
    else:
        s.slot_job[b, last] = -1
        s.able[b, last] = 0
        for k in range(s.kind.shape[0]):
            s.can[b, last, k] = False
        s.waiting[b] = last
    return int(job)


@inlined
def first_machine(s: State, b: int, job: int, wanted: int) -> int:
    """Return the wanted machine if it can hold a job now, else the lowest that can; -1 if the job does not fit."""
    able, lowest = 0, -1
    for k in range(s.kind.shape[0]):
        if holds(s, job, k, s.free[b, k]):
            able += 1
            if lowest < 0:
                lowest = k
    if able < s.nodes[job]:
        return -1
    return wanted if wanted >= 0 and holds(s, job, wanted, s.free[b, wanted]) else lowest


@inlined
def take(s: State, b: int, job: int, k: int, at: int) -> None:
    """Let a job take its demand on a machine; `at` is its place in `held`."""
    for r in range(s.capacity.shape[1]):
        s.free[b, k, r] -= s.demand[job, r]
        s.in_use[b, r] += s.demand[job, r]
    s.held[at] = k
    _update_column(s, b, k)


@inlined
def run(s: State, b: int, job: int) -> None:
    """Run a job that has its machines."""
    s.start[job] = s.now[b]
    s.rank[job] = s.finished[b] + s.runs[b]
    s.ends[job] = s.now[b] + s.duration[job]
    s.estimated[job] = s.now[b] + s.estimate[job]
    push(s.running, s.first[b], s.runs[b], s.ends, s.rank, job)
    s.runs[b] += 1


@inlined
def start(s: State, b: int, job: int, wanted: int) -> None:
    """Start a job that fits and has left the queue, on the wanted machine, which can hold it, and the next that can."""
    left, at = s.nodes[job], s.held_first[job]
    s.machine[job] = wanted
    for step in range(s.kind.shape[0]):
        k = wanted + step
        if k >= s.kind.shape[0]:
            k -= s.kind.shape[0]
        if holds(s, job, k, s.free[b, k]):
            take(s, b, job, k, at)
            at += 1
            left -= 1
            if left == 0:
                break
    run(s, b, job)


@inlined
def next_arrival(s: State, b: int) -> float:
    """Return the time of the next arrival; infinity if there is none."""
    return float(s.arrival[s.to_come[b]]) if s.to_come[b] < s.first[b + 1] else np.inf


@inlined
def next_end(s: State, b: int) -> float:
    """Return the time of the next end of a job; infinity if none runs."""
    return float(s.ends[s.running[s.first[b]]]) if s.runs[b] > 0 else np.inf


@inlined
def arrive(s: State, b: int) -> None:
    """Let the next job arrive and wait: in a slot if one is free, else in the backlog."""
    job = s.to_come[b]
    s.to_come[b] = job + 1
    s.last_arrival[b] = s.arrival[job]
    s.present[b] += 1
    s.rate[b] += s.unit_cost[job]
    if s.waiting[b] < s.slot_job.shape[1]:
        s.waiting[b] += 1
        _fill(s, b, s.waiting[b] - 1, job)
        return
    if s.backlog[b] == 0:
        s.queue[b] = job
    s.backlog[b] += 1


@inlined
def end(s: State, b: int) -> None:
    """End the job that is due first, and release its machines."""
    job = pop(s.running, s.first[b], s.runs[b], s.ends, s.rank)
    s.runs[b] -= 1
    for at in range(s.held_first[job], s.held_first[job + 1]):
        k = s.held[at]
        for r in range(s.capacity.shape[1]):
            s.free[b, k, r] += s.demand[job, r]
            s.in_use[b, r] -= s.demand[job, r]
        _update_column(s, b, k)
    s.finish[job] = s.ends[job]
    s.finished[b] += 1
    s.present[b] -= 1
    s.rate[b] = 0.0 if s.present[b] == 0 else s.rate[b] - s.unit_cost[job]  # so that rounding does not accumulate
    s.done[b] = s.finished[b] == s.first[b + 1] - s.first[b]


@inlined
def _pass_until(s: State, rules: Rules, b: int, until: float) -> bool:
    """Let time pass, up to the limit; return whether it was within the limit: else the episode is over."""
    limit = s.arrival[s.first[b]] + rules.time_limit
    within: bool = until <= limit
    until = until if within else limit
    passed, shares = until - s.now[b], 0.0
    for r in range(s.total.shape[0]):
        shares += s.in_use[b, r] / s.total[r] if s.total[r] > 0 else 0.0
    s.cost[b] += passed * s.rate[b]
    s.busy[b] += passed * (shares / s.total.shape[0])
    s.now[b] = until
    if not within:
        s.done[b] = True
    return within


@inlined
def all_events(s: State, rules: Rules, b: int, pause: float) -> None:
    """Let time pass to the next event, but no longer than a pause, and handle all simultaneous events."""
    until = min(next_arrival(s, b), next_end(s, b), s.now[b] + pause)
    if not _pass_until(s, rules, b, until):
        return
    while next_end(s, b) <= s.now[b]:
        end(s, b)
    while next_arrival(s, b) <= s.now[b]:
        arrive(s, b)


@inlined
def one_event(s: State, rules: Rules, b: int) -> None:
    """Let time pass to the next event and handle only that; an arrival precedes an end at the same time."""
    come, due = next_arrival(s, b), next_end(s, b)
    if not _pass_until(s, rules, b, max(s.now[b], min(come, due))):
        return
    if come <= due:
        arrive(s, b)
    else:
        end(s, b)
