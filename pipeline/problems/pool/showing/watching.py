"""Play one jobset, and note what tables do not hold: in which steps a job was withheld, and when it left its slot.

A job is withheld in a step that passes while it stands in a slot and would have fitted. That takes a choice, so it can
only be the step that follows a decision which was asked for; moves without a choice, which the simulator makes by
itself, withhold nothing and start jobs at once.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.core import IntArray, KeyArray, Observation, Policy
from pipeline.problems.pool.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.outcomes import outcome
from pipeline.showing.traces import Trace
from pipeline.simulation.rollout import play


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
    finish, start, left = (np.where(one < 0, np.nan, one) for one in (end.finish, end.start, witness.left))
    finish = np.where(np.isnan(finish), steps, finish)
    return Trace(name, start, finish, left, slowdown, steps, int(unfinished.sum()), described, witness.withheld)


def described(trace: Trace) -> str:
    """Return the result of a policy in words, after its mean slowdown."""
    share = trace.withheld_steps / max(trace.end, 1)
    return (
        f"makespan {trace.end:.0f}{trace.cut}\n{trace.withheld_steps} steps not work-conserving ({100 * share:.0f} %), "
        f"{trace.withheld_jobs} jobs withheld"
    )


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
