"""Evolution of an explicit value function; all candidates play the same fresh jobsets."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from pipeline.core.config import Evolution, EvolutionRecipe
from pipeline.core.types import FloatArray, IntArray
from pipeline.learning import evolution as cma
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.groups.agents.networks.features import states
from pipeline.problems.groups.agents.networks.q_network import tensors
from pipeline.problems.groups.agents.networks.worth import Worth, first_weights
from pipeline.problems.groups.agents.training.task import Task
from pipeline.problems.groups.env.evaluation.controllers import decided, setting_of
from pipeline.problems.groups.env.nouns import Jobs, Observation, Setting
from pipeline.problems.groups.env.simulator.rewards import WAITING, transitions


def evolution(network: Worth, task: Task, config: Evolution, memory: Memory | None = None) -> Iterator[Update]:
    """Search for the weights of a value function with the least cost, one generation per update.

    A candidate's cost at a load is relative to the generation's mean, so that all loads have equal weight. Half of it
    is the mean, half the root mean square, which long waits dominate: otherwise a few jobs would starve for many.
    """
    memory, recipe = memory or Memory(), task.recipe_for(EvolutionRecipe)
    first = first_weights(network.shape.queues).numpy()
    search = cma.Evolution(first, recipe.spread, recipe.population, task.seed, recipe.averaged)
    memory.keep(search=search)
    loads = min(len(task.loads), config.jobsets)
    for step in range(memory.done + 1, config.updates + 1):
        jobsets, _ = task.draw(step, config.jobsets)
        cost = costs(network, task, search.ask(), jobsets)
        by_load = np.stack([cost[:, :, k::loads].mean(axis=2) for k in range(loads)])
        search.tell((by_load / np.maximum(by_load.mean(axis=2, keepdims=True), 1e-9)).mean(axis=(0, 1)))
        with torch.no_grad():
            network.weight.copy_(torch.from_numpy(search.mean))
        mean = by_load[:, 0].mean(axis=0)
        yield Update(step, {"cost": float(mean.mean()), "best_cost": float(mean.min())})


def costs(network: Worth, task: Task, candidates: FloatArray, jobsets: Sequence[Jobs]) -> FloatArray:
    """Return the mean and root mean square [2, P, J] of the cost of a job's wait, by candidate [P, W] and jobset."""
    weights = torch.from_numpy(candidates.astype("float32"))
    units = torch.from_numpy(task.configurations.units.astype("float32"))
    groups, total = task.begin([*jobsets] * len(candidates)), task.cluster.capacity

    def acts(rows: IntArray, view: Observation) -> Setting:
        with torch.no_grad():
            values = network.values(tensors(states(view, task.cluster)), units, weights[rows // len(jobsets)])
        chosen = decided(values[..., None].numpy(), task.configurations, total)
        return setting_of(chosen, view, task.configurations, total)

    for _ in transitions(groups, acts, "zero"):
        pass
    jobs, served = groups.jobs, groups.served()
    start = np.where(np.isnan(served.start), served.end[jobs.episode], served.start)
    cost = WAITING[task.objective](jobs) * np.maximum(start - jobs.arrival, 0)
    powers = [np.bincount(jobs.episode, cost**power) / np.diff(jobs.first) for power in (1, 2)]
    return np.stack([powers[0], powers[1] ** 0.5]).reshape(2, len(candidates), len(jobsets))
