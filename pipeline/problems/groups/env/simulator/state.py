"""State of the compiled simulator of groups.

Jobs of a queue start in order of arrival. So the first job that has not started describes the whole queue: the
following jobs are linked in advance, and those that have arrived wait.

To play an interval without changing an episode, the episode is copied to a scratch row. These rows follow those of the
episodes; each part of a loop has one. Data of started jobs are stored by place: in an episode's row, places are the job
numbers; in scratch rows, they follow all jobs.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.core.types import BoolArray, FloatArray, IntArray
from pipeline.problems.groups.env.nouns import JobsBatch, SharedCluster, equal_shares

Ints = npt.NDArray[np.int64]


class State(NamedTuple):
    """All episodes; letters as in `nouns`, and X rows: B episodes, then scratch; P places: J jobs, then scratch."""

    first: IntArray  # [B + 1]
    arrival: FloatArray  # [J]
    duration: FloatArray  # [J]
    estimate: FloatArray  # [J]
    demand: IntArray  # [J, R]
    group: IntArray  # [J]
    queue: IntArray  # [J]
    weight: FloatArray  # [J]           cost of a time unit of the job's wait
    held: FloatArray  # [J]           share of all units that the job holds, mean over resources
    following: IntArray  # [J]           the next job of its queue; of the last job: the end of the episode's jobs
    capacity: IntArray  # [R]
    orders: IntArray  # [O, Q]
    base: IntArray  # [X]           first place of a row
    start: FloatArray  # [P]           nan = not started
    ends: FloatArray  # [P]           when a started job ends
    rank: IntArray  # [P]           order of jobs that end at the same time
    running: IntArray  # [P]           places; from each row's base, a heap by end time
    runs: IntArray  # [X]           number of running jobs
    to_come: IntArray  # [X]           the next job to arrive
    cost: FloatArray  # [X, G]        of waiting in the current interval
    head: IntArray  # [X, G, Q]     the first job of a queue that has not started, whether it has arrived or not
    free: IntArray  # [X, R]        units that no running job holds
    used: IntArray  # [X, G, R]
    share: IntArray  # [X, G, R]     last setting
    order: IntArray  # [X, G]        last setting
    tried: IntArray  # [X, G]        buffer: groups that may have a job to start
    able: IntArray  # [X, G]        buffer: those of them that have a job to start
    candidate: IntArray  # [X, G]        buffer: these jobs, in the order of `able`
    marked: BoolArray  # [X, G]        buffer: is the group in `tried`?
    number: IntArray  # [B]           number of the next decision
    over: BoolArray  # [B]
    recent_jobs: FloatArray  # [B, G, Q]
    recent_work: FloatArray  # [B, G, Q]


class Rules(NamedTuple):
    """Constants of a simulation."""

    interval: float
    borrowing: bool
    time_limit: float


def empty_state(jobs: JobsBatch, cluster: SharedCluster, weight: FloatArray, scratch: int) -> State:
    """Return the state before the first arrival."""
    episodes, count, groups, queues = jobs.episodes, len(jobs.arrival), cluster.groups, cluster.queues
    rows, first = episodes + scratch, np.array(jobs.first, dtype=np.int64, order="C")
    # Two episodes, because an overwritten one may also take the places of the next one.
    most = int((first[2:] - first[:-2]).max(initial=count if episodes == 1 else 0))
    places = count + scratch * most
    capacity = np.array(cluster.capacity, dtype=np.int64, order="C")
    following, head = _chains(jobs, groups, queues)
    none = np.zeros((scratch, groups, queues), dtype=np.int64)
    return State(
        first=first,
        arrival=np.array(jobs.arrival, dtype=np.float64, order="C"),
        duration=np.array(jobs.duration, dtype=np.float64, order="C"),
        estimate=np.array(jobs.estimate, dtype=np.float64, order="C"),
        demand=np.array(jobs.demand, dtype=np.int64, order="C"),
        group=np.array(jobs.group, dtype=np.int64, order="C"),
        queue=np.array(jobs.queue, dtype=np.int64, order="C"),
        weight=np.array(weight, dtype=np.float64, order="C"),
        held=(jobs.demand / capacity).mean(axis=1),
        following=following,
        capacity=capacity,
        orders=np.array(cluster.orders, dtype=np.int64, order="C"),
        base=np.concatenate([first[:-1], count + most * np.arange(scratch)]),
        start=np.full(places, np.nan),
        ends=np.full(places, np.nan),
        rank=np.arange(places),
        running=np.zeros(places, dtype=np.int64),
        runs=np.zeros(rows, dtype=np.int64),
        to_come=np.concatenate([first[:-1], np.zeros(scratch, dtype=np.int64)]),
        cost=np.zeros((rows, groups)),
        head=np.concatenate([head, none]),
        free=np.tile(capacity, (rows, 1)),
        used=np.zeros((rows, groups, len(capacity)), dtype=np.int64),
        share=np.tile(equal_shares(cluster).astype(np.int64), (rows, 1, 1)),
        order=np.zeros((rows, groups), dtype=np.int64),
        tried=np.zeros((rows, groups), dtype=np.int64),
        able=np.zeros((rows, groups), dtype=np.int64),
        candidate=np.zeros((rows, groups), dtype=np.int64),
        marked=np.zeros((rows, groups), dtype=np.bool_),
        number=np.zeros(episodes, dtype=np.int64),
        over=np.zeros(episodes, dtype=np.bool_),
        recent_jobs=np.zeros((episodes, groups, queues)),
        recent_work=np.zeros((episodes, groups, queues)),
    )


def state_under_way(
    jobs: JobsBatch,
    cluster: SharedCluster,
    scratch: int,
    start: FloatArray,
    share: IntArray,
    order: IntArray,
    recent_jobs: FloatArray,
    recent_work: FloatArray,
) -> State:
    """Return the state at time 0 of one episode in which all jobs have arrived.

    Args:
        jobs: running jobs, then waiting jobs in order of arrival.
        cluster: the shared cluster.
        scratch: number of scratch rows.
        start: [H] starts of the H running jobs, below 0; each runs until `start + duration`.
        share: units [G, R] of the last setting.
        order: indices [G] of the orders of the last setting.
        recent_jobs: [G, Q] for the next `Observation`.
        recent_work: [G, Q] for the next `Observation`.
    """
    s, runs, count = empty_state(jobs, cluster, np.ones(len(jobs.arrival)), scratch), len(start), len(jobs.arrival)
    waiting = JobsBatch._make([np.array([0, count - runs]), *(column[runs:] for column in jobs[1:])])
    following, head = _chains(waiting, cluster.groups, cluster.queues)
    s.following[runs:], s.head[:1] = following + runs, head + runs
    s.start[:runs], s.ends[:runs] = start, start + s.duration[:runs]
    s.running[:runs], s.runs[0] = np.argsort(s.ends[:runs], kind="stable"), runs
    np.add.at(s.used[0], s.group[:runs], s.demand[:runs])
    s.free[0], s.to_come[0] = s.capacity - s.used[0].sum(axis=0), count
    s.share[0], s.order[0], s.recent_jobs[0], s.recent_work[0] = share, order, recent_jobs, recent_work
    return s


def _chains(jobs: JobsBatch, groups: int, queues: int) -> tuple[Ints, Ints]:
    """Return the following job of each job [J], and the first job of every queue [B, G, Q]."""
    episode = jobs.episode
    line = (episode * groups + jobs.group) * queues + jobs.queue
    by_line = np.argsort(line, kind="stable")
    following = jobs.first[episode + 1].astype(np.int64)
    same = line[by_line[:-1]] == line[by_line[1:]]
    following[by_line[:-1][same]] = by_line[1:][same]
    head = np.repeat(jobs.first[1:], groups * queues).astype(np.int64)
    firsts = by_line[np.concatenate([[True], ~same])[: len(by_line)]]
    head[line[firsts]] = firsts
    return following, head.reshape(jobs.episodes, groups, queues)
