"""The least mean slowdown of a jobset with full knowledge of its jobs, by OR-Tools' CP-SAT.

Jobs run without interruption, start no earlier than they arrive, and never hold more units than the cluster has; slots
are no limit. One worker runs the strategies in turn and stops after a deterministic time, so that a jobset gives the
same bytes on any machine. Starts may be later than the end of the warm schedule: waiting for short jobs can pay
although everything ends later, and a bound must hold for those schedules, too.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core.types import IntArray
from pipeline.problems.pool.env.nouns import Cluster, JobSet

MOST = 10**9  # maximum of the least common multiple of durations; beyond it weights are rounded down
ROUNDED = 10**6
NEARLY = 1e-9


class Work(NamedTuple):
    """One jobset to be solved."""

    jobs: JobSet
    warm: IntArray  # [J]  start times of the best known schedule


class Hindsight(NamedTuple):
    """The best schedule found for a jobset, and a bound on any better one."""

    start: IntArray  # [J]
    objective: float  # mean slowdown
    bound: float  # no schedule has a lower objective
    status: str  # OPTIMAL, FEASIBLE, or WARM: the warm start, neither improved nor proven optimal


def mean_slowdown(jobs: JobSet, start: IntArray) -> float:
    """Return the mean slowdown of a schedule."""
    return float(((start + jobs.duration - jobs.arrival) / jobs.duration).mean())


def check_schedule(jobs: JobSet, cluster: Cluster, start: IntArray) -> None:
    """Raise a ValueError if a job starts before it arrives, or jobs hold more units than there are."""
    early = np.flatnonzero(start < jobs.arrival)
    if len(early):
        job = early[0]
        raise ValueError(f"job {job} starts at {start[job]}, before it arrives at {jobs.arrival[job]}")
    held = np.zeros((int((start + jobs.duration).max()), len(cluster.capacity)), dtype=np.int64)
    for first, duration, demand in zip(start, jobs.duration, jobs.demand, strict=True):
        held[first : first + duration] += demand
    over = np.argwhere(held > np.array(cluster.capacity))
    if len(over):
        step, resource = over[0]
        raise ValueError(f"step {step}: {held[step, resource]} units of resource {resource} in use")


def solve_work(work: Work, cluster: Cluster, limit: float, seed: int) -> Hindsight:
    """Return the best schedule found, never worse than the warm one.

    `limit` is in units of deterministic time. A schedule that breaks a rule of the cluster raises a ValueError.
    """
    jobs, best = work
    check_schedule(jobs, cluster, best)
    found, bound = _search(jobs, cluster, best, limit, seed)
    slowdown = mean_slowdown(jobs, best)
    status = "WARM"
    if found is not None and mean_slowdown(jobs, found) < slowdown - NEARLY:
        check_schedule(jobs, cluster, found)
        best, slowdown, status = found, mean_slowdown(jobs, found), "FEASIBLE"
    bound = min(max(bound, 1.0), slowdown)
    return Hindsight(best, slowdown, bound, "OPTIMAL" if slowdown - bound <= NEARLY else status)


def weights_of(duration: IntArray) -> tuple[list[int], int]:
    """Return whole weights of the steps from arrival to completion, and their scale.

    They are exact if the durations have a small common multiple; otherwise they are rounded down, so bounds stay valid.

    >>> weights_of(np.array([2, 3]))
    ([3, 2], 6)
    """
    common = math.lcm(*(int(steps) for steps in duration))
    scale = common if common <= MOST else ROUNDED
    return [scale // int(steps) for steps in duration], scale


def latest_starts(jobs: JobSet, warm: IntArray, weight: Sequence[int]) -> list[int]:
    """Return the latest start of each job in any better schedule.

    No single job may cost more than the whole warm schedule, and no job ends later than if all jobs ran one by one
    after the last arrival.
    """
    steps, spent = jobs.duration.tolist(), (warm + jobs.duration - jobs.arrival).tolist()
    spare = sum(w * (one - least) for w, one, least in zip(weight, spent, steps, strict=True))
    end = max(int(jobs.arrival.max()) + sum(steps), int((warm + jobs.duration).max()))
    rows = zip(jobs.arrival.tolist(), steps, weight, strict=True)
    return [min(arrival + spare // w, end - duration) for arrival, duration, w in rows]


def _search(jobs: JobSet, cluster: Cluster, warm: IntArray, limit: float, seed: int) -> tuple[IntArray | None, float]:
    """Return the start times that CP-SAT found, if any, and its bound of the mean slowdown."""
    from ortools.sat.python import cp_model  # slow to import

    weight, scale = weights_of(jobs.duration)
    model, duration = cp_model.CpModel(), jobs.duration.tolist()
    latest = latest_starts(jobs, warm, weight)
    start = [
        model.new_int_var(low, high, f"start{k}")
        for k, (low, high) in enumerate(zip(jobs.arrival.tolist(), latest, strict=True))
    ]
    running = [model.new_fixed_size_interval_var(start[k], steps, f"run{k}") for k, steps in enumerate(duration)]
    for resource, units in enumerate(cluster.capacity):
        model.add_cumulative(running, jobs.demand[:, resource].tolist(), units)
    least = sum(w * (steps - at) for w, steps, at in zip(weight, duration, jobs.arrival.tolist(), strict=True))
    model.minimize(cp_model.LinearExpr.weighted_sum(start, weight) + least)
    for variable, at in zip(start, warm.tolist(), strict=True):
        model.add_hint(variable, at)
    solver = cp_model.CpSolver()
    rules = solver.parameters
    rules.num_workers, rules.interleave_search = 1, True  # large neighbourhoods among its strategies
    rules.max_deterministic_time, rules.random_seed = limit, seed % 2**31
    rules.catch_sigint_signal = False
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, 1.0
    found = np.array([solver.value(variable) for variable in start], dtype=np.int64)
    return found, solver.best_objective_bound / scale / len(duration)
