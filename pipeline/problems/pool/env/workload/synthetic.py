"""DeepRM's synthetic workload (section 4.1): arrivals at a load, short and long jobs, one dominant resource each.

Users set the load: the mean over resources of (jobs per step) * E[duration] * E[demand] / capacity. Demands are whole
units within the range of shares; jobsets without a measured job are drawn again.

The estimate of a job is its duration times a log-normal factor, exp(noise * N(0, 1)), to the nearest step, at least 1,
cut to the horizon: half of the factors are below 1, so that about as many jobs overrun as end early.
"""

import math

import numpy as np

from pipeline.core.config import AtOnce, Demand, Params, PoolEvolution, PoolScenario, Streaming, Synthetic
from pipeline.core.types import IntArray
from pipeline.errors import UserError
from pipeline.problems.pool.env.nouns import JobSet


def units(share: tuple[float, float], capacity: int) -> tuple[int, int]:
    """Return the least and the most whole units within a range of shares; raise a UserError if there are none.

    >>> units((0.25, 0.5), 20)
    (5, 10)
    """
    low = max(1, math.ceil(share[0] * capacity - 1e-9))
    high = math.floor(share[1] * capacity + 1e-9)
    if low > high:
        raise UserError(f"no whole unit lies within {share[0]:g}-{share[1]:g} of {capacity} units; give more units")
    return low, high


def load_of_one(workload: Synthetic, demand: Demand, scenario: PoolScenario) -> float:
    """Return the load in percent of one job per step."""
    shares = []
    for capacity in scenario.resources.values():
        dominant, other = sum(units(demand.dominant, capacity)) / 2, sum(units(demand.other, capacity)) / 2
        mean = (dominant + other * (len(scenario.resources) - 1)) / len(scenario.resources)
        shares.append(mean / capacity)
    return 100.0 * workload.mean_duration * sum(shares) / len(shares)


def check_synthetic(params: Params) -> None:
    """Raise a UserError if a workload cannot be drawn: too much load or duration, or demands without a whole unit."""
    for name, scenario in params.scenarios_of(PoolScenario).items():
        workload = params.workload_of(scenario)
        if not isinstance(workload, Synthetic):
            continue
        longest = workload.longest
        if longest > scenario.horizon:
            raise UserError(
                f"params.yaml: scenarios.{name}.horizon: expected at least the longest job's {longest} steps, "
                f"got {scenario.horizon}"
            )
        most = _reachable(params, scenario, scenario.demand, f"scenarios.{name}")
        if scenario.arrivals.name == "bernoulli" and max(scenario.loads) > most + 1e-9:
            raise UserError(
                f"params.yaml: scenarios.{name}.loads: {max(scenario.loads)} % cannot be reached by bernoulli "
                f"arrivals, at most one job a step: the largest reachable load is {most:.2f} %; use poisson arrivals"
            )
    for name, agent in params.agents.items():
        if isinstance(agent.finetune, PoolEvolution):
            for demand in agent.finetune.demands or ():
                _reachable(params, params.pool_scenario(agent.scenario), demand, f"agents.{name}.finetune")


def _reachable(params: Params, scenario: PoolScenario, demand: str, place: str) -> float:
    """Return the load in percent of one job per step, 0 for a log; raise a UserError if a demand has no whole unit."""
    workload = params.workload_of(scenario)
    try:
        return load_of_one(workload, params.demands[demand], scenario) if isinstance(workload, Synthetic) else 0.0
    except UserError as error:
        raise UserError(f"params.yaml: {place}: demand '{demand}': {error}") from error


def draw_jobset(
    workload: Synthetic, demand: Demand, scenario: PoolScenario, load: int, rng: np.random.Generator
) -> JobSet:
    """Draw one jobset at a load in percent."""
    arrival = _arrivals(load / load_of_one(workload, demand, scenario), scenario, rng)
    jobs = len(arrival)
    short = rng.random(jobs) < workload.short_share
    spans = (rng.integers(low, high + 1, jobs) for low, high in (workload.short, workload.long))
    duration = np.where(short, *spans)
    dominant = rng.integers(len(scenario.resources), size=jobs)
    columns = []
    for r, capacity in enumerate(scenario.resources.values()):
        much, little = units(demand.dominant, capacity), units(demand.other, capacity)
        draws = (rng.integers(low, high + 1, jobs) for low, high in (much, little))
        columns.append(np.where(dominant == r, *draws))
    return JobSet(arrival, duration, np.column_stack(columns))


def _arrivals(rate: float, scenario: PoolScenario, rng: np.random.Generator) -> IntArray:
    arrivals = scenario.arrivals
    if isinstance(arrivals, AtOnce):
        return np.zeros(arrivals.jobs, dtype=np.int64)
    while True:
        many = _in_each_step(rate, arrivals, rng)
        if many[slice(*(arrivals.measured or (0, None)))].any():
            return np.repeat(np.arange(arrivals.steps), many)


def _in_each_step(rate: float, arrivals: Streaming, rng: np.random.Generator) -> IntArray:
    """Return the number of jobs in each step; larger bursts are rarer, so that the rate of jobs stays the same."""
    if arrivals.size is not None:
        step = np.repeat(np.arange(arrivals.steps), rng.poisson(rate / arrivals.size, arrivals.steps))
        jobs = rng.geometric(1.0 / arrivals.size, len(step))
        return np.bincount(step, weights=jobs, minlength=arrivals.steps).astype(np.int64)
    if arrivals.name == "bernoulli":
        return (rng.random(arrivals.steps) < rate).astype(np.int64)
    return rng.poisson(rate, arrivals.steps)


def check_estimates(params: Params) -> None:
    """Raise a UserError for a scenario with estimates whose workload has none."""
    for name, scenario in params.scenarios_of(PoolScenario).items():
        workload = params.workload_of(scenario)
        place, known = f"params.yaml: scenarios.{name}.policies_know", scenario.policies_know
        if known == "durations" or not isinstance(workload, Synthetic):
            continue
        if known == "predictions":
            raise UserError(f"{place}: predictions need a log, found a recipe")
        if workload.estimate_noise == 0:
            raise UserError(f"{place}: estimates need a log, or workload.estimate_noise above 0, got 0")


def estimated(jobs: JobSet, noise: float, horizon: int, rng: np.random.Generator) -> JobSet:
    """Return jobs with estimates up to the horizon; `noise` is the standard deviation of log(estimate / duration).

    >>> jobs = JobSet(np.array([0, 0]), np.array([3, 15]), np.array([[1], [1]]))
    >>> estimated(jobs, 0.0, 20, np.random.default_rng(1)).estimate
    array([ 3, 15])
    """
    factor = np.exp(noise * rng.standard_normal(len(jobs.duration)))
    return jobs._replace(estimate=np.clip(np.rint(jobs.duration * factor), 1, horizon).astype(np.int64))
