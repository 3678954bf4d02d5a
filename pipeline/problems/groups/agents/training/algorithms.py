"""The learning algorithms of the controller, by their name in params.yaml.

`dqn` trains online (Algorithm 1, lines 5 to 15), after pre-training on replayed jobsets. An episode is a training
jobset, controlled from its first to its last interval; several run in parallel. Every F decisions the network learns
from one batch of the replay memory, which initially holds the generator's decisions. The source acts greedily; epsilon
is a setting.
"""

from collections.abc import Callable, Iterator

import numpy as np

from pipeline.core.config import Dqn, DqnRecipe
from pipeline.core.types import IntArray, uniform
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update, none
from pipeline.problems.groups.agents.networks.q_network import QNetwork, controller
from pipeline.problems.groups.agents.training.evolution import evolution
from pipeline.problems.groups.agents.training.q_learning import Learner
from pipeline.problems.groups.agents.training.replay import empty, filled, noisy, replay, set_scale
from pipeline.problems.groups.agents.training.task import Recorder, ReplayMemory, Task
from pipeline.problems.groups.env.nouns import Controller, Observation, Setting
from pipeline.problems.groups.env.simulator.rewards import transitions

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


ALGORITHMS: dict[str, Callable[..., Iterator[Update]]] = {
    "none": none,
    "replay": replay,
    "dqn": dqn,
    "evolution": evolution,
}
