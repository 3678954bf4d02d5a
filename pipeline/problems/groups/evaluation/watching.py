"""Let one policy control one jobset, and keep when jobs start, and what each group was given and used over time."""

from typing import NamedTuple

import numpy as np

from pipeline.core import FloatArray, IntArray
from pipeline.problems.groups.evaluation.foresight import Act
from pipeline.problems.groups.nouns import Jobs, SharedCluster, batch
from pipeline.problems.groups.simulator.compiled.batch import Groups
from pipeline.progress import ShareCallback, no_progress
from pipeline.simulation.rollout import to_end

STALLED = 1000  # intervals in which nobody runs, arrives or starts: nobody ever will


class Course(NamedTuple):
    """What became of a jobset, in N intervals to the end of its last job; by then, the last share holds."""

    start: FloatArray  # [J]        time; nan = never started
    finish: FloatArray  # [J]        time; nan = unfinished when the episode was cut
    begin: FloatArray  # [N]        of each interval
    share: IntArray  # [N, G, R]  units that each group may use
    used: FloatArray  # [N, G, R]  units that its jobs hold, mean over the interval
    waiting: IntArray  # [N, G]     jobs, as the interval begins

    def wait(self, jobs: Jobs) -> FloatArray:
        """Return how long each job [J] waited; nan = it never started."""
        return np.asarray(self.start - jobs.arrival)

    def slowdown(self, jobs: Jobs) -> FloatArray:
        """Return the slowdown of each job [J]; nan = it was not finished."""
        return np.maximum((self.finish - jobs.arrival) / jobs.duration, 1.0)


def watch(act: Act, jobs: Jobs, cluster: SharedCluster, on_progress: ShareCallback = no_progress) -> Course:
    """Return what a policy does with a jobset; it is cut at the cluster's time limit, or when nobody can start.

    Args:
        act: the policy.
        jobs: at least one, in order of arrival.
        cluster: that is controlled.
        on_progress: told the share of the jobs that have arrived.
    """
    groups = Groups(batch([jobs]), cluster, np.ones(len(jobs.arrival)))
    shares, waiting, idle = list[IntArray](), list[IntArray](), 0

    def advance(rows: IntArray) -> None:
        nonlocal idle
        view = groups.observe(rows)
        setting = act(groups, rows, view, np.zeros(1))
        shares.append(setting.share[0])
        waiting.append(view.waiting[0].sum(axis=1))
        groups.step(rows, setting)
        stuck = not view.running.any() and not groups.used.any() and view.now[0] > jobs.arrival[-1]
        idle = idle + 1 if stuck else 0
        on_progress(float(np.searchsorted(jobs.arrival, view.now[0])) / len(jobs.arrival))

    for _ in to_end(groups, advance):
        if idle >= STALLED:
            break
    found = groups.served()
    more = max(int(np.ceil(found.end[0] / cluster.interval)) - len(shares), 0)
    begin = cluster.interval * np.arange(len(shares) + more)
    return Course(
        start=found.start,
        finish=found.finish,
        begin=begin,
        share=np.stack([*shares, *shares[-1:] * more]),
        used=mean_use(jobs, found.start, found.finish, np.append(begin, begin[-1] + cluster.interval), cluster.groups),
        waiting=np.stack([*waiting, *[np.zeros_like(waiting[0])] * more]),
    )


def mean_use(jobs: Jobs, start: FloatArray, finish: FloatArray, edges: FloatArray, groups: int) -> FloatArray:
    """Return the units [N, G, R] that each group's jobs hold, mean over the time between N + 1 edges.

    >>> one = Jobs(*(np.array([value]) for value in (0.0, 4.0, 4.0)), np.array([[3]]), np.array([0]), np.array([0]))
    >>> mean_use(one, np.array([1.0]), np.array([5.0]), np.array([0.0, 2.0, 4.0, 6.0]), groups=1)[:, 0, 0]
    array([1.5, 3. , 1.5])
    """
    used = np.zeros((len(edges) - 1, groups, jobs.demand.shape[1]))
    until = np.where(np.isnan(finish), edges[-1], finish)
    for g in range(groups):
        mine = np.flatnonzero((jobs.group == g) & ~np.isnan(start))
        held = _held(start[mine], jobs.demand[mine], edges) - _held(until[mine], jobs.demand[mine], edges)
        used[:, g] = np.diff(held, axis=0) / np.diff(edges)[:, None]
    return np.maximum(used, 0.0)  # sums of floats may be below 0 by their last bits


def _held(time: FloatArray, demand: IntArray, edges: FloatArray) -> FloatArray:
    """Return the units times time [N, R] by each edge, of jobs that hold units [J, R] from some times [J] on."""
    order = np.argsort(time)
    none = np.zeros((1, demand.shape[1]))
    units = np.concatenate([none, np.cumsum(demand[order], axis=0)])
    since = np.concatenate([none, np.cumsum(demand[order] * time[order, None], axis=0)])
    begun = np.searchsorted(time[order], edges)
    return np.asarray(units[begun] * edges[:, None] - since[begun])
