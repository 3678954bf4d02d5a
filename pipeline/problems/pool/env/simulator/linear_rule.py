"""The linear rule, and code for other rules: shares of jobs, and the room that EASY reserves.

The linear rule adds up weighted features of a job, and of letting a step pass. Features are shares, ratios and
logarithms, so that the same weights apply to clusters of any size.
"""

import numpy as np

from pipeline.core.types import FloatArray
from pipeline.problems.pool.env.simulator.state import State
from pipeline.simulation.compiled import inlined

LEAST_SHARE = 1e-3  # minimum share of the cluster that a job counts for

# The weighted features: of a job (`teachers.JOB_FEATURES`), then of void (`teachers.VOID_FEATURES`).
WEIGHTS = 15
SHORT, NARROW, ALIGNED, WAITED, SLOWED, DOMINANT, LEFT, SHORTEST = range(8)
ALWAYS, WAITING, SHORTER, FREE, ELAPSED, IDLE, TO_END = range(8, WEIGHTS)


@inlined
def alignment(s: State, b: int, m: int) -> float:
    """Return the mean over resources of free share times demanded share."""
    shares = 0.0
    for r in range(s.capacity.shape[0]):
        capacity = float(s.capacity[r])
        shares += s.slot_demand[b, m, r] / capacity * (s.free[b, s.head[b], r] / capacity)
    return shares / float(s.capacity.shape[0])


@inlined
def mean_share(s: State, b: int, m: int) -> float:
    """Return the mean over resources of the share of the cluster that a job demands."""
    shares = 0.0
    for r in range(s.capacity.shape[0]):
        shares += s.slot_demand[b, m, r] / float(s.capacity[r])
    return shares / float(s.capacity.shape[0])


@inlined
def first_room(s: State, b: int, m: int) -> int:
    """Return the first step from which there is room for a job; beyond the horizon, all units are free."""
    begin, row = 0, s.head[b] - 1
    for t in range(s.free.shape[1]):
        if t - begin >= s.slot_duration[b, m]:
            return begin
        row += 1
        if row >= s.free.shape[1]:
            row -= s.free.shape[1]
        for r in range(s.capacity.shape[0]):
            if s.free[b, row, r] < s.slot_demand[b, m, r]:
                begin = t + 1
    return begin


@inlined
def leaves_room(s: State, b: int, m: int, head: int, begin: int) -> bool:
    """Return whether a job that starts now does not delay the head job, which has room from step `begin` on."""
    if begin == 0:
        return True  # the head job has room but may not be placed: it never will be
    last = min(int(s.slot_duration[b, m]), begin + int(s.slot_duration[b, head]), s.free.shape[1])
    for t in range(begin, last):
        row = s.head[b] + t
        if row >= s.free.shape[1]:
            row -= s.free.shape[1]
        for r in range(s.capacity.shape[0]):
            if s.free[b, row, r] - s.slot_demand[b, head, r] < s.slot_demand[b, m, r]:
                return False
    return True


@inlined
def shortest_job(s: State, b: int) -> float:
    """Return the least duration of the jobs in slots; inf if there are none."""
    shortest = np.inf
    for m in range(s.slot_job.shape[1]):
        if s.slot_duration[b, m] > 0:
            shortest = min(shortest, float(s.slot_duration[b, m]))
    return shortest


@inlined
def job_value(s: State, b: int, m: int, shortest: float, w: FloatArray) -> float:
    """Return the sum of the weighted features of the job of a slot."""
    length, waited = float(s.slot_duration[b, m]), float(s.now[b] - s.arrival[s.slot_job[b, m]])
    dominant, left = 0.0, np.inf
    for r in range(s.capacity.shape[0]):
        dominant = max(dominant, s.slot_demand[b, m, r] / float(s.capacity[r]))
        left = min(left, (s.free[b, s.head[b], r] - s.slot_demand[b, m, r]) / float(s.capacity[r]))
    long = np.log(length)
    total = w[b, SHORT] * -long
    total += w[b, NARROW] * -np.log(max(mean_share(s, b, m), LEAST_SHARE))
    total += w[b, ALIGNED] * alignment(s, b, m)
    total += w[b, WAITED] * np.log(1.0 + waited)
    total += w[b, SLOWED] * np.log(1.0 + waited / length)
    total += w[b, DOMINANT] * dominant
    total += w[b, LEFT] * left
    total += w[b, SHORTEST] * (np.log(shortest) - long)
    return float(total)


@inlined
def _void_value(s: State, b: int, best: int, w: FloatArray, end: float) -> float:
    """Return the sum of the weighted features of letting a step pass instead of starting the best job."""
    count = shorter = 0
    for m in range(s.slot_job.shape[1]):
        if s.slot_duration[b, m] > 0:
            count += 1
            shorter += int(s.slot_duration[b, m] < s.slot_duration[b, best])
    free = 0.0
    for r in range(s.capacity.shape[0]):
        free += s.free[b, s.head[b], r] / float(s.capacity[r])
    total = w[b, ALWAYS]
    total += w[b, WAITING] * np.log(1.0 + (count + s.to_come[b] - s.queue[b]))
    total += w[b, SHORTER] * (shorter / count)
    total += w[b, FREE] * (free / float(s.capacity.shape[0]))
    total += w[b, ELAPSED] * np.log(1.0 + float(s.now[b]))
    total += w[b, IDLE] * np.log(1.0 + float(s.now[b] - s.last_arrival[b]))
    total += w[b, TO_END] * np.log(1.0 + (0.0 if np.isinf(end) else end))
    return float(total)


@inlined
def linear(s: State, b: int, weights: FloatArray, end: float, passes: bool) -> int:
    """Return the best job that may start, or void where that is legal and has a higher value.

    Args:
        s: all episodes.
        b: the episode.
        weights: [B, WEIGHTS] weights of the features in each episode.
        end: steps until arrivals end; inf: not known.
        passes: is void legal?
    """
    shortest, chosen, best = shortest_job(s, b), 0, -np.inf
    for m in range(s.slot_job.shape[1]):
        if s.legal[b, m]:
            score = job_value(s, b, m, shortest, weights)
            if score > best:
                chosen, best = m, score
    return int(s.slot_job.shape[1]) if passes and _void_value(s, b, chosen, weights, end) > best else chosen
