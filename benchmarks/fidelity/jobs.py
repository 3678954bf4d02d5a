"""Short jobs for a Slurm cluster on loopback, and the orders in which they should start.

A job sleeps for seconds, but its limit is in minutes, Slurm's smallest unit. One to two minutes of limit for a second
of sleep make limits as informative about run times as those of users. Slurm and the simulator know the same limits.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.slurm.configuration import SHORT_MIN, Cluster
from pipeline.core.types import BoolArray, FloatArray, IntArray

RUNS_S = (1, 2, 3, 4, 6, 8)
CPUS = (1, 1, 2, 2, 3, 4)  # of each node, all equally often
TWO_NODES = 0.15  # share of the jobs
OVER = (1.0, 2.0)  # minutes of the limit for each second of the run
USERS = (0.4, 0.25, 0.15, 0.1, 0.1)  # parts of the jobs
EACH_S = 0.375  # mean time between arrivals: more work than 16 CPUs can do, so that a queue grows


class ShortJobs(NamedTuple):
    """The jobs of a play in order of arrival."""

    arrival_s: FloatArray  # [J]
    run_s: IntArray  # [J]
    limit_min: IntArray  # [J]
    cpus: IntArray  # [J]  of each node
    nodes: IntArray  # [J]
    user: IntArray  # [J]


def drawn(count: int, seed: int) -> ShortJobs:
    """Draw jobs; the first arrives at time 0."""
    rng = np.random.default_rng(seed)
    run = rng.choice(RUNS_S, count)
    arrival = np.sort(rng.uniform(0.0, EACH_S * count, count))
    return ShortJobs(
        arrival_s=np.round(arrival - arrival[0], 3),
        run_s=run,
        limit_min=np.ceil(run * rng.uniform(*OVER, count)).astype(np.int64),
        cpus=rng.choice(CPUS, count),
        nodes=np.where(rng.random(count) < TWO_NODES, 2, 1),
        user=rng.choice(len(USERS), count, p=USERS),
    )


def in_minutes(jobs: ShortJobs) -> ShortJobs:
    """Return jobs that last minutes instead of seconds; their limits are in minutes already."""
    return jobs._replace(arrival_s=60.0 * jobs.arrival_s, run_s=60 * jobs.run_s)


def are_short(jobs: ShortJobs, cluster: Cluster) -> BoolArray:
    """Return which jobs [J] are submitted to the partition `short`, if the cluster has it: all short ones."""
    return np.asarray((cluster.short > 0) & (jobs.limit_min <= SHORT_MIN))


def _alike(jobs: ShortJobs) -> IntArray:
    return np.zeros_like(jobs.limit_min)


def _limit(jobs: ShortJobs) -> IntArray:
    return jobs.limit_min


def _area(jobs: ShortJobs) -> IntArray:
    return np.asarray(jobs.limit_min * jobs.cpus * jobs.nodes)


# Rank of each job, the lowest first, by the name of the heuristic with the same order.
ORDERS: dict[str, Callable[[ShortJobs], IntArray]] = {"fcfs": _alike, "sjf": _limit, "saf": _area}
