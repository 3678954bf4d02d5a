"""The learning algorithms of the controller, by their name in params.yaml.

`dqn` trains online (Algorithm 1, lines 5 to 15), after pre-training on replayed jobsets. An episode is a training
jobset, controlled from its first to its last interval; several run in parallel. Every F decisions the network learns
from one batch of the replay memory, which initially holds the generator's decisions. The source acts greedily; epsilon
is a setting. `evolution` searches for the weights of an explicit value function; all candidates play the same fresh
jobsets.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from pipeline.core.config import Dqn, DqnRecipe, Evolution, EvolutionRecipe
from pipeline.core.types import FloatArray, IntArray, uniform
from pipeline.learning import evolution as cma
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update, none
from pipeline.problems.groups.agents.networks.features import states
from pipeline.problems.groups.agents.networks.q_network import QNetwork, Worth, controller, first_weights, tensors
from pipeline.problems.groups.agents.training.q_learning import Learner
from pipeline.problems.groups.agents.training.replay import empty, filled, noisy, replay, set_scale
from pipeline.problems.groups.agents.training.task import Recorder, ReplayMemory, Task
from pipeline.problems.groups.env.evaluation.controllers import decided, setting_of
from pipeline.problems.groups.env.nouns import Controller, Jobs, Observation, Setting
from pipeline.problems.groups.env.simulator.rewards import WAITING, transitions

DRAWS = 12  # separates the draws from the replay memory from other random numbers


def dqn(network: QNetwork, task: Task, config: Dqn, memory: Memory | None = None) -> Iterator[Update]:
    """Let the controller control jobsets, and learn from its decisions."""
    memory = memory or Memory()
    held = empty(task) if memory.resumed or task.generator is None else filled(task, task.generator)
    memory.keep(held=held)
    learner = Learner(network, task, memory)
    for step in range(memory.done + 1, config.updates + 1):
        learner.slow_down((config.updates - step + 1) / config.updates)
        yield Update(step, _played(learner, task, config, held, step))


def _played(learner: Learner, task: Task, config: Dqn, held: ReplayMemory, step: int) -> dict[str, float]:
    """Control the jobsets of an update and learn from the memory; return the metrics."""
    network, recipe, (jobsets, key) = learner.network, task.recipe_for(DqnRecipe), task.draw(step, config.jobsets)
    rng, recorder = np.random.default_rng([task.seed, DRAWS, step]), Recorder(held, task.cluster, len(jobsets))
    chosen: Controller = controller(network, task.cluster, task.configurations)
    if config.epsilon:
        chosen = noisy(task.cluster, chosen, task.configurations, config.epsilon)
    decision = np.zeros(len(key), dtype=np.int64)

    def acts(rows: IntArray, view: Observation) -> Setting:
        draws = uniform(key[rows], decision[rows])
        decision[rows] += 1
        return chosen(view, draws)

    found: list[dict[str, float]] = []
    cost, reward, intervals = 0.0, 0.0, 0
    for turn, transition in enumerate(transitions(task.begin(jobsets), acts, recipe.against), 1):
        recorder.note(transition)
        cost, reward = cost + transition.cost.sum(), reward + transition.reward.sum()
        intervals += len(transition.rows)
        if turn % config.every == 0 and float(network.scale):
            found.append(learner.step(held.sample(rng, recipe.batch)))
    set_scale(network, held)
    jobs = sum(len(one.arrival) for one in jobsets)
    learned = {name: float(np.mean([one[name] for one in found])) for name in found[0]} if found else {}
    return {"cost": float(cost / jobs), "reward": float(reward / intervals), **learned}


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


ALGORITHMS: dict[str, Callable[..., Iterator[Update]]] = {
    "none": none,
    "replay": replay,
    "dqn": dqn,
    "evolution": evolution,
}
