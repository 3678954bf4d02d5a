"""The compiled steps of `batched`: what `timestep` does, on arrays, for many episodes at once."""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from pipeline.core import BoolArray, Cluster, FloatArray, IntArray, JobBatch


class State(NamedTuple):
    """Everything the kernels read and write; episodes and jobs numbered as in the batch."""

    first: IntArray  # [B + 1]
    arrival: IntArray  # [J]
    duration: IntArray  # [J]
    demand: IntArray  # [J, R]
    capacity: IntArray  # [R]
    start: IntArray  # [J]           -1 = not started
    withheld: IntArray  # [J]           steps that passed though it would have fitted
    free: IntArray  # [B, T, R]
    slot_job: IntArray  # [B, M]        -1 = empty
    fits_now: BoolArray  # [B, M]
    legal: BoolArray  # [B, M]
    queue: IntArray  # [B]           head of the backlog, which reaches to the next job to come
    to_come: IntArray  # [B]           next job to arrive
    now: IntArray  # [B]
    last_arrival: IntArray  # [B]
    leaving: IntArray  # [B, T + 1]    jobs that finish at each coming step, by step modulo T + 1
    leaving_inverse: FloatArray  # [B, T + 1]    their sum of 1 / duration
    present: IntArray  # [B]           jobs in the system
    inverse: FloatArray  # [B]           their sum of 1 / duration
    finished: IntArray  # [B]
    withheld_steps: IntArray  # [B]
    used: FloatArray  # [B]
    rewards: FloatArray  # [B, steps]    of step [t, t + 1); no column where nobody asks for them
    done: BoolArray  # [B]


class Rules(NamedTuple):
    """Constants of a run."""

    usable: int
    place_ahead: bool
    step_limit: int
    objective: int
    skip_forced: bool  # play moves that leave no choice without asking


def empty_state(jobs: JobBatch, cluster: Cluster, rewarded_steps: int) -> State:
    """Return the state before step 0; nothing has arrived."""
    episodes, rows, resources = jobs.episodes, cluster.horizon, len(cluster.capacity)
    capacity = np.array(cluster.capacity, dtype=np.int16)
    return State(
        first=jobs.first,
        arrival=jobs.arrival.astype(np.int64),
        duration=jobs.duration.astype(np.int16),
        demand=jobs.demand.astype(np.int16),
        capacity=capacity,
        start=np.full(len(jobs.arrival), -1, dtype=np.int64),
        withheld=np.zeros(len(jobs.arrival), dtype=np.int32),
        free=np.ascontiguousarray(np.broadcast_to(capacity, (episodes, rows, resources))),
        slot_job=np.full((episodes, cluster.slots), -1, dtype=np.int64),
        fits_now=np.zeros((episodes, cluster.slots), dtype=np.bool_),
        legal=np.zeros((episodes, cluster.slots), dtype=np.bool_),
        queue=jobs.first[:-1].copy(),
        to_come=jobs.first[:-1].copy(),
        now=np.zeros(episodes, dtype=np.int64),
        last_arrival=np.zeros(episodes, dtype=np.int64),
        leaving=np.zeros((episodes, rows + 1), dtype=np.int32),
        leaving_inverse=np.zeros((episodes, rows + 1)),
        present=np.zeros(episodes, dtype=np.int32),
        inverse=np.zeros(episodes),
        finished=np.zeros(episodes, dtype=np.int64),
        withheld_steps=np.zeros(episodes, dtype=np.int32),
        used=np.zeros(episodes),
        rewards=np.zeros((episodes, rewarded_steps)),
        done=np.zeros(episodes, dtype=np.bool_),
    )


@njit(cache=True)
def _fits_at(s: State, b: int, job: int, begin: int, usable: int) -> bool:
    if begin + s.duration[job] > usable:
        return False
    for t in range(begin, begin + s.duration[job]):
        for r in range(s.free.shape[2]):
            if s.free[b, t, r] < s.demand[job, r]:
                return False
    return True


@njit(cache=True)
def _earliest_start(s: State, rules: Rules, b: int, job: int) -> int:
    last = rules.usable - s.duration[job] if rules.place_ahead else 0
    for begin in range(last + 1):
        if _fits_at(s, b, job, begin, rules.usable):
            return begin
    return -1


@njit(cache=True)
def _look(s: State, rules: Rules, b: int) -> None:
    """Note which slots hold a job that can be placed."""
    for m in range(s.slot_job.shape[1]):
        job = s.slot_job[b, m]
        s.fits_now[b, m] = job >= 0 and _fits_at(s, b, job, 0, rules.usable)
        s.legal[b, m] = s.fits_now[b, m] or (rules.place_ahead and job >= 0 and _earliest_start(s, rules, b, job) >= 0)


@njit(cache=True)
def _admit(s: State, b: int) -> None:
    while s.to_come[b] < s.first[b + 1] and s.arrival[s.to_come[b]] <= s.now[b]:
        job = s.to_come[b]
        s.to_come[b] += 1
        s.last_arrival[b] = s.now[b]
        s.present[b] += 1
        s.inverse[b] += 1.0 / s.duration[job]
        if s.queue[b] == job:  # nobody waits in the backlog
            for m in range(s.slot_job.shape[1]):
                if s.slot_job[b, m] < 0:
                    s.slot_job[b, m] = job
                    s.queue[b] += 1
                    break


@njit(cache=True)
def _reward(objective: int, inverse_durations: float, jobs: int, shares: float) -> float:
    """Return what `rewards` does, by the objective's place in OBJECTIVES."""
    if objective == 0:
        return -inverse_durations
    if objective == 1:
        return -float(jobs)
    if objective == 2:
        return -1.0
    return shares


@njit(cache=True)
def _pass_one_step(s: State, rules: Rules, b: int) -> None:
    shares = 0.0
    for r in range(s.capacity.shape[0]):
        shares += (s.capacity[r] - s.free[b, 0, r]) / s.capacity[r]
    if s.now[b] < s.rewards.shape[1]:
        s.rewards[b, s.now[b]] = _reward(rules.objective, s.inverse[b], s.present[b], shares)
    s.used[b] += shares
    for m in range(s.slot_job.shape[1]):
        if s.fits_now[b, m]:
            s.withheld[s.slot_job[b, m]] += 1
    s.withheld_steps[b] += s.fits_now[b].any()
    s.free[b, :-1] = s.free[b, 1:].copy()
    s.free[b, -1] = s.capacity
    s.now[b] += 1
    place = s.now[b] % s.leaving.shape[1]
    s.finished[b] += s.leaving[b, place]
    s.present[b] -= s.leaving[b, place]
    s.inverse[b] -= s.leaving_inverse[b, place]
    s.leaving[b, place] = 0
    s.leaving_inverse[b, place] = 0.0
    _admit(s, b)


@njit(cache=True)
def _place(s: State, b: int, slot: int, job: int, begin: int) -> None:
    s.start[job] = s.now[b] + begin
    for t in range(begin, begin + s.duration[job]):
        s.free[b, t] -= s.demand[job]
    place = (s.start[job] + s.duration[job]) % s.leaving.shape[1]
    s.leaving[b, place] += 1
    s.leaving_inverse[b, place] += 1.0 / s.duration[job]
    s.slot_job[b, slot] = -1
    if s.queue[b] < s.to_come[b]:
        s.slot_job[b, slot] = s.queue[b]
        s.queue[b] += 1


@njit(cache=True)
def _act(s: State, rules: Rules, b: int, action: int) -> None:
    job = s.slot_job[b, action] if action < s.slot_job.shape[1] else -1
    begin = _earliest_start(s, rules, b, job) if job >= 0 else -1
    if begin < 0:
        _pass_one_step(s, rules, b)
    else:
        _place(s, b, action, job, begin)
    _look(s, rules, b)
    s.done[b] = s.finished[b] == s.first[b + 1] - s.first[b] or s.now[b] >= rules.step_limit


@njit(cache=True)
def _forced(s: State, b: int) -> int:
    """Return the only legal action of an episode, or -1 where there is a choice (core.legal_actions)."""
    legal = int(np.sum(s.legal[b]))
    if legal == 0:
        return int(s.slot_job.shape[1])
    if legal == 1 and s.fits_now[b].any() and np.all(s.free[b] == s.capacity):
        return int(np.argmax(s.legal[b]))
    return -1


@njit(cache=True)
def _go_to_next_arrival(s: State, rules: Rules, b: int) -> None:
    """Let all but the last of the steps pass in which nothing is there; users' tables may start at step 10^9."""
    if s.to_come[b] < s.first[b + 1]:
        s.now[b] = max(s.now[b], min(s.arrival[s.to_come[b]], rules.step_limit) - 1)


@njit(cache=True, parallel=True)
def begin_all(s: State, rules: Rules) -> None:
    """Reveal the jobs of step 0 and go on to the first choice of every episode."""
    for i in prange(s.now.shape[0]):
        b = int(np.int64(i))  # prange counts in uint64, for which all would be compiled once more
        _admit(s, b)
        _look(s, rules, b)
        _skip(s, rules, b)


@njit(cache=True, parallel=True)
def step_rows(s: State, rules: Rules, rows: IntArray, actions: IntArray) -> None:
    """Carry out one decision in each of some episodes."""
    for i in prange(rows.shape[0]):
        _act(s, rules, rows[i], actions[i])
        _skip(s, rules, rows[i])


@njit(cache=True)
def _skip(s: State, rules: Rules, b: int) -> None:
    while rules.skip_forced and not s.done[b]:
        if s.present[b] == 0 and s.rewards.shape[1] == 0:
            _go_to_next_arrival(s, rules, b)
        action = _forced(s, b)
        if action < 0:
            return
        _act(s, rules, b, action)
