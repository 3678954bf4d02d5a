"""Play policies on the same jobsets: all loads and jobsets of a scenario in lock step."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.core import Cluster, JobSet, Policy, batch, keys
from pipeline.evaluation.metrics import job_results, jobset_results
from pipeline.simulator.batched import Batched
from pipeline.simulator.rollout import play

MOST_JOBSETS = 1_000_000  # of one load; keeps the keys of (load, jobset) apart

# Column of the jobset table that an objective is judged by, and the sign that makes less better.
JUDGED_BY = {
    "slowdown": ("mean_slowdown", 1),
    "completion_time": ("completion_time", 1),
    "makespan": ("makespan", 1),
    "utilisation": ("utilisation", -1),
}


class Results(NamedTuple):
    """What became of every job, and of every jobset."""

    jobs: pd.DataFrame
    jobsets: pd.DataFrame

    @property
    def by_load(self) -> dict[int, float]:
        """Return the mean slowdown at each load: the mean over jobsets of the jobset's mean."""
        means = self.jobsets.groupby("load")["mean_slowdown"].mean()
        return {int(load): float(mean) for load, mean in zip(means.index, means, strict=True)}

    @property
    def mean(self) -> float:
        """Return the mean slowdown over loads."""
        return float(np.mean(list(self.by_load.values())))


def score(
    name: str,
    policy: Policy,
    jobsets: Mapping[int, Sequence[JobSet]],
    cluster: Cluster,
    step_limit: int,
    seed: int,
    masked: bool = True,
) -> Results:
    """Return the results of one policy on jobsets by load.

    Args:
        name: of the policy in the tables.
        policy: keeps to the legal actions if `masked`; moves without a choice are then not asked of it.
        jobsets: by load, in percent.
        cluster: where they are scheduled.
        step_limit: where an episode is cut, its unfinished jobs counted.
        seed: of the policy's draws, if it makes any.
        masked: see `policy`.
    """
    load = np.concatenate([np.full(len(group), load) for load, group in jobsets.items()])
    number = np.concatenate([np.arange(len(group)) for group in jobsets.values()])
    jobs = batch([jobs for group in jobsets.values() for jobs in group])
    simulator = Batched(jobs, cluster, step_limit, skip_forced=masked)
    play(simulator, policy, keys(seed, load * MOST_JOBSETS + number, np.zeros_like(number)))
    end = simulator.schedule()
    return Results(
        job_results(name, load, number, jobs, end, step_limit),
        jobset_results(name, load, number, jobs, end, step_limit),
    )


def judge(results: Results, objective: str) -> float:
    """Return how good results are by an objective; less is better.

    The mean over loads of the mean over jobsets, as in every comparison.
    """
    column, sign = JUDGED_BY[objective]
    return sign * float(results.jobsets.groupby("load")[column].mean().mean())
