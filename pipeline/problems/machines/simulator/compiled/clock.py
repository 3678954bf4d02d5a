"""How time passes, and the two events: a job arrives, a job ends."""

import numpy as np

from pipeline.problems.machines.simulator.compiled.placing import enqueue, look_at_machine
from pipeline.problems.machines.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined
from pipeline.simulation.heap import pop


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
