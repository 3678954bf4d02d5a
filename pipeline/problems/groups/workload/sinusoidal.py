"""Jobs of user groups whose loads rise and fall out of phase, drawn from a recipe.

Arrivals of each group are a Poisson process whose rate is a sine of time, drawn by thinning one of the highest rate.
Queue, run time and demand of a job are independent of each other's draws and of time; run times are log-normal and not
cut. Load = arrivals per unit of time * E[run time] * E[demand] / capacity, mean over resources, exactly over whole
periods; every group has an equal part of it, so that one with short jobs has more of them.
"""

import math
from collections.abc import Mapping

import numpy as np

from pipeline.config import GroupsScenario, Sinusoidal
from pipeline.core import FloatArray
from pipeline.problems.groups.nouns import Jobs


def mix_of(workload: Sinusoidal, group: int) -> Mapping[str, float]:
    """Return the queues' shares of a group's jobs; groups take the mixes in turn."""
    return workload.mixes[group % len(workload.mixes)]


def load_of_one(workload: Sinusoidal, scenario: GroupsScenario, group: int) -> float:
    """Return the load in percent that one job of a group makes in each unit of time."""
    medians = sum(share * workload.run[queue] for queue, share in mix_of(workload, group).items())
    shares = [float(np.mean(workload.demand[name])) / units for name, units in scenario.resources.items()]
    return 100 * medians * math.exp(workload.spread**2 / 2) * sum(shares) / len(shares)


def mean_rates(workload: Sinusoidal, scenario: GroupsScenario, load: int) -> FloatArray:
    """Return each group's mean arrivals [G] per unit of time at a load in percent."""
    each = load / scenario.groups
    return np.array([each / load_of_one(workload, scenario, group) for group in range(scenario.groups)])


def swung(workload: Sinusoidal, scenario: GroupsScenario, group: int, time: FloatArray) -> FloatArray:
    """Return what a group's mean rate is multiplied with, at each time."""
    turn = time / (workload.period * scenario.interval) + group / scenario.groups
    return np.asarray(1 + workload.amplitude * np.sin(2 * np.pi * turn))


def draw_jobs(workload: Sinusoidal, scenario: GroupsScenario, load: int, rng: np.random.Generator) -> Jobs:
    """Draw one jobset at a load in percent; one without a job is drawn again."""
    rates = mean_rates(workload, scenario, load)
    while True:
        groups = [_of_one(workload, scenario, group, rate, rng) for group, rate in enumerate(rates)]
        columns = [np.concatenate(column) for column in zip(*groups, strict=True)]
        if len(columns[0]):
            order = np.argsort(columns[0], kind="stable")  # jobs of one time: the first group's first
            return Jobs._make(column[order] for column in columns)


def _of_one(workload: Sinusoidal, scenario: GroupsScenario, group: int, rate: float, rng: np.random.Generator) -> Jobs:
    """Draw the jobs of one group, in order of arrival."""
    span = workload.intervals * scenario.interval
    highest = 1 + workload.amplitude
    often = np.sort(rng.uniform(0, span, rng.poisson(rate * highest * span)))
    arrival = often[rng.uniform(0, highest, len(often)) < swung(workload, scenario, group, often)]
    jobs, mix = len(arrival), mix_of(workload, group)
    queue = rng.choice(len(scenario.queues), jobs, p=[mix[name] for name in scenario.queues])
    medians = np.array([workload.run[name] for name in scenario.queues])
    duration = medians[queue] * np.exp(workload.spread * rng.standard_normal(jobs))
    amounts = [np.array(workload.demand[name], dtype=np.int64) for name in scenario.resources]
    demand = np.column_stack([rng.choice(some, jobs) for some in amounts])
    return Jobs(arrival, duration, duration, demand, np.full(jobs, group), queue.astype(np.int64))
