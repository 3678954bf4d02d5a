"""Who may start, and what starts at a time; b is the episode, x the row that it is played in.

A group is tried only when it may have a job to start: after an event of its own, or, where units may run out, when
units have been given back. Nothing else lets a group start what it could not start before.
"""

from pipeline.problems.groups.simulator.compiled.state import State
from pipeline.simulation.compiled import inlined, push

# What a start must respect: the group's share; what is free of the cluster; both.
SHARE, FREE, BOTH = range(3)


@inlined
def may_run_out(s: State, x: int) -> bool:
    """Return whether the cluster may lack units, until the next setting, for a job that its group's share allows.

    Without borrowing no group uses more than its share, or than it used when that was set.
    """
    for r in range(s.capacity.shape[0]):
        most = 0
        for g in range(s.used.shape[1]):
            most += max(s.used[x, g, r], s.share[x, g, r])
        if most > s.capacity[r]:
            return True
    return False


@inlined
def mark(s: State, x: int, g: int, tried: int) -> int:
    """Let a group be tried beside the `tried` that will be; return how many that makes."""
    if s.marked[x, g]:
        return tried
    s.marked[x, g] = True
    s.tried[x, tried] = g
    return tried + 1


@inlined
def mark_all(s: State, x: int, tried: int) -> int:
    """Let every group be tried of which a job waits."""
    for g in range(s.head.shape[1]):
        for q in range(s.head.shape[2]):
            if s.head[x, g, q] < s.to_come[x]:
                tried = mark(s, x, g, tried)
                break
    return tried


@inlined
def _may_start(s: State, x: int, g: int, job: int, rule: int) -> bool:
    for r in range(s.capacity.shape[0]):
        if rule != SHARE and s.demand[job, r] > s.free[x, r]:
            return False
        if rule != FREE and s.used[x, g, r] + s.demand[job, r] > s.share[x, g, r]:
            return False
    return True


@inlined
def _candidate(s: State, x: int, g: int, rule: int) -> int:
    """Return the job that a group would start next; -1 = none."""
    for place in range(s.head.shape[2]):
        job = s.head[x, g, s.orders[s.order[x, g], place]]
        if job < s.to_come[x] and _may_start(s, x, g, job, rule):
            return int(job)
    return -1


@inlined
def _start(s: State, b: int, x: int, job: int, now: float, by_estimate: bool) -> None:
    g, place = s.group[job], job + s.base[x] - s.first[b]
    s.head[x, g, s.queue[job]] = s.behind[job]
    for r in range(s.capacity.shape[0]):
        s.used[x, g, r] += s.demand[job, r]
        s.free[x, r] -= s.demand[job, r]
    s.start[place] = now
    s.ends[place] = now + (s.estimate[job] if by_estimate else s.duration[job])
    push(s.running, s.base[x], s.runs[x], s.ends, s.rank, place)
    s.runs[x] += 1


@inlined
def charge(s: State, x: int, job: int, begin: float, now: float) -> None:
    """Add to its group's cost what a job's waiting has cost since an interval's begin."""
    s.cost[x, s.group[job]] += s.weight[job] * (now - max(s.arrival[job], begin))


@inlined
def start_each(s: State, b: int, x: int, tried: int, begin: float, now: float, by_estimate: bool) -> None:
    """Start all that the shares allow, group by group: where none of them can take units from another."""
    for k in range(tried):
        g = s.tried[x, k]
        s.marked[x, g] = False
        job = _candidate(s, x, g, SHARE)
        while job >= 0:
            charge(s, x, job, begin, now)
            _start(s, b, x, job, now, by_estimate)
            job = _candidate(s, x, g, SHARE)


@inlined
def start_in_turn(
    s: State, b: int, x: int, tried: int, borrowing: bool, begin: float, now: float, by_estimate: bool
) -> None:
    """Start all groups' own, then what may borrow; of all candidates always the one that arrived first."""
    for turn in range(1 + borrowing):
        rule, able = FREE if turn == 1 else BOTH, 0
        for k in range(tried):
            s.marked[x, s.tried[x, k]] = False
            able = _see(s, x, s.tried[x, k], rule, able)
        while able > 0:
            job = s.candidate[x, 0]
            for k in range(1, able):
                job = min(job, s.candidate[x, k])
            charge(s, x, job, begin, now)
            _start(s, b, x, job, now, by_estimate)
            still = able
            able = 0  # a group that has no candidate gets none: units only become fewer
            for k in range(still):
                able = _see(s, x, s.able[x, k], rule, able)


@inlined
def _see(s: State, x: int, g: int, rule: int, able: int) -> int:
    """Note a group's candidate behind `able` others, if it has one; return how many that makes."""
    job = _candidate(s, x, g, rule)
    if job < 0:
        return able
    s.able[x, able] = g
    s.candidate[x, able] = job
    return able + 1
