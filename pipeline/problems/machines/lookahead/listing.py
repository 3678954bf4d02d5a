"""Play a list of jobs on, where dispatch blocks: the first of those that have arrived is next to hold the head.

A rule whose preference of one job over another does not change as time passes goes by such a list. It does what the
simulator does under the rule, some ten times as fast where many wait, for it does not look at all of them at every
event. Jobs behind the slots stand in the list, too.
"""

import numpy as np

from pipeline.core import FloatArray, IntArray
from pipeline.problems.machines.nouns import BLOCKING
from pipeline.problems.machines.simulator.compiled.holding import _backfill, end, next_arrival, next_end, reserve
from pipeline.problems.machines.simulator.compiled.placing import first_machine, start
from pipeline.problems.machines.simulator.compiled.rules import FCFS, RULES, _job_score
from pipeline.problems.machines.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined

LISTED = tuple(RULES[name] for name in ("fcfs", "sjf", "saf", "f1"))  # rules that go by a list


@inlined
def put_in_order(t: State, e: int, rule: int, first: int, last: int, order: IntArray, score: FloatArray) -> None:
    """Write the list of jobs [first, last): as a rule prefers them, of equals the first."""
    for j in range(first, last):
        value = -t.arrival[j] if rule == FCFS else _job_score(t, e, j, rule, 1.0)
        low, high = first, j
        while low < high:
            middle = (low + high) // 2
            if score[middle] < value:
                high = middle
            else:
                low = middle + 1
        for place in range(j, low, -1):
            order[place], score[place] = order[place - 1], score[place - 1]
        order[low], score[low] = j, value


@inlined
def _event(t: State, e: int) -> None:
    """Let time pass to the next event and handle it alone; an arrival comes before an end of the same time."""
    come, go = next_arrival(t, e), next_end(t, e)
    t.now[e] = max(t.now[e], min(come, go))
    if come <= go:
        t.to_come[e] += 1
        t.behind[e] += 1
    else:
        end(t, e)


@inlined
def _hold(t: State, rules: Rules, e: int, job: int, wanted: int) -> None:
    """Start a job as soon as it fits, and others behind it meanwhile where there is backfilling."""
    t.behind[e] -= 1
    t.start[job] = t.now[e]  # so that it is none of those behind it
    place, reserved = first_machine(t, e, job, wanted), -np.inf
    if place < 0 and rules.dispatch != BLOCKING:
        reserved = reserve(t, rules, e, job, wanted)
    while place < 0:
        if rules.dispatch != BLOCKING:
            _backfill(t, rules, e, reserved)
        _event(t, e)
        place = first_machine(t, e, job, wanted)
    start(t, e, job, place)


@inlined
def _waits(t: State, e: int, job: int) -> bool:
    return bool(job < t.to_come[e] and np.isnan(t.start[job]))


@inlined
def play_list(t: State, rules: Rules, e: int, order: IntArray, action: int, first: int, last: int) -> None:
    """Start the job of an action, and then all jobs [first, last) in the list's order."""
    machines, low = t.kind.shape[0], first
    t.queue[e], t.behind[e], t.waiting[e] = first, t.to_come[e] - first, 0  # all are behind the slots: none to look at
    job, wanted = first + action // machines, action % machines
    while True:
        _hold(t, rules, e, job, wanted)
        while low < last and not np.isnan(t.start[order[low]]):
            low += 1
        if low == last:
            return
        place, wanted = low, 0
        while not _waits(t, e, order[place]):
            place += 1
            if place == last:
                _event(t, e)
                place = low
        job = order[place]
