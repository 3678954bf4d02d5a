"""What the compiled simulator of groups keeps of its episodes.

Nobody overtakes inside a queue, so a queue is all that is known of it by its first job that has not started: the jobs
behind it are chained once and for all, and those of them that have arrived wait.

To play an interval without changing an episode, it is copied to a desk: a row behind those of the episodes, of which
each thread has one. What is kept of started jobs stands by their places: those of an episode's row are the jobs'
numbers, those of a desk lie behind all jobs.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.core import BoolArray, FloatArray, IntArray
from pipeline.problems.groups.nouns import JobsBatch, SharedCluster, equal_shares

Ints = npt.NDArray[np.int64]


class State(NamedTuple):
    """All episodes; letters as in `groups`, and X rows: B episodes, then the desks; P places: J, then the desks'."""

    first: IntArray  # [B + 1]
    arrival: FloatArray  # [J]
    duration: FloatArray  # [J]
    estimate: FloatArray  # [J]
    demand: IntArray  # [J, R]
    group: IntArray  # [J]
    queue: IntArray  # [J]
    weight: FloatArray  # [J]           what a time unit of its waiting costs
    held: FloatArray  # [J]           share of all units that it holds, mean over resources
    behind: IntArray  # [J]           the next job of its queue; after the last: the end of the episode's jobs
    capacity: IntArray  # [R]
    orders: IntArray  # [O, Q]
    base: IntArray  # [X]           the first of a row's places
    start: FloatArray  # [P]           nan = not started
    ends: FloatArray  # [P]           when a started job ends
    rank: IntArray  # [P]           which of the jobs that end at one time comes first
    running: IntArray  # [P]           places, from each row's base on a heap by their end
    runs: IntArray  # [X]           how many
    to_come: IntArray  # [X]           the next job to arrive
    cost: FloatArray  # [X, G]        of waiting in the interval that is played
    head: IntArray  # [X, G, Q]     the first job of a queue that has not started, be it that it has not arrived
    free: IntArray  # [X, R]        units that no running job holds
    used: IntArray  # [X, G, R]
    share: IntArray  # [X, G, R]     as set last
    order: IntArray  # [X, G]        as set last
    tried: IntArray  # [X, G]        buffer: groups that may have a job to start
    able: IntArray  # [X, G]        buffer: those of them that have one
    candidate: IntArray  # [X, G]        buffer: that job, place by place of `able`
    marked: BoolArray  # [X, G]        buffer: is the group in `tried`?
    number: IntArray  # [B]           of the decision that it is at
    over: BoolArray  # [B]
    recent_jobs: FloatArray  # [B, G, Q]
    recent_work: FloatArray  # [B, G, Q]


class Rules(NamedTuple):
    """Constants of a run."""

    interval: float
    borrowing: bool
    time_limit: float


def empty_state(jobs: JobsBatch, cluster: SharedCluster, weight: FloatArray, desks: int) -> State:
    """Return the state before anything has arrived."""
    episodes, count, groups, queues = jobs.episodes, len(jobs.arrival), cluster.groups, cluster.queues
    rows, first = episodes + desks, np.array(jobs.first, dtype=np.int64, order="C")
    # Two episodes: one that is overwritten may take the places of the next one, too.
    most = int((first[2:] - first[:-2]).max(initial=count if episodes == 1 else 0))
    places = count + desks * most
    capacity = np.array(cluster.capacity, dtype=np.int64, order="C")
    behind, head = _chains(jobs, groups, queues)
    none = np.zeros((desks, groups, queues), dtype=np.int64)
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
        behind=behind,
        capacity=capacity,
        orders=np.array(cluster.orders, dtype=np.int64, order="C"),
        base=np.concatenate([first[:-1], count + most * np.arange(desks)]),
        start=np.full(places, np.nan),
        ends=np.full(places, np.nan),
        rank=np.arange(places),
        running=np.zeros(places, dtype=np.int64),
        runs=np.zeros(rows, dtype=np.int64),
        to_come=np.concatenate([first[:-1], np.zeros(desks, dtype=np.int64)]),
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
    desks: int,
    start: FloatArray,
    share: IntArray,
    order: IntArray,
    recent_jobs: FloatArray,
    recent_work: FloatArray,
) -> State:
    """Return the state of one episode at time 0, of which all jobs have arrived.

    Args:
        jobs: those that run, and then those that wait in order of arrival.
        cluster: that groups share.
        desks: see `empty_state`.
        start: when the first H jobs started, below 0; they run until `start + duration`.
        share: units [G, R] as set last.
        order: places [G] as set last.
        recent_jobs: see `Observation`, as the next one [G, Q].
        recent_work: the same.
    """
    s, runs, count = empty_state(jobs, cluster, np.ones(len(jobs.arrival)), desks), len(start), len(jobs.arrival)
    waiting = JobsBatch._make([np.array([0, count - runs]), *(column[runs:] for column in jobs[1:])])
    behind, head = _chains(waiting, cluster.groups, cluster.queues)
    s.behind[runs:], s.head[:1] = behind + runs, head + runs
    s.start[:runs], s.ends[:runs] = start, start + s.duration[:runs]
    s.running[:runs], s.runs[0] = np.argsort(s.ends[:runs], kind="stable"), runs
    np.add.at(s.used[0], s.group[:runs], s.demand[:runs])
    s.free[0], s.to_come[0] = s.capacity - s.used[0].sum(axis=0), count
    s.share[0], s.order[0], s.recent_jobs[0], s.recent_work[0] = share, order, recent_jobs, recent_work
    return s


def _chains(jobs: JobsBatch, groups: int, queues: int) -> tuple[Ints, Ints]:
    """Return the job behind each one [J], and the first of every queue [B, G, Q]."""
    episode = jobs.episode
    line = (episode * groups + jobs.group) * queues + jobs.queue
    by_line = np.argsort(line, kind="stable")
    behind = jobs.first[episode + 1].astype(np.int64)
    same = line[by_line[:-1]] == line[by_line[1:]]
    behind[by_line[:-1][same]] = by_line[1:][same]
    head = np.repeat(jobs.first[1:], groups * queues).astype(np.int64)
    firsts = by_line[np.concatenate([[True], ~same])[: len(by_line)]]
    head[line[firsts]] = firsts
    return behind, head.reshape(jobs.episodes, groups, queues)
