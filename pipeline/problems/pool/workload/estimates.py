"""A user's estimate of a job's run time: what policies know of it where they do not know the truth.

That of a log's job is what its user asked for, or what is predicted of it. That of a synthetic job is the duration
times a log-normal factor, exp(noise * N(0, 1)), to the nearest step, at least 1, cut to the horizon: half of the
factors are below 1, so that about as many jobs overrun as end early.
"""

import numpy as np

from pipeline.config import Params, Synthetic
from pipeline.core import IntArray
from pipeline.errors import UserError
from pipeline.logs.trace import Trace
from pipeline.problems.pool.nouns import JobSet


def check_estimates(params: Params) -> None:
    """Check that there are estimates where policies are to know no more.

    Raises:
        UserError: durations are drawn, and no noise is set.
    """
    for name, scenario in params.pool_scenarios.items():
        workload = params.workload_of(scenario)
        place, known = f"params.yaml: scenarios.{name}.policies_know", scenario.policies_know
        if known == "durations" or not isinstance(workload, Synthetic):
            continue
        if known == "predictions":
            raise UserError(f"{place}: predictions need a log, found a recipe")
        if workload.estimate_noise == 0:
            raise UserError(f"{place}: estimates need a log, or workload.estimate_noise above 0, got 0")


def estimated(jobs: JobSet, noise: float, horizon: int, rng: np.random.Generator) -> JobSet:
    """Return the same jobs, with estimates.

    Args:
        jobs: whose run times are known.
        noise: standard deviation of the estimate's logarithm.
        horizon: no estimate is longer.
        rng: of the estimates alone: the same one draws alike at any noise.

    >>> jobs = JobSet(np.array([0, 0]), np.array([3, 15]), np.array([[1], [1]]))
    >>> estimated(jobs, 0.0, 20, np.random.default_rng(1)).estimate
    array([ 3, 15])
    """
    factor = np.exp(noise * rng.standard_normal(len(jobs.duration)))
    return jobs._replace(estimate=np.clip(np.rint(jobs.duration * factor), 1, horizon).astype(np.int64))


def estimated_steps(log: Trace, step_s: int, longest: int) -> IntArray:
    """Return the estimates [J] of a log in steps, as its durations are cut."""
    return np.minimum(np.ceil(log.estimate_s / step_s), longest).astype(np.int16)


def describe_estimates(log: Trace, duration: IntArray, estimate: IntArray) -> str:
    """Return, for people, how many jobs of a log run longer than policies are told."""
    jobs, over, longer = len(log.id), int((log.run_s > log.estimate_s).sum()), int((duration > estimate).sum())
    return (
        f"run times that policies are told: {over} jobs ({over / jobs:.1%}) run longer, "
        f"{longer} ({longer / jobs:.1%}) in steps"
    )
