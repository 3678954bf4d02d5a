"""State of the compiled simulator."""

from typing import Any, NamedTuple

import numpy as np

from pipeline.core.types import BoolArray, FloatArray, IntArray, KeyArray
from pipeline.problems.machines.env.nouns import JobsBatch, Machines, could_hold


class State(NamedTuple):
    """State of all episodes; letters as in `core`. Running jobs fill columns [J] from each episode's first job on."""

    first: IntArray  # [B + 1]
    arrival: FloatArray  # [J]
    duration: FloatArray  # [J]
    estimate: FloatArray  # [J]
    demand: IntArray  # [J, R]
    nodes: IntArray  # [J]
    kinds: KeyArray  # [J]
    unit_cost: FloatArray  # [J]           cost of a time unit of the job's presence
    capacity: IntArray  # [K, R]
    total: FloatArray  # [R]           capacity of all machines
    kind: IntArray  # [K]
    start: FloatArray  # [J]           nan = not started
    finish: FloatArray  # [J]           nan = not finished
    machine: IntArray  # [J]           -1 = not started
    held_first: IntArray  # [J + 1]       where the job's machines begin in `held`
    held: IntArray  # [nodes of all jobs]  machines; -1 = not started
    running: IntArray  # [J]           running jobs, a heap by their end
    runs: IntArray  # [B]           number of running jobs
    ends: FloatArray  # [J]           when a started job ends
    rank: IntArray  # [J]           number of jobs of the episode that started before it
    free: IntArray  # [B, K, R]
    in_use: IntArray  # [B, R]
    slot_job: IntArray  # [B, M]        in order of arrival; -1 = empty
    waiting: IntArray  # [B]           jobs in slots
    can: BoolArray  # [B, M, K]     could the machine hold the job now?
    able: IntArray  # [B, M]        number of such machines
    fitting: IntArray  # [B]           jobs in slots that fit
    queue: IntArray  # [B]           the backlog: jobs from here up to `to_come` that have not started
    to_come: IntArray  # [B]           the next job to arrive
    backlog: IntArray  # [B]           number of jobs in the backlog
    to_start: IntArray  # [B]           the first measured job that had not started at the last check
    now: FloatArray  # [B]
    last_arrival: FloatArray  # [B]
    present: IntArray  # [B]           jobs in the system
    rate: FloatArray  # [B]           sum of their unit costs
    cost: FloatArray  # [B]
    busy: FloatArray  # [B]
    finished: IntArray  # [B]
    done: BoolArray  # [B]
    estimated: FloatArray  # [J]           estimated end of a started job
    order: IntArray  # [J]           buffer: running jobs by estimated end
    spare: IntArray  # [B, K, R]     buffer: free units at a future time


class Rules(NamedTuple):
    """Constants of a run."""

    dispatch: int
    pause: float
    time_limit: float
    stall: float
    ahead: bool = True  # do observations show when a job will fit that does not fit now?
    measured: int = 0  # end of the measured jobs; the episode is over once they have started; 0: all are measured


def empty_state(jobs: JobsBatch, machines: Machines, unit_cost: FloatArray) -> State:
    """Return the state before the first arrival."""
    episodes, count = jobs.episodes, len(jobs.arrival)
    capacity = np.ascontiguousarray(machines.capacity, dtype=np.int64)
    (number, resources), slots = capacity.shape, machines.slots
    begin, some = np.zeros(episodes), np.diff(jobs.first) > 0  # an episode without jobs is over at 0
    begin[some] = jobs.arrival[jobs.first[:-1][some]]
    zeros: dict[str, Any] = {name: np.zeros(episodes) for name in ("rate", "cost", "busy")}
    for name in ("runs", "waiting", "fitting", "backlog", "present", "finished"):
        zeros[name] = np.zeros(episodes, dtype=np.int64)
    for name in ("running", "rank", "order"):
        zeros[name] = np.zeros(count, dtype=np.int64)
    return State(
        *jobs,
        unit_cost=np.ascontiguousarray(unit_cost, dtype=np.float64),
        capacity=capacity,
        total=capacity.sum(axis=0).astype(np.float64),
        kind=np.ascontiguousarray(machines.kind, dtype=np.int64),
        start=np.full(count, np.nan),
        finish=np.full(count, np.nan),
        machine=np.full(count, -1, dtype=np.int64),
        held_first=np.concatenate([[0], np.cumsum(jobs.nodes)]).astype(np.int64),
        held=np.full(int(jobs.nodes.sum()), -1, dtype=np.int32),
        ends=np.zeros(count),
        free=np.tile(capacity, (episodes, 1, 1)),
        in_use=np.zeros((episodes, resources), dtype=np.int64),
        slot_job=np.full((episodes, slots), -1, dtype=np.int64),
        can=np.zeros((episodes, slots, number), dtype=np.bool_),
        able=np.zeros((episodes, slots), dtype=np.int64),
        queue=jobs.first[:-1].copy(),
        to_come=jobs.first[:-1].copy(),
        to_start=jobs.first[:-1] + (machines.measured or (0, 0))[0],
        now=begin.copy(),
        last_arrival=begin.copy(),
        done=np.zeros(episodes, dtype=np.bool_),
        estimated=np.zeros(count),
        spare=np.zeros((episodes, number, resources), dtype=np.int64),
        **zeros,
    )


def state_under_way(
    jobs: JobsBatch, machines: Machines, start: FloatArray, held: IntArray, now: float, last_arrival: float
) -> State:
    """Return the state of one episode whose jobs have all arrived.

    Args:
        jobs: first the running jobs, then the waiting ones in order of arrival.
        machines: the machines that they run on.
        start: [H] starts of the H running jobs; each runs until `start + duration`, which is after now.
        held: machines of the running jobs, job by job, `nodes` for each job.
        now: the current time.
        last_arrival: time of the last arrival.
    """
    s, runs, count = empty_state(jobs, machines, np.ones(len(jobs.arrival))), len(start), len(jobs.arrival)
    s.start[:runs], s.held[: len(held)] = start, held
    s.machine[:runs] = s.held[s.held_first[:runs]]
    s.ends[:runs], s.estimated[:runs] = start + s.duration[:runs], start + s.estimate[:runs]
    s.running[:runs], s.rank[:runs], s.runs[0] = np.argsort(s.ends[:runs], kind="stable"), np.arange(runs), runs
    taken = np.repeat(s.demand[:runs], s.nodes[:runs], axis=0)
    np.subtract.at(s.free[0], held, taken)
    s.in_use[0] = taken.sum(axis=0)
    slots = min(count - runs, machines.slots)
    mine = slice(runs, runs + slots)
    can = could_hold(s.demand[mine], s.kinds[mine], s.kind, s.free[0])
    s.slot_job[0, :slots], s.can[0, :slots], s.able[0, :slots] = np.arange(runs, runs + slots), can, can.sum(axis=1)
    s.waiting[0], s.fitting[0] = slots, (s.able[0, :slots] >= s.nodes[mine]).sum()
    s.queue[0], s.to_come[0], s.backlog[0] = runs + slots, count, count - runs - slots
    s.now[0], s.last_arrival[0], s.present[0], s.rate[0] = now, last_arrival, count, count
    s.done[0] = count == 0
    return s
