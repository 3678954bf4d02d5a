"""Offline search: good schedules of known jobs in a second or two.

A policy that draws its actions gives several schedules of the same jobsets; the best of each jobset is chosen. The
search continues from the order of its starts. The result is never worse than that schedule.
"""

from collections.abc import Sequence

import numpy as np

from pipeline.core.types import FloatArray, IntArray, keys
from pipeline.problems.pool.env.nouns import JobBatch
from pipeline.problems.pool.env.simulator.list_scheduling import improved
from pipeline.simulation.results import jobset_means


def search(jobs: JobBatch, capacity: Sequence[int], orders: IntArray, evaluations: int, seed: int) -> IntArray:
    """Return the starts [J] of the best schedules found, given an initial order of each jobset's jobs.

    Args:
        jobs: known from the start.
        capacity: units of each resource.
        orders: jobs [J] by their number in the batch, jobset after jobset; see `order_of`.
        evaluations: number of schedules to try for each jobset, including that of its initial order.
        seed: seed of the draws; each jobset has its own draws, by its number in the batch.
    """
    if evaluations < 1:
        raise ValueError(f"evaluations: expected at least 1, got {evaluations}")
    number = np.arange(jobs.episodes)
    return improved(jobs, capacity, orders, evaluations, keys(seed, number, np.zeros_like(number)))


def best_of_k(jobs: JobBatch, starts: IntArray) -> IntArray:
    """Return the starts [J] of the best of k schedules [k, J] for each jobset; of equals, the first."""
    slowdown = np.array([mean_slowdown(jobs, start) for start in starts])
    best = slowdown.argmin(axis=0)[jobs.episode]
    return np.asarray(starts[best, np.arange(starts.shape[1])])


def order_of(jobs: JobBatch, start: IntArray) -> IntArray:
    """Return the jobs [J] of each jobset in order of their starts, then numbers; those never started are last.

    >>> jobs = JobBatch(np.array([0, 2, 4]), *(np.ones(4, dtype=int) for _ in range(2)), np.ones((4, 1), dtype=int))
    >>> order_of(jobs, np.array([7, 3, -1, 5]))
    array([1, 0, 3, 2])
    """
    return np.lexsort((start, start < 0, jobs.episode))


def mean_slowdown(jobs: JobBatch, start: IntArray) -> FloatArray:
    """Return the mean slowdown [B] of each jobset; infinite where a job never started."""
    slowdown = (start + jobs.duration - jobs.arrival) / jobs.duration
    return jobset_means(jobs, np.where(start < 0, np.inf, slowdown))
