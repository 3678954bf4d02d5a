"""Who fits where, and what starts: slots, machines and the table between them, kept up to date column by column."""

import numpy as np

from pipeline.problems.machines.simulator.compiled.state import State
from pipeline.simulation.compiled import inlined, push


@inlined
def kind_suits(s: State, job: int, k: int) -> bool:
    """Return whether a job may run on machines of this kind."""
    return bool((s.kinds[job] >> np.uint64(s.kind[k])) & np.uint64(1))


@inlined
def can_hold(s: State, b: int, job: int, k: int) -> bool:
    """Return whether a machine could hold a job now."""
    for r in range(s.capacity.shape[1]):
        if s.demand[job, r] > s.free[b, k, r]:
            return False
    return kind_suits(s, job, k)


@inlined
def fits(s: State, b: int, m: int) -> bool:
    """Return whether the job of a slot fits."""
    return bool(s.able[b, m] >= s.nodes[s.slot_job[b, m]])


@inlined
def _fill(s: State, b: int, m: int, job: int) -> None:
    """Put a job into a slot, and look at which machines could hold it."""
    s.slot_job[b, m] = job
    able = 0
    for k in range(s.kind.shape[0]):
        can = can_hold(s, b, job, k)
        s.can[b, m, k] = can
        able += can
    s.able[b, m] = able
    s.fitting[b] += fits(s, b, m)


@inlined
def look_at_machine(s: State, b: int, k: int) -> None:
    """See anew which waiting jobs a machine could hold."""
    for m in range(s.waiting[b]):
        can = can_hold(s, b, s.slot_job[b, m], k)
        if can != s.can[b, m, k]:
            fitted = fits(s, b, m)
            s.can[b, m, k] = can
            s.able[b, m] += 1 if can else -1
            s.fitting[b] += int(fits(s, b, m)) - int(fitted)


@inlined
def enqueue(s: State, b: int, job: int) -> None:
    """Let a job that has arrived wait: in a slot if one is free, else in the backlog."""
    if s.waiting[b] < s.slot_job.shape[1]:
        s.waiting[b] += 1
        _fill(s, b, s.waiting[b] - 1, job)
        return
    if s.behind[b] == 0:
        s.queue[b] = job
    s.behind[b] += 1


@inlined
def leave_backlog(s: State, b: int) -> int:
    """Return the first job of the backlog, which leaves it."""
    job = s.queue[b]
    while not np.isnan(s.start[job]):  # started by backfilling
        job += 1
    s.queue[b] = job + 1
    s.behind[b] -= 1
    return int(job)


@inlined
def take_out(s: State, b: int, m: int) -> int:
    """Return the job of a slot, which leaves it; later ones move up, and the backlog's first fills the last."""
    job = s.slot_job[b, m]
    s.fitting[b] -= fits(s, b, m)
    last = s.waiting[b] - 1
    for i in range(m, last):
        s.slot_job[b, i], s.able[b, i] = s.slot_job[b, i + 1], s.able[b, i + 1]
        for k in range(s.kind.shape[0]):
            s.can[b, i, k] = s.can[b, i + 1, k]
    if s.behind[b] > 0:
        _fill(s, b, last, leave_backlog(s, b))
    else:
        s.slot_job[b, last] = -1
        s.able[b, last] = 0
        for k in range(s.kind.shape[0]):
            s.can[b, last, k] = False
        s.waiting[b] = last
    return int(job)


@inlined
def take(s: State, b: int, job: int, k: int, at: int) -> None:
    """Let a job take what it asks for of a machine; `at` is its place in `held`."""
    for r in range(s.capacity.shape[1]):
        s.free[b, k, r] -= s.demand[job, r]
        s.in_use[b, r] += s.demand[job, r]
    s.held[at] = k
    look_at_machine(s, b, k)


@inlined
def run(s: State, b: int, job: int) -> None:
    """Let a job run that has its machines."""
    s.start[job] = s.now[b]
    s.rank[job] = s.finished[b] + s.runs[b]
    s.ends[job] = s.now[b] + s.duration[job]
    s.estimated[job] = s.now[b] + s.estimate[job]
    push(s.running, s.first[b], s.runs[b], s.ends, s.rank, job)
    s.runs[b] += 1


@inlined
def start(s: State, b: int, job: int, wanted: int) -> None:
    """Start a job that fits, which waits no more, on a machine that can hold it and on the next ones after that."""
    left, at = s.nodes[job], s.held_first[job]
    s.machine[job] = wanted
    for step in range(s.kind.shape[0]):
        k = wanted + step
        if k >= s.kind.shape[0]:
            k -= s.kind.shape[0]
        if can_hold(s, b, job, k):
            take(s, b, job, k, at)
            at += 1
            left -= 1
            if left == 0:
                break
    run(s, b, job)


@inlined
def first_machine(s: State, b: int, job: int, wanted: int) -> int:
    """Return the wanted machine if it can hold a job now, else the lowest that can; -1 where it does not fit."""
    able, lowest = 0, -1
    for k in range(s.kind.shape[0]):
        if can_hold(s, b, job, k):
            able += 1
            if lowest < 0:
                lowest = k
    if able < s.nodes[job]:
        return -1
    return wanted if wanted >= 0 and can_hold(s, b, job, wanted) else lowest
