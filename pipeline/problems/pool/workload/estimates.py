"""Estimates of run times, for policies that do not know the run times.

Estimates of a log are the users' requests, or predictions. That of a synthetic job is the duration times a log-normal
factor, exp(noise * N(0, 1)), to the nearest step, at least 1, cut to the horizon: half of the factors are below 1, so
that about as many jobs overrun as end early.
"""

import numpy as np

from pipeline.config import Params, Synthetic
from pipeline.errors import UserError
from pipeline.problems.pool.nouns import JobSet


def check_estimates(params: Params) -> None:
    """Raise a UserError for a scenario with estimates whose workload has none."""
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
    """Return the same jobs with estimates up to the horizon; `noise` is the standard deviation of their logarithm.

    >>> jobs = JobSet(np.array([0, 0]), np.array([3, 15]), np.array([[1], [1]]))
    >>> estimated(jobs, 0.0, 20, np.random.default_rng(1)).estimate
    array([ 3, 15])
    """
    factor = np.exp(noise * rng.standard_normal(len(jobs.duration)))
    return jobs._replace(estimate=np.clip(np.rint(jobs.duration * factor), 1, horizon).astype(np.int64))
