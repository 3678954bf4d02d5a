"""Evolution of a linear network's weights by CMA-ES, one generation an update (`pipeline.learning.evolution`).

Where a few weights decide thousands of times, and one unlucky decision costs more than all others, the gradient of a
policy that draws its actions is lost in noise. Here every candidate plays greedily, all of a generation on the same
fresh jobsets. A candidate costs, as a mean over loads, the mean cost of a job over that of a rule on the same jobsets,
plus a weight times the same of the tail: the 99th percentile and the longest of waits. So starvation costs something,
and no load counts more because its jobs cost more.
"""

from collections.abc import Iterator
from copy import deepcopy

import numpy as np
import torch

from pipeline.config import EvolutionRecipe, MachinesEvolution
from pipeline.core import CompiledRule, FloatArray, keys
from pipeline.learning.evolution import Evolution
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.machines.evaluation.metrics import measured_part, outcome
from pipeline.problems.machines.heuristics.teachers import TEACHERS
from pipeline.problems.machines.networks.actor_critic import ActorCritic, Linear
from pipeline.problems.machines.networks.compiled_linear import LinearWeights, play_linear
from pipeline.problems.machines.simulator.compiled.batch import Simulator
from pipeline.problems.machines.simulator.compiled.rules import players
from pipeline.problems.machines.training.task import Task
from pipeline.simulation.results import jobset_means, percentile
from pipeline.simulation.rollout import play_compiled


def evolution(
    network: ActorCritic, task: Task, config: MachinesEvolution, memory: Memory | None = None
) -> Iterator[Update]:
    """Move a linear network's weights to where candidates cost little, one generation an update."""
    memory = memory or Memory()
    recipe = task.recipe_for(EvolutionRecipe)
    if not isinstance(network, Linear):
        raise TypeError(f"expected a linear network, got {type(network).__name__}")
    start = deepcopy(network)
    memory.keep(start=start)  # the search goes on from its generations, and these from the first weights
    search = Evolution(weights_in(start), recipe.spread, recipe.population, task.seed, recipe.averaged)
    memory.keep(evolution=search)
    for step in range(memory.done + 1, config.updates + 1):
        jobsets = task.draw(step, config.jobsets)
        base = task.begin(jobsets)
        play_rule(base, TEACHERS[config.base])
        candidates = search.ask()
        tried = task.begin(jobsets * len(candidates))
        play_candidates(network, tried, candidates)
        cost = costs(tried, base, task, config.tail, network.shape.unit)
        search.tell(cost)
        set_weights(network, search.mean)
        yield Update(step, {"cost": float(cost.mean()), "best_cost": float(cost.min())})


def play_rule(simulator: Simulator, rule: CompiledRule) -> None:
    """Let a compiled rule play every episode to its end."""
    number = np.arange(simulator.jobs.episodes)
    key = keys(0, number, np.zeros_like(number))  # of draws, which rules to compare with do not make
    for _ in play_compiled(simulator, players([rule] * len(key), key)):
        pass


def play_candidates(network: Linear, simulator: Simulator, candidates: FloatArray) -> None:
    """Let every candidate [C, W] play greedily, each in as many episodes in a row, to their end."""
    each = simulator.jobs.episodes // len(candidates)
    whose = np.repeat(candidates.astype(np.float32), each, axis=0)  # as the network will hold them
    parts = np.split(whose, np.cumsum([len(network.of_job), len(network.of_pair)]), axis=1)
    play_linear(simulator, network.shape, LinearWeights(*(np.ascontiguousarray(part) for part in parts)))


def costs(tried: Simulator, base: Simulator, task: Task, tail: float, unit: float) -> FloatArray:
    """Return what each candidate [C] costs, see above.

    Args:
        tried: episodes of all candidates, over; each had the jobsets of `base` in a row.
        base: episodes of the rule, over.
        task: its loads, which jobsets have in turn, and its objective.
        tail: weight of the tail.
        unit: time that is added to both waits, so that where neither waits they are equal.
    """
    found, usual = _measures(tried, task.objective), _measures(base, task.objective)
    loads, count = len(task.loads), len(usual[0])
    ratios = []
    for value, other, more in zip(found, usual, (0.0, unit, unit), strict=True):
        mine = value.reshape(-1, count)
        by_load = [(mine[:, k::loads].mean(axis=1) + more) / (other[k::loads].mean() + more) for k in range(loads)]
        ratios.append(np.mean(by_load, axis=0))
    return np.asarray(ratios[0] + tail * (ratios[1] + ratios[2]) / 2)


def _measures(simulator: Simulator, objective: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean cost, 99th percentile of waits and longest wait of the measured jobs of each episode [B]."""
    jobs, placed = measured_part(simulator.jobs, simulator.placed(), simulator.machines)
    found = outcome(jobs, placed)
    value = found.finish - jobs.arrival if objective == "completion_time" else getattr(found, objective)
    wait = found.wait[np.lexsort((found.wait, jobs.episode))]
    return jobset_means(jobs, value), percentile(wait, jobs.first, 0.99), wait[jobs.first[1:] - 1]


def weights_in(network: Linear) -> FloatArray:
    """Return the weights of jobs, pairs and void in a row."""
    parts = (network.of_job, network.of_pair, network.void)
    return np.concatenate([part.detach().numpy() for part in parts]).astype(np.float64)


def set_weights(network: Linear, value: FloatArray) -> None:
    """Set the weights of jobs, pairs and void."""
    parts = (network.of_job, network.of_pair, network.void)
    edges = np.cumsum([len(part) for part in parts])[:-1]
    with torch.no_grad():
        for part, new in zip(parts, np.split(value.astype(np.float32), edges), strict=True):
            part.copy_(torch.from_numpy(new))
