"""What one time unit of a job's presence costs, by objective (Deepk8s, equation 1).

The reward of an interval is minus the sum over the jobs in the system of the interval times the job's cost of a time
unit. With gamma = 1 the return of `slowdown` is minus the sum of the jobs' slowdowns (weighted turnaround), that of
`completion_time` minus the sum of their completion times.
"""

from collections.abc import Callable, Sequence

import numpy as np

from pipeline.core import SHORTEST_BOUNDED, FloatArray
from pipeline.problems.machines.nouns import Jobs, JobsBatch, Machines, end_to_end
from pipeline.problems.machines.simulator.compiled.batch import Simulator


def slowdown(jobs: JobsBatch) -> FloatArray:
    """Charge each job one over its duration."""
    return np.asarray(1.0 / jobs.duration)


def bounded_slowdown(jobs: JobsBatch) -> FloatArray:
    """Charge each job one over its duration, none taken for shorter than 10 time units (Feitelson)."""
    return np.asarray(1.0 / np.maximum(jobs.duration, SHORTEST_BOUNDED))


def completion_time(jobs: JobsBatch) -> FloatArray:
    """Charge each job 1."""
    return np.ones(len(jobs.duration))


COSTS: dict[str, Callable[[JobsBatch], FloatArray]] = {
    "slowdown": slowdown,
    "bounded_slowdown": bounded_slowdown,
    "completion_time": completion_time,
}


def costed(machines: Machines, objective: str, jobsets: Sequence[Jobs]) -> Simulator:
    """Return a simulator of some jobsets, with the costs of an objective, a word of COSTS."""
    jobs = end_to_end(jobsets)
    return Simulator(jobs, machines, COSTS[objective](jobs))
