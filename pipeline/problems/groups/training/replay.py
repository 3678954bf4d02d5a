"""Pre-training on replayed jobsets: the sample generator and what is learned from it (Algorithm 1, lines 2 to 4).

The source's generator is a rule engine (Drools) that simulates scheduling under configurations; half of it is missing
from the text. Ours replays training jobsets through the simulator. Some are controlled at random, the others in turn by
heuristics, each of which now and then sets something at random: so that the memory holds good and bad decisions, and
nothing unsafe need ever be tried on a real cluster.
"""

from collections.abc import Iterator

import numpy as np

from pipeline.config import Replay
from pipeline.core import IntArray, keys, uniform
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.groups.heuristics.teachers import TEACHERS
from pipeline.problems.groups.networks.features import shape_of
from pipeline.problems.groups.networks.q_network import QNetwork
from pipeline.problems.groups.nouns import Controller, Observation, Setting
from pipeline.problems.groups.simulator.rewards import Acts, transitions
from pipeline.problems.groups.training.exploring import noisy, random_setting
from pipeline.problems.groups.training.q_learning import Learner
from pipeline.problems.groups.training.replay_memory import ReplayMemory
from pipeline.problems.groups.training.task import Recorder, Task

DRAWS = 11  # keeps the draws of replays apart from those of online play


def replay(network: QNetwork, task: Task, config: Replay, memory: Memory | None = None) -> Iterator[Update]:
    """Learn the values of configurations from replayed jobsets alone."""
    memory = memory or Memory()
    held = filled(task, config)
    set_scale(network, held)
    learner = Learner(network, task, memory)
    for step in range(memory.done + 1, config.updates + 1):
        rng = np.random.default_rng([task.seed, DRAWS, step])
        found = [
            learner.step(held.sample(rng, task.recipe.batch), task.recipe.conservative) for _ in range(config.steps)
        ]
        yield Update(step, {name: float(np.mean([one[name] for one in found])) for name in found[0]})


def filled(task: Task, config: Replay) -> ReplayMemory:
    """Return a replay memory with what the sample generator makes of the training jobsets."""
    jobsets = [task.train[config.loads[k % len(config.loads)]][k // len(config.loads)] for k in range(config.jobsets)]
    held = empty(task)
    recorder = Recorder(held, task.cluster, len(jobsets))
    for transition in transitions(task.begin(jobsets), mixed(task, config), task.recipe.against):
        recorder.note(transition)
    return held


def empty(task: Task) -> ReplayMemory:
    """Return a replay memory with nothing in it."""
    return ReplayMemory(task.recipe.memory, task.cluster.groups, shape_of(task.cluster))


def set_scale(network: QNetwork, held: ReplayMemory) -> None:
    """Set what the network counts rewards in, if it is not known yet: their standard deviation."""
    if not float(network.scale):
        network.scale.fill_(float(held.all().reward.std()) or 1.0)


def mixed(task: Task, config: Replay) -> Acts:
    """Return what lets every jobset be controlled in its own way."""
    ways = behaviours(task, config.noise)
    at_random = round(config.random * config.jobsets)
    number = np.arange(config.jobsets)
    whose = np.where(number < at_random, 0, 1 + number % (len(ways) - 1))
    key, turn = keys(task.seed, number, np.zeros(config.jobsets, dtype=np.int64)), np.zeros(config.jobsets, dtype=int)

    def acts(rows: IntArray, view: Observation) -> Setting:
        share, order = np.empty_like(view.share), np.empty_like(view.order)
        draws = uniform(key[rows], turn[rows])
        for k in np.unique(whose[rows]):
            here = np.flatnonzero(whose[rows] == k)
            share[here], order[here] = ways[k](Observation._make(field[here] for field in view), draws[here])
        turn[rows] += 1
        return Setting(share, order)

    return acts


def behaviours(task: Task, noise: float) -> list[Controller]:
    """Return the ways of the generator: at random, and every heuristic with every order, with some noise."""
    made = [random_setting(task.cluster, task.configurations)]
    for order in range(len(task.cluster.orders)):
        made += [
            noisy(task.cluster, make(task.cluster, order), task.configurations, noise) for make in TEACHERS.values()
        ]
    return made
