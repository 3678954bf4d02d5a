"""Play one jobset, and keep on which machines each job ran."""

from math import isnan
from typing import NamedTuple

import numpy as np

from pipeline.core import FloatArray, IntArray, KeyArray, Policy
from pipeline.problems.machines.evaluation.metrics import outcome
from pipeline.problems.machines.lookahead.planner import Planner
from pipeline.problems.machines.lookahead.playing import play_on
from pipeline.problems.machines.nouns import Jobs, Machines, end_to_end
from pipeline.problems.machines.simulator.compiled.batch import Simulator


class Trace(NamedTuple):
    """What one policy did with a jobset."""

    policy: str  # its name for people
    start: FloatArray  # [J]  nan = never started
    finish: FloatArray  # [J]  of an unfinished job where the episode was cut
    held_first: IntArray  # [J + 1]  where the machines of each job stand in `held`
    held: IntArray
    slowdown: FloatArray  # [J]  of an unfinished job the lower bound
    wait: float  # mean over jobs
    end: float  # when the episode was over
    unfinished: int  # jobs

    def machines(self, job: int) -> IntArray:
        """Return the machines of a job; none if it never started."""
        if isnan(self.start[job]):
            return self.held[:0]
        return np.sort(self.held[self.held_first[job] : self.held_first[job + 1]])


def watch(name: str, policy: Policy | Planner, jobs: Jobs, machines: Machines, key: KeyArray) -> Trace:
    """Return what a policy does with a jobset.

    Args:
        name: of the policy, for people.
        policy: which decides.
        jobs: in order of arrival.
        machines: where they are scheduled.
        key: random key [1] of the episode.
    """
    batch = end_to_end([jobs])
    simulator = Simulator(batch, machines, np.zeros(len(jobs.arrival)))
    for _ in play_on(simulator, policy, key):
        pass
    placed, held = simulator.placed(), simulator.held
    found = outcome(batch, placed, machines)
    end = float(placed.end[0])
    finish = np.where(found.unfinished, end, placed.finish)
    wait, unfinished = float(found.wait.mean()), int(found.unfinished.sum())
    return Trace(name, placed.start, finish, *held, found.slowdown, wait, end, unfinished)


def waiting(jobs: Jobs, trace: Trace) -> tuple[FloatArray, IntArray]:
    """Return the times at which the number of waiting jobs changes, and how many wait from each of them on.

    >>> jobs = Jobs(np.array([0.0, 1.0, 1.0]), *[np.ones(3)] * 5)
    >>> nothing = np.zeros(3)
    >>> trace = Trace("sjf", np.array([0.0, 1.0, 2.5]), nothing, nothing, nothing, nothing, 0.5, 4.0, 0)
    >>> [column.tolist() for column in waiting(jobs, trace)]
    [[0.0, 1.0, 2.5], [0, 1, 0]]
    """
    started = np.sort(trace.start[~np.isnan(trace.start)])
    times = np.unique(np.concatenate([jobs.arrival, started]))
    come = np.searchsorted(jobs.arrival, times, side="right")
    return times, np.asarray(come - np.searchsorted(started, times, side="right"))
