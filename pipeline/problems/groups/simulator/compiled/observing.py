"""What a controller sees of the compiled simulator of groups: one call for any number of episodes."""

import numpy as np
from numba import njit, prange

from pipeline.core import IntArray
from pipeline.problems.groups.nouns import Observation
from pipeline.problems.groups.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined


def observe(s: State, rules: Rules, rows: IntArray) -> Observation:
    """Return what the controller sees in some episodes, as copies."""
    view = _empty(s, rules, rows)
    _observe_all(s, rules, rows, view)
    return view


def _empty(s: State, rules: Rules, rows: IntArray) -> Observation:
    by_group = (len(rows), *s.used.shape[1:])
    by_queue = (len(rows), *s.head.shape[1:])
    resources = len(s.capacity)
    return Observation(
        now=s.number[rows] * rules.interval,
        waiting=np.zeros(by_queue, dtype=np.int64),
        waiting_demand=np.zeros((*by_queue, resources), dtype=np.int64),
        waiting_work=np.zeros(by_queue),
        waited=np.zeros(by_queue),
        head_waited=np.zeros(by_queue),
        head_demand=np.zeros((*by_queue, resources), dtype=np.int64),
        head_estimate=np.zeros(by_queue),
        running=np.zeros(by_group[:2], dtype=np.int64),
        used=s.used[rows],
        left=np.zeros(by_group[:2]),
        releasing=np.zeros(by_group, dtype=np.int64),
        recent_jobs=s.recent_jobs[rows],
        recent_work=s.recent_work[rows],
        share=s.share[rows],
        order=s.order[rows],
    )


@njit(cache=True, parallel=True)
def _observe_all(s: State, rules: Rules, rows: IntArray, view: Observation) -> None:
    for i in prange(rows.shape[0]):
        # calls: numba takes writes to a tuple's arrays within prange for dead code
        _observe_running(s, rules, rows[i], view, i)
        for g in range(s.head.shape[1]):
            for q in range(s.head.shape[2]):
                _observe_queue(s, rows[i], view, i, g, q)


@inlined
def _observe_running(s: State, rules: Rules, b: int, view: Observation, i: int) -> None:
    now = view.now[i]
    for k in range(s.runs[b]):
        job = s.running[s.first[b] + k]
        g = s.group[job]
        view.running[i, g] += 1
        view.left[i, g] += max(s.estimate[job] - (now - s.start[job]), 0.0) * s.held[job]
        if s.start[job] + s.estimate[job] <= now + rules.interval:
            for r in range(s.capacity.shape[0]):
                view.releasing[i, g, r] += s.demand[job, r]


@inlined
def _observe_queue(s: State, b: int, view: Observation, i: int, g: int, q: int) -> None:
    job = s.head[b, g, q]
    if job < s.to_come[b]:
        view.head_waited[i, g, q] = view.now[i] - s.arrival[job]
        view.head_estimate[i, g, q] = s.estimate[job]
        for r in range(s.capacity.shape[0]):
            view.head_demand[i, g, q, r] = s.demand[job, r]
    while job < s.to_come[b]:
        view.waiting[i, g, q] += 1
        view.waiting_work[i, g, q] += s.estimate[job] * s.held[job]
        view.waited[i, g, q] += view.now[i] - s.arrival[job]
        for r in range(s.capacity.shape[0]):
            view.waiting_demand[i, g, q, r] += s.demand[job, r]
        job = s.behind[job]
