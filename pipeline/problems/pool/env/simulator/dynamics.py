"""Compiled steps of the simulator, for many episodes at once; `tests/oracles/pool.py` is the plain definition.

If jobs cannot be placed ahead, every placed job has already begun. So free units never decrease from one row of the
horizon to the next: a job fits if the present row has room, it still fits while steps pass, and only jobs that end
make room. This also holds for estimates: a job that ends earlier than requested releases its reservation, and one that
overruns holds its units one row at a time.
"""

from pipeline.problems.pool.env.simulator.state import Rules, State
from pipeline.simulation.compiled import inlined


@inlined
def _fits_at(s: State, rules: Rules, b: int, m: int, begin: int) -> bool:
    """Return whether the job of a slot can start in step `begin` of the horizon."""
    rows = s.slot_duration[b, m] if rules.place_ahead else 1
    if begin + s.slot_duration[b, m] > s.free.shape[1]:
        return False
    row = s.head[b] + begin
    for _ in range(rows):
        if row >= s.free.shape[1]:
            row -= s.free.shape[1]
        for r in range(s.free.shape[2]):
            if s.free[b, row, r] < s.slot_demand[b, m, r]:
                return False
        row += 1
    return True


@inlined
def earliest_start(s: State, rules: Rules, b: int, m: int) -> int:
    """Return the number of steps until the job of a slot can start; -1: it cannot."""
    if s.fits_now[b, m]:
        return 0
    if rules.place_ahead:
        for begin in range(1, s.free.shape[1] - s.slot_duration[b, m] + 1):
            if _fits_at(s, rules, b, m, begin):
                return begin
    return -1


@inlined
def update_fits(s: State, rules: Rules, b: int, placed: int) -> None:
    """Update which slots hold a job that can be placed.

    `placed` is the slot whose job was placed, so that the other jobs can only have lost room; -1: a step passed.
    """
    fitting = placeable = 0
    for m in range(s.slot_job.shape[1]):
        fits = s.fits_now[b, m]
        if placed >= 0 and m != placed:
            asked = s.legal[b, m] if rules.place_ahead else fits
        else:
            asked = s.slot_job[b, m] >= 0 and (rules.place_ahead or not fits or m == placed)
        if asked:
            fits = _fits_at(s, rules, b, m, 0)
            s.fits_now[b, m] = fits
            if rules.place_ahead:
                s.legal[b, m] = fits or earliest_start(s, rules, b, m) >= 0
        elif m == placed:
            s.fits_now[b, m] = s.legal[b, m] = fits = False
        fitting += int(fits)
        placeable += int(s.legal[b, m])
    s.fitting[b] = fitting
    s.placeable[b] = placeable


@inlined
def _fill(s: State, b: int, m: int, job: int) -> None:
    s.slot_job[b, m] = job
    s.slot_duration[b, m] = s.requested[job]
    for r in range(s.capacity.shape[0]):
        s.slot_demand[b, m, r] = s.demand[job, r]


@inlined
def admit(s: State, b: int) -> bool:
    """Reveal the jobs of the present step; return whether a slot got one."""
    filled = False
    m = 0  # slots before it are full
    while s.to_come[b] < s.first[b + 1] and s.arrival[s.to_come[b]] <= s.now[b]:
        job = s.to_come[b]
        s.to_come[b] += 1
        s.last_arrival[b] = s.now[b]
        s.present[b] += 1
        if s.rewards.shape[1]:
            s.inverse[b] += 1.0 / s.duration[job]
        if s.queue[b] == job:  # the backlog is empty
            while m < s.slot_job.shape[1] and s.slot_job[b, m] >= 0:
                m += 1
            if m < s.slot_job.shape[1]:
                _fill(s, b, m, job)
                s.queue[b] += 1
                filled = True
    return filled


@inlined
def _reward(objective: int, inverse_durations: float, jobs: int, shares: float) -> float:
    """Return the reward of a step as in `rewards`; `objective` is an index of OBJECTIVES."""
    if objective == 0:
        return -inverse_durations
    if objective == 1:
        return -float(jobs)
    if objective == 2:
        return -1.0
    return shares


@inlined
def _leave(s: State, b: int, row: int) -> int:
    """End the jobs whose last step is a row of the ring; return their number."""
    left = int(s.leaving[b, row])
    if left:
        s.leaving[b, row] = 0
        if s.rewards.shape[1]:
            s.inverse[b] -= s.leaving_inverse[b, row]
            s.leaving_inverse[b, row] = 0.0
    return left


@inlined
def _give(s: State, b: int, job: int, rows: int, sign: int) -> None:
    """Release (1) or take (-1) the units of a job in the next rows."""
    row = s.head[b]
    for _ in range(rows):
        for r in range(s.capacity.shape[0]):
            s.free[b, row, r] += sign * s.demand[job, r]
        row += 1
        if row >= s.free.shape[1]:
            row = 0


@inlined
def _settle(s: State, b: int) -> int:
    """End the jobs that are done, whatever they requested, and extend overruns; return the number of ended jobs."""
    kept = first = s.first[b]
    inverse = 0.0
    for i in range(first, first + s.runs[b]):
        job = s.running[i]
        left = s.start[job] + s.requested[job] - s.now[b]
        if s.start[job] + s.duration[job] <= s.now[b]:
            _give(s, b, job, left, 1)
            inverse += 1.0 / s.duration[job]
            continue
        if left <= 0:
            _give(s, b, job, 1, -1)
        s.running[kept] = job
        kept += 1
    ended = first + s.runs[b] - kept
    s.runs[b] = kept - first
    if s.rewards.shape[1]:
        s.inverse[b] -= inverse
    return int(ended)


@inlined
def pass_one_step(s: State, rules: Rules, b: int) -> None:
    """Pass one step: jobs run, end and arrive."""
    row = s.head[b]
    shares = 0.0
    for r in range(s.capacity.shape[0]):
        shares += (s.capacity[r] - s.free[b, row, r]) / s.capacity[r]
        s.free[b, row, r] = s.capacity[r]  # this row becomes the last one
    if s.rewards.shape[1]:
        reward = _reward(rules.objective, s.inverse[b], s.present[b], shares)
        s.gained[b] += reward
        if s.now[b] < s.rewards.shape[1]:
            s.rewards[b, s.now[b]] = reward
    s.used[b] += shares
    if s.fitting[b]:
        s.withheld_steps[b] += 1
        for m in range(s.slot_job.shape[1]):
            if s.fits_now[b, m]:
                s.withheld[s.slot_job[b, m]] += 1
    s.head[b] = row + 1 if row + 1 < s.free.shape[1] else 0
    s.now[b] += 1
    left = _settle(s, b) if rules.estimated else _leave(s, b, row)
    s.finished[b] += left
    s.present[b] -= left
    filled = admit(s, b)
    if left or filled or rules.place_ahead:
        update_fits(s, rules, b, -1)


@inlined
def place(s: State, rules: Rules, b: int, m: int, begin: int) -> None:
    """Start the job of a slot, now or ahead, and refill the slot from the backlog."""
    job = s.slot_job[b, m]
    s.start[job] = s.now[b] + begin
    if rules.first <= s.arrival[job] < rules.after:
        s.unstarted[b] -= 1
    row = s.head[b] + begin - 1
    for _ in range(s.slot_duration[b, m]):
        row += 1
        if row >= s.free.shape[1]:
            row -= s.free.shape[1]
        for r in range(s.capacity.shape[0]):
            s.free[b, row, r] -= s.slot_demand[b, m, r]
    if rules.estimated:
        s.running[s.first[b] + s.runs[b]] = job
        s.runs[b] += 1
    else:
        s.leaving[b, row] += 1
        if s.rewards.shape[1]:
            s.leaving_inverse[b, row] += 1.0 / s.duration[job]
    if s.queue[b] < s.to_come[b]:
        _fill(s, b, m, s.queue[b])
        s.queue[b] += 1
    else:
        s.slot_job[b, m] = -1
        s.slot_duration[b, m] = 0
        s.slot_demand[b, m] = 0
    update_fits(s, rules, b, m)
