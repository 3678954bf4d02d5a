"""Pre-training on replayed jobsets: the sample generator and what is learned from it (Algorithm 1, lines 2 to 4).

The source's generator is a rule engine (Drools) that simulates scheduling under configurations; half of it is missing
from the text. Ours replays training jobsets through the simulator. Some are controlled at random, the others in turn by
heuristics, each of which now and then sets something at random: so that the memory holds good and bad decisions, and
nothing unsafe need ever be tried on a real cluster.

All numbers of a decision come from its one uniform draw, whose 53 bits are a key of `core.uniform`'s.
"""

from collections.abc import Iterator

import numpy as np
from numba import njit

from pipeline.config import DqnRecipe, Replay
from pipeline.core import FloatArray, IntArray, keys, uniform
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.groups.heuristics.teachers import TEACHERS
from pipeline.problems.groups.networks.features import shape_of
from pipeline.problems.groups.networks.q_network import QNetwork
from pipeline.problems.groups.nouns import Configurations, Controller, Observation, Setting, SharedCluster
from pipeline.problems.groups.simulator.rewards import Acts, transitions
from pipeline.problems.groups.training.q_learning import Learner
from pipeline.problems.groups.training.task import Recorder, ReplayMemory, Task


def random_setting(cluster: SharedCluster, configurations: Configurations) -> Controller:
    """Return the controller that draws every group's configuration, all equally likely, and then makes them fit.

    Where the cluster has not that many units, groups drawn at random go down by a level until it has.
    """

    def control(view: Observation, draws: FloatArray) -> Setting:
        (of_level, of_order), rest = _split(draws, cluster, configurations, numbers=2)
        level, order = _place(of_level, len(configurations.units)), _place(of_order, configurations.orders)
        return Setting(_fitted(configurations.units[level], cluster, configurations, rest), order)

    return control


def noisy(cluster: SharedCluster, controller: Controller, configurations: Configurations, chance: float) -> Controller:
    """Return a controller with, by chance, a random configuration in the place of a group's own; then made to fit.

    Where the cluster has not that many units, groups drawn at random go down by a level, to the next one below what
    they have, until it has; a share that is between levels stays so unless that befalls it.
    """

    def control(view: Observation, draws: FloatArray) -> Setting:
        (chances, of_level, of_order, own), rest = _split(draws, cluster, configurations, numbers=4)
        setting = controller(view, own[:, 0])
        changed = chances < chance
        level = _place(of_level, len(configurations.units))
        share = np.where(changed[:, :, None], configurations.units[level], setting.share)
        order = np.where(changed, _place(of_order, configurations.orders), setting.order)
        return Setting(_fitted(share, cluster, configurations, rest), order)

    return control


def _split(
    draws: FloatArray, cluster: SharedCluster, configurations: Configurations, numbers: int
) -> tuple[FloatArray, FloatArray]:
    """Return `numbers` uniform draws [numbers, B, G], and others [B, S] for as many steps down as there can be."""
    key = (draws * float(1 << 53)).astype(np.uint64)
    steps = cluster.groups * len(configurations.units)
    drawn = uniform(key[:, None], np.arange(1, numbers * cluster.groups + steps + 1)[None, :])
    first, rest = np.split(drawn, [numbers * cluster.groups], axis=1)
    return first.reshape(-1, numbers, cluster.groups).transpose(1, 0, 2), np.ascontiguousarray(rest)


def _place(draws: FloatArray, count: int) -> IntArray:
    return np.asarray((draws * count).astype(np.int64))


def _fitted(share: IntArray, cluster: SharedCluster, configurations: Configurations, draws: FloatArray) -> IntArray:
    """Return the shares after as many steps down as it takes until the cluster has the units."""
    each = [np.searchsorted(units, share[:, :, r], side="right") for r, units in enumerate(configurations.units.T)]
    below: IntArray = np.min(each, axis=0) - 1
    below -= (configurations.units[below] == share).all(axis=2)
    fitted = np.array(share, dtype=np.int64, order="C")
    units, capacity = (np.ascontiguousarray(a, dtype=np.int64) for a in (configurations.units, cluster.capacity))
    _step_down(fitted, below, units, capacity, draws)
    return fitted


@njit(cache=True)
def _step_down(share: IntArray, below: IntArray, units: IntArray, capacity: IntArray, draws: FloatArray) -> None:
    """Take groups drawn at random down to the level `below` their share, and on, until the capacity does."""
    for b in range(len(share)):
        total = share[b].sum(axis=0)
        step = 0
        while (total > capacity).any():
            open_to_it = np.flatnonzero(below[b] >= 0)
            g = open_to_it[int(draws[b, step] * len(open_to_it))]
            total += units[below[b, g]] - share[b, g]
            share[b, g] = units[below[b, g]]
            below[b, g] -= 1
            step += 1


DRAWS = 11  # keeps the draws of replays apart from those of online play


def replay(network: QNetwork, task: Task, config: Replay, memory: Memory | None = None) -> Iterator[Update]:
    """Learn the values of configurations from replayed jobsets alone."""
    memory, recipe = memory or Memory(), task.recipe_for(DqnRecipe)
    held = filled(task, config)
    set_scale(network, held)
    learner = Learner(network, task, memory)
    for step in range(memory.done + 1, config.updates + 1):
        rng = np.random.default_rng([task.seed, DRAWS, step])
        found = [learner.step(held.sample(rng, recipe.batch), recipe.conservative) for _ in range(config.steps)]
        yield Update(step, {name: float(np.mean([one[name] for one in found])) for name in found[0]})


def filled(task: Task, config: Replay) -> ReplayMemory:
    """Return a replay memory with what the sample generator makes of the training jobsets."""
    jobsets = [task.train[config.loads[k % len(config.loads)]][k // len(config.loads)] for k in range(config.jobsets)]
    held = empty(task)
    recorder = Recorder(held, task.cluster, len(jobsets))
    for transition in transitions(task.begin(jobsets), mixed(task, config), task.recipe_for(DqnRecipe).against):
        recorder.note(transition)
    return held


def empty(task: Task) -> ReplayMemory:
    """Return a replay memory with nothing in it."""
    return ReplayMemory(task.recipe_for(DqnRecipe).memory, task.cluster.groups, shape_of(task.cluster))


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
