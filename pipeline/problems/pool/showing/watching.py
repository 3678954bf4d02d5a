"""Play one jobset, and note what tables do not hold: in which steps a job was withheld, and when it left its slot.

A job is withheld in a step that passes while it stands in a slot and would have fitted. That takes a choice, so it can
only be the step that follows a decision which was asked for; moves without a choice, which the simulator makes by
itself, withhold nothing and start jobs at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.core import IntArray, KeyArray, Observation, Policy
from pipeline.problems.pool.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.outcomes import outcome
from pipeline.simulation.rollout import play


class Trace(NamedTuple):
    """What one policy did with a jobset."""

    policy: str  # its name for people
    start: IntArray  # [J]  first step of each job; -1 = never started
    finish: IntArray  # [J]  step after its last one; of an unfinished job where the episode was cut
    left: IntArray  # [J]  step in which it left its slot; its start, unless placed ahead; -1 = never
    withheld: list[list[int]]  # [J]  steps in which it was withheld
    steps: int  # length of the episode: its makespan, unless cut
    slowdown: float  # mean over jobs
    unfinished: int  # jobs

    @property
    def withheld_steps(self) -> int:
        """Return the number of steps that were not work-conserving."""
        return len({step for steps in self.withheld for step in steps})

    @property
    def withheld_jobs(self) -> int:
        """Return the number of jobs that were ever withheld."""
        return sum(1 for steps in self.withheld if steps)


def watch(
    name: str, policy: Policy, jobs: JobSet, cluster: Cluster, step_limit: int, key: KeyArray, masked: bool = True
) -> Trace:
    """Return what a policy does with a jobset.

    Args:
        name: of the policy, for people.
        policy: keeps to the legal actions if `masked`; moves without a choice are then not asked of it.
        jobs: in order of arrival.
        cluster: where they are scheduled.
        step_limit: where the episode is cut.
        key: random key [1] of the episode.
        masked: see `policy`.
    """
    jobset = batch([jobs])
    simulator = Batched(jobset, cluster, step_limit, skip_forced=masked)
    witness = Witness(simulator)
    play(simulator, policy, key, witness)
    witness.catch_up()
    end = simulator.schedule()
    steps = int(end.steps[0])
    _, slowdown, unfinished = outcome(jobset, end, step_limit)
    finish = np.where(end.finish < 0, steps, end.finish)
    numbers = float(slowdown.mean()), int(unfinished.sum())
    return Trace(name, end.start, finish, witness.left, witness.withheld, steps, *numbers)


@dataclass
class Witness:
    """Stands by while an episode is played, and sees after each decision what came of the one before."""

    simulator: Batched

    def __post_init__(self) -> None:
        self._before = self.simulator.schedule()
        self._asked_at = -1
        self._placed = False
        self.left: IntArray = self._before.start.copy()
        self.withheld: list[list[int]] = [[] for _ in self._before.start]

    def __call__(self, rows: IntArray, view: Observation, actions: IntArray) -> None:
        """Note a decision before it is carried out."""
        self.catch_up()
        slot = int(actions[0])
        self._asked_at = int(view.now[0])
        self._placed = slot < view.legal.shape[1] and bool(view.legal[0, slot, 0])

    def catch_up(self) -> None:
        """Note what came of the last decision, and of the moves without a choice since."""
        now, before = self.simulator.schedule(), self._before
        for job in np.flatnonzero(now.withheld > before.withheld):
            self.withheld[job].append(self._asked_at)
        started = np.flatnonzero((now.start >= 0) & (before.start < 0))
        self.left[started] = now.start[started]
        if self._placed:  # that job began before all that followed without a choice, for these found the cluster idle
            self.left[started[np.argmin(now.start[started])]] = self._asked_at
        self._before, self._placed = now, False


def waiting(jobs: JobSet, left: IntArray, steps: Sequence[int] | IntArray) -> IntArray:
    """Return how many jobs wait unplaced in each of some steps, in slots or behind them.

    >>> jobs = JobSet(np.array([0, 1]), np.array([2, 1]), np.array([[1], [1]]))
    >>> waiting(jobs, np.array([1, -1]), [0, 1, 2])
    array([1, 1, 1])
    """
    gone = np.sort(left[left >= 0])
    at = np.asarray(steps)
    return np.searchsorted(jobs.arrival, at, side="right") - np.searchsorted(gone, at, side="right")
