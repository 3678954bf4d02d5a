"""What will be free when, by what is told of running jobs: for reservations, and for policies that look ahead."""

from pipeline.core import FloatArray
from pipeline.problems.machines.nouns import TOGETHER
from pipeline.problems.machines.simulator.compiled.placing import kind_suits
from pipeline.problems.machines.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined, pop, push


@inlined
def _tell_anew(s: State, b: int) -> None:
    """Tell twice as much, until it lies ahead, of running jobs that should have ended."""
    for i in range(s.runs[b]):
        job = s.running[s.first[b] + i]
        told = s.estimate[job]
        while s.start[job] + told <= s.now[b]:
            told *= 2.0
        s.estimated[job] = s.start[job] + told


@inlined
def look_ahead(s: State, rules: Rules, b: int) -> int:
    """Copy what is free to `spare` and order the running jobs by when they seem to end; return how many they are."""
    for k in range(s.kind.shape[0]):
        for r in range(s.capacity.shape[1]):
            s.spare[b, k, r] = s.free[b, k, r]
    if rules.dispatch in TOGETHER:
        _tell_anew(s, b)
    for i in range(s.runs[b]):
        push(s.order, s.first[b], i, s.estimated, s.rank, s.running[s.first[b] + i])
    return int(s.runs[b])


@inlined
def first_end(s: State, b: int) -> float:
    """Return when the first of the ordered jobs seems to end."""
    return float(s.estimated[s.order[s.first[b]]])


@inlined
def next_over(s: State, b: int, left: int) -> int:
    """Return which of the `left` ordered jobs seems to end first, and leave it out from now on."""
    return pop(s.order, s.first[b], left, s.estimated, s.rank)


@inlined
def give_back(s: State, b: int, job: int, k: int) -> None:
    """Give what a job holds of a machine to `spare`."""
    for r in range(s.capacity.shape[1]):
        s.spare[b, k, r] += s.demand[job, r]


@inlined
def holds_spare(s: State, b: int, job: int, k: int) -> bool:
    """Return whether a machine could hold a job in `spare`."""
    for r in range(s.capacity.shape[1]):
        if s.demand[job, r] > s.spare[b, k, r]:
            return False
    return kind_suits(s, job, k)


@inlined
def fits_in(s: State, rules: Rules, b: int, times: FloatArray, i: int) -> None:
    """Write for each slot of an episode how long it takes until its job fits; 0 = now, or an empty slot."""
    open_slots = 0
    for m in range(s.slot_job.shape[1]):
        times[i, m] = 0.0
        if m < s.waiting[b] and s.able[b, m] < s.nodes[s.slot_job[b, m]]:
            times[i, m] = s.able[b, m] - s.nodes[s.slot_job[b, m]]  # below 0: machines that it still lacks
            open_slots += 1
    left = look_ahead(s, rules, b) if open_slots else 0
    while left > 0 and open_slots > 0:
        over = next_over(s, b, left)
        left -= 1
        for place in range(s.held_first[over], s.held_first[over + 1]):
            k = s.held[place]
            for m in range(s.waiting[b]):
                if times[i, m] < 0.0 and holds_spare(s, b, s.slot_job[b, m], k):
                    times[i, m] -= 1.0  # counted already
            give_back(s, b, over, k)
            for m in range(s.waiting[b]):
                if times[i, m] < 0.0 and holds_spare(s, b, s.slot_job[b, m], k):
                    times[i, m] += 1.0
                    if times[i, m] == 0.0:
                        times[i, m] = max(s.estimated[over] - s.now[b], 0.0)
                        open_slots -= 1
