"""What a policy sees of the compiled simulator: one call for any number of episodes."""

import numpy as np
from numba import njit, prange

from pipeline.core import IntArray, Observation
from pipeline.problems.machines.nouns import GREEDY
from pipeline.problems.machines.simulator.compiled.ahead import fits_in
from pipeline.problems.machines.simulator.compiled.kernels import could_ever
from pipeline.problems.machines.simulator.compiled.placing import fits
from pipeline.problems.machines.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined


def observe(s: State, rules: Rules, rows: IntArray) -> Observation:
    """Return what the policy sees in some episodes, as copies."""
    view = _empty(s, len(rows))
    _look(s, rules, rows, view)
    told = {name: getattr(view, name).view(np.bool_) for name in ("fits_now", "legal", "may_idle")}
    return view._replace(**told)


def _empty(s: State, count: int) -> Observation:
    _, slots, machines = s.can.shape
    resources = s.capacity.shape[1]
    return Observation(
        free=np.empty((count, machines, 1, resources), dtype=np.int64),
        demand=np.empty((count, slots, resources), dtype=np.int64),
        duration=np.empty((count, slots)),
        waited=np.empty((count, slots)),
        backlog=np.empty(count, dtype=np.int64),
        backlog_head=np.empty((count, resources + 1)),
        capacity=np.empty((count, machines, resources), dtype=np.int64),
        since_arrival=np.empty(count),
        legal=np.empty((count, slots, machines), dtype=np.uint8),
        fits_now=np.empty((count, slots, machines), dtype=np.uint8),
        now=np.empty(count),
        nodes=np.empty((count, slots), dtype=np.int64),
        fits_in=np.zeros((count, slots)),
        arrived=np.zeros((count, 2 + resources)),
        may_idle=np.empty(count, dtype=np.uint8),
        to_end=np.full(count, np.inf),
    )


@njit(cache=True, parallel=True)
def _look(s: State, rules: Rules, rows: IntArray, view: Observation) -> None:
    for i in prange(rows.shape[0]):
        # calls: numba takes writes to a tuple's arrays within prange for dead code
        _look_at_machines(s, rules, rows[i], view, i)
        for m in range(s.slot_job.shape[1]):
            _look_at_slot(s, rules, rows[i], view, i, m)
        if rules.ahead:
            fits_in(s, rules, rows[i], view.fits_in, i)


@inlined
def _look_at_machines(s: State, rules: Rules, b: int, view: Observation, i: int) -> None:
    for k in range(s.kind.shape[0]):
        for r in range(s.capacity.shape[1]):
            view.free[i, k, 0, r] = s.free[b, k, r]
            view.capacity[i, k, r] = s.capacity[k, r]
    view.now[i] = s.now[b]
    view.since_arrival[i] = s.now[b] - s.last_arrival[b]
    view.may_idle[i] = view.since_arrival[i] < rules.stall
    view.backlog[i] = s.behind[b]
    for r in range(s.capacity.shape[1] + 1):
        view.backlog_head[i, r] = 0.0
    if s.behind[b] > 0:
        job = s.queue[b]
        while not np.isnan(s.start[job]):  # started by backfilling
            job += 1
        view.backlog_head[i, 0] = s.estimate[job]
        for r in range(s.capacity.shape[1]):
            view.backlog_head[i, r + 1] = s.demand[job, r]


@inlined
def _look_at_slot(s: State, rules: Rules, b: int, view: Observation, i: int, m: int) -> None:
    there = m < s.waiting[b]
    job = s.slot_job[b, m] if there else 0
    fit = there and fits(s, b, m)
    view.duration[i, m] = s.estimate[job] if there else 0.0
    view.waited[i, m] = s.now[b] - s.arrival[job] if there else 0.0
    view.nodes[i, m] = s.nodes[job] if there else 0
    for r in range(s.capacity.shape[1]):
        view.demand[i, m, r] = s.demand[job, r] if there else 0
    for k in range(s.kind.shape[0]):
        view.fits_now[i, m, k] = fit and s.can[b, m, k]
        if rules.dispatch == GREEDY:
            view.legal[i, m, k] = fit and s.can[b, m, k]
        else:
            view.legal[i, m, k] = there and could_ever(s, b, m, k)
