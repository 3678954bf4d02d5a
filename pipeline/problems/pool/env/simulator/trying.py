"""Try each action of a decision in the simulator: a rule continues after it, in the same futures for all actions.

A decision starts from an observation. That shows only the first job and the length of the backlog, and no future jobs:
the missing jobs are taken from the futures. Jobs run for as long as requested.
"""

from typing import NamedTuple

import numpy as np

from pipeline.core.types import FloatArray, IntArray, Observation
from pipeline.problems.pool.env.nouns import Cluster, JobBatch
from pipeline.problems.pool.env.simulator.dynamics import update_fits
from pipeline.problems.pool.env.simulator.kernels import carry_out
from pipeline.problems.pool.env.simulator.rules import Players, decide
from pipeline.problems.pool.env.simulator.state import Rules, State, empty_state
from pipeline.simulation.compiled import Span, inlined, threaded

NEVER = np.iinfo(np.int64).max // 4  # arrival of the unused jobs of an episode


class Seen(NamedTuple):
    """The decisions to take: the parts of D observations that the simulator starts from."""

    load: FloatArray  # [D]  percent; nan = unknown
    arrived: FloatArray  # [D, 2 + R]  see `Observation.arrived`
    free: IntArray  # [D, T, R]
    duration: IntArray  # [D, M]  0 = empty slot
    demand: IntArray  # [D, M, R]
    waited: IntArray  # [D, M]
    backlog: IntArray  # [D]
    head: IntArray  # [D, 1 + R]  duration and demand of the first job of the backlog
    now: IntArray  # [D]
    since: IntArray  # [D]  number of steps since the last arrival
    action: IntArray  # [D, C]  actions to try; -1 = no more


class Futures(NamedTuple):
    """Possible future jobs, end to end; jobset f owns the jobs first[f] : first[f + 1]."""

    first: IntArray  # [F + 1]
    arrival: IntArray  # [J]  in order; steps, absolute or counted from the next step
    duration: IntArray  # [J]
    demand: IntArray  # [J, R]


class Limits(NamedTuple):
    """Limits of a trial."""

    from_now: bool  # are arrivals of the futures counted from the next step?
    ahead: int  # steps; later arrivals are ignored
    decisions: int  # maximum number simulated for one decision


class Tried(NamedTuple):
    """Costs of the actions, by decision, action and future."""

    waiting: FloatArray  # [D, C, F]  sum over jobs of wait / duration, up to step `ahead`
    jobs: FloatArray  # [D, C, F]  number of jobs that wait then
    work: FloatArray  # [D, C, F]  work left then, in steps of the whole cluster
    futures: IntArray  # [D]  number played within the limit of decisions; the costs of others are 0


def seen(view: Observation, action: IntArray) -> Seen:
    """Return decisions with the actions [D, C] to try."""
    whole = (view.duration, view.demand, view.waited, view.backlog, view.backlog_head, view.now, view.since_arrival)
    parts = [np.ascontiguousarray(part, dtype=np.int64) for part in (view.free[:, 0], *whole, action)]
    load, arrived = (np.ascontiguousarray(part, dtype=np.float64) for part in (view.load, view.arrived))
    return Seen(load, arrived, *parts)


def buffer(decisions: int, jobs: int, cluster: Cluster) -> State:
    """Return the state of `decisions` episodes, each with room for `jobs` jobs and a place for the sums over them."""
    count = decisions * (jobs + 1)
    first = np.arange(decisions + 1) * (jobs + 1)
    filler = np.ones(count, dtype=np.int64)
    demand = np.ones((count, len(cluster.capacity)), dtype=np.int64)
    state = empty_state(JobBatch(first, filler * NEVER, filler, demand), cluster._replace(measured=None), 0)
    return state._replace(requested=state.duration.copy())


@inlined
def _write_job(s: State, j: int, arrival: int, futures: Futures, source: int) -> None:
    s.arrival[j] = arrival
    s.duration[j] = s.requested[j] = futures.duration[source]
    for r in range(s.capacity.shape[0]):
        s.demand[j, r] = futures.demand[source, r]


@inlined
def _backlog_room(s: State, b: int, view: Seen, d: int, j: int) -> int:
    """Return how many jobs of a decision's backlog fit into an episode from place j on."""
    return int(min(view.backlog[d], s.first[b + 1] - 1 - j))


@inlined
def _write_waiting(s: State, b: int, view: Seen, d: int, futures: Futures, first: int, after: int) -> int:
    """Write the jobs of the slots and of the backlog; return the next place."""
    j, now = s.first[b], view.now[d]
    for m in range(view.duration.shape[1]):
        if view.duration[d, m] > 0:
            s.arrival[j] = now - view.waited[d, m]
            s.duration[j] = s.requested[j] = view.duration[d, m]
            for r in range(s.capacity.shape[0]):
                s.demand[j, r] = view.demand[d, m, r]
            j += 1
    for k in range(_backlog_room(s, b, view, d, j)):
        if k == 0 or first == after:
            s.arrival[j] = now
            s.duration[j] = s.requested[j] = view.head[d, 0]
            for r in range(s.capacity.shape[0]):
                s.demand[j, r] = view.head[d, 1 + r]
        else:
            _write_job(s, j, now, futures, first + k % (after - first))
        j += 1
    return int(j)


@inlined
def _write_jobs(s: State, b: int, view: Seen, d: int, futures: Futures, future: int, limits: Limits) -> int:
    """Write the waiting and future jobs of copy b of decision d; return the place after the last."""
    first, after = futures.first[future], futures.first[future + 1]
    j = _write_waiting(s, b, view, d, futures, first, after)
    now, offset = view.now[d], view.now[d] + 1 if limits.from_now else 0
    for source in range(first, after):
        arrival = futures.arrival[source] + offset
        if arrival > now + limits.ahead or j == s.first[b + 1] - 1:
            break
        if arrival > now:
            _write_job(s, j, arrival, futures, source)
            j += 1
    for k in range(j, s.first[b + 1]):
        s.arrival[k] = NEVER
    return int(j)


@inlined
def _begin(s: State, rules: Rules, b: int, view: Seen, d: int, last: int) -> None:
    """Reset copy b to decision d; its jobs stay."""
    s.now[b], s.head[b], s.done[b] = view.now[d], 0, False
    s.last_arrival[b], s.load[b] = view.now[d] - view.since[d], view.load[d]
    for k in range(s.first[b], last):
        s.start[k] = -1
    steps = s.free.shape[1]
    for t in range(steps):
        s.leaving[b, t] = 0
        for r in range(s.capacity.shape[0]):
            s.free[b, t, r] = view.free[d, t, r]
            after = view.free[d, t + 1, r] if t + 1 < steps else s.capacity[r]
            if after != view.free[d, t, r]:
                s.leaving[b, t] = 1  # some job ends, and there will be more room
    j = s.first[b]
    for m in range(view.duration.shape[1]):
        s.fits_now[b, m] = False
        if rules.place_ahead:  # else it is the same array, which a kernel may mistake for two
            s.legal[b, m] = False
        s.slot_duration[b, m] = view.duration[d, m]
        s.slot_job[b, m] = -1
        for r in range(s.capacity.shape[0]):
            s.slot_demand[b, m, r] = view.demand[d, m, r]
        if view.duration[d, m] > 0:
            s.slot_job[b, m] = j
            j += 1
    s.queue[b] = j
    s.to_come[b] = j + _backlog_room(s, b, view, d, j)
    update_fits(s, rules, b, -1)


@inlined
def _count_arrived(s: State, b: int, view: Seen, d: int, last: int) -> None:
    """Write the sums over arrived jobs before each arrival, starting from those at a decision; all 0 if unknown."""
    begun = s.to_come[b]
    for n in range(s.arrived.shape[1]):
        s.arrived[s.first[b], n] = 0.0
        total = view.arrived[d, n]
        for j in range(begun, last + 1):
            s.arrived[j, n] = total
            if j < last and view.arrived[d, 0] > 0.0:
                total += 1.0 if n == 0 else s.requested[j] * (1.0 if n == 1 else s.demand[j, n - 2])


@inlined
def _waits(s: State, b: int) -> bool:
    """Return whether a job waits, in a slot or in the backlog."""
    for m in range(s.slot_job.shape[1]):
        if s.slot_job[b, m] >= 0:
            return True
    return bool(s.queue[b] < s.to_come[b])


@inlined
def _play(s: State, rules: Rules, b: int, action: int, who: Players, last: int, end: int) -> int:
    """Carry out an action, then those of a rule until no job is left to start; return the number of decisions."""
    count = 0
    while True:
        count += 1
        carry_out(s, rules, b, action)
        if s.now[b] >= end or (s.to_come[b] == last and not _waits(s, b)):
            return count
        action = decide(s, rules, b, who)


@inlined
def _cost(s: State, b: int, now: int, last: int, end: int, tried: Tried, d: int, c: int, f: int) -> None:
    """Add up the costs of an episode from now until step `end`."""
    waiting = jobs = work = 0.0
    for k in range(s.first[b], last):
        if s.arrival[k] > end:
            break
        begun = s.start[k] >= 0 and s.start[k] < end
        until = s.start[k] if begun else end
        waiting += (until - max(s.arrival[k], now)) / float(s.duration[k])
        jobs += not begun
        share = 0.0
        for r in range(s.capacity.shape[0]):
            share += s.demand[k, r] / float(s.capacity[r])
        left = max(until + s.duration[k] - end, 0)
        work += left * share / float(s.capacity.shape[0])
    tried.waiting[d, c, f] = waiting
    tried.jobs[d, c, f] = jobs
    tried.work[d, c, f] = work


@inlined
def _try(
    s: State, rules: Rules, b: int, view: Seen, who: Players, futures: Futures, chosen: IntArray, limits: Limits,
    tried: Tried,
) -> None:  # fmt: skip
    """Try the actions of one decision."""
    count, end = 0, view.now[b] + limits.ahead
    for f in range(chosen.shape[1]):
        if count >= limits.decisions:
            break
        last = _write_jobs(s, b, view, b, futures, chosen[b, f], limits)
        for c in range(view.action.shape[1]):
            if view.action[b, c] < 0:
                break
            _begin(s, rules, b, view, b, last)
            if c == 0 and who.features.shape[1] > 0:  # the rule `scores` reads these sums
                _count_arrived(s, b, view, b, last)
            count += _play(s, rules, b, view.action[b, c], who, last, end)
            _cost(s, b, view.now[b], last, end, tried, b, c, f)
        tried.futures[b] = f + 1


@threaded(lambda s, rules, view, *_: len(view.now))
def try_actions(
    span: Span, s: State, rules: Rules, view: Seen, who: Players, futures: Futures, chosen: IntArray, limits: Limits,
    tried: Tried,
) -> None:  # fmt: skip
    """Write the costs of each action, in the futures [D, F'] chosen for its decision, into zeros.

    `s` is a buffer of at least D episodes; the rules of `who` continue from each action.
    """
    for i in range(*span):
        _try(s, rules, i, view, who, futures, chosen, limits, tried)
