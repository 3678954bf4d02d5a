"""How good `sets` are on validation jobsets: short runs, and pieces of streams, all loads alike."""

from collections.abc import Callable, Sequence

import numpy as np

from pipeline.config import StreamWindows
from pipeline.core import keys
from pipeline.errors import UserError
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.outcomes import outcome
from pipeline.problems.pool.training.rolling import Roller
from pipeline.problems.pool.training.task import PATIENCE, Task

PIECES = 16  # of each load
MEASURED = (0.3, 0.9)  # jobs that arrive in this part of a piece count: not its empty beginning, nor its end


def validate_sets(network: Sets, task: Task) -> Callable[[], float]:
    """Return what tells the geometric mean over loads of the mean slowdown on validation jobsets; less is better.

    Short runs and streams weigh the same. A geometric mean, for else one load of a stream would decide alone.
    """
    short = [task.validation[load] for load in task.loads]
    whole = (0.0, float("inf"))

    def cost() -> float:
        costs = [[slowdown(network, jobsets, task, task.cluster, task.step_limit, whole) for jobsets in short]]
        if task.streams is not None:
            costs.append(_on_streams(network, task, task.streams))
        return float(np.exp(np.mean([np.log(kind).mean() for kind in costs])))

    return cost


def _on_streams(network: Sets, task: Task, config: StreamWindows) -> list[float]:
    steps = config.examined or config.latest + config.steps
    cluster = task.cluster._replace(slots=max(config.slots), arrivals_end=None)
    span = (MEASURED[0] * steps, MEASURED[1] * steps)
    pieces = [[task.stream("validation", load, k, steps) for k in range(PIECES)] for load in config.loads]
    return [slowdown(network, some, task, cluster, PATIENCE * steps, span) for some in pieces]


def slowdown(
    network: Sets, jobsets: Sequence[JobSet], task: Task, cluster: Cluster, limit: int, span: tuple[float, float]
) -> float:
    """Return the mean over jobsets of the mean slowdown of the jobs that arrive in a span of steps, played greedily.

    Raises:
        UserError: there are no such jobs.
    """
    jobs = batch(jobsets)
    simulator = Batched(jobs, cluster, limit, skip_forced=True)
    number = np.arange(jobs.episodes)
    Roller(simulator, network.compiled(), keys(task.seed, number, np.zeros_like(number)), greedy=True).play()
    counted = (jobs.arrival >= span[0]) & (jobs.arrival < span[1])
    each = outcome(jobs, simulator.schedule(), limit).slowdown
    total, count = (np.bincount(jobs.episode, weights=w, minlength=jobs.episodes) for w in (each * counted, counted))
    if not count.any():
        raise UserError(f"no validation job arrives in steps {span[0]:g} to {span[1]:g}: take longer streams")
    return float((total[count > 0] / count[count > 0]).mean())
