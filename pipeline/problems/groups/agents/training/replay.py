"""Pre-training on replayed jobsets: the sample generator and learning from its decisions (Algorithm 1, lines 2 to 4).

The source's generator is a rule engine (Drools) that simulates scheduling under configurations; half of it is missing
from the text. Ours replays training jobsets in the simulator. Some are controlled at random, the others in turn by
heuristics with occasional random settings. So the memory holds good and bad decisions, but no unsafe setting is ever
tried on a real cluster.

All random numbers of a decision come from its one uniform draw, whose 53 bits are a key of `core.uniform`.
"""

from collections.abc import Iterator

import numpy as np
from numba import njit

from pipeline.core.config import DqnRecipe, Replay
from pipeline.core.types import FloatArray, IntArray, keys, uniform
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.groups.agents.networks.features import shape_of
from pipeline.problems.groups.agents.networks.q_network import QNetwork
from pipeline.problems.groups.agents.training.q_learning import Learner
from pipeline.problems.groups.agents.training.task import Recorder, ReplayMemory, Task
from pipeline.problems.groups.env.nouns import Configurations, Controller, Observation, Setting, SharedCluster
from pipeline.problems.groups.env.simulator.rewards import Acts, transitions
from pipeline.problems.groups.env.teachers import TEACHERS

DRAWS = 11  # separates the draws of replays from those of online play


def replay(network: QNetwork, task: Task, config: Replay, memory: Memory | None = None) -> Iterator[Update]:
    """Learn the values of configurations from replayed jobsets only."""
    memory, recipe = memory or Memory(), task.recipe_for(DqnRecipe)
    held = filled(task, config)
    set_scale(network, held)
    learner = Learner(network, task, memory)
    for step in range(memory.done + 1, config.updates + 1):
        rng = np.random.default_rng([task.seed, DRAWS, step])
        found = [learner.step(held.sample(rng, recipe.batch), recipe.conservative) for _ in range(config.steps)]
        yield Update(step, {name: float(np.mean([one[name] for one in found])) for name in found[0]})


def empty(task: Task) -> ReplayMemory:
    """Return an empty replay memory."""
    return ReplayMemory(task.recipe_for(DqnRecipe).memory, task.cluster.groups, shape_of(task.cluster))


def filled(task: Task, config: Replay) -> ReplayMemory:
    """Return a replay memory with the sample generator's decisions on the training jobsets."""
    jobsets, held = task.replayed(config), empty(task)
    recorder = Recorder(held, task.cluster, len(jobsets))
    for transition in transitions(task.begin(jobsets), mixed(task, config), task.recipe_for(DqnRecipe).against):
        recorder.note(transition)
    return held


def set_scale(network: QNetwork, held: ReplayMemory) -> None:
    """Set the network's unit of rewards to their standard deviation, if it is not yet known."""
    if not float(network.scale):
        network.scale.fill_(float(held.all().reward.std()) or 1.0)


def mixed(task: Task, config: Replay) -> Acts:
    """Return the generator, which controls every jobset in its own way."""
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
    """Return the controllers of the generator: a random one, and noisy heuristics, each with every order."""
    cluster, configurations = task.cluster, task.configurations
    made = [random_setting(cluster, configurations)]
    for order in range(len(cluster.orders)):
        made += [noisy(cluster, make(cluster, order), configurations, noise) for make in TEACHERS.values()]
    return made


def random_setting(cluster: SharedCluster, configurations: Configurations) -> Controller:
    """Return the controller that draws every group's configuration uniformly.

    If the cluster has too few units, random groups go down by a level until they fit.
    """

    def control(view: Observation, draws: FloatArray) -> Setting:
        (of_level, of_order), rest = _split(draws, cluster, configurations, numbers=2)
        level = (of_level * len(configurations.units)).astype(np.int64)
        order = (of_order * configurations.orders).astype(np.int64)
        return Setting(_fitted(configurations.units[level], cluster, configurations, rest), order)

    return control


def noisy(cluster: SharedCluster, controller: Controller, configurations: Configurations, chance: float) -> Controller:
    """Return a controller that, with a given probability, replaces each group's setting by a random configuration.

    If the cluster has too few units, random groups go down to the next lower level until they fit; a share between two
    levels remains unless its group is drawn.
    """

    def control(view: Observation, draws: FloatArray) -> Setting:
        (chances, of_level, of_order, own), rest = _split(draws, cluster, configurations, numbers=4)
        setting = controller(view, own[:, 0])
        changed = chances < chance
        level = (of_level * len(configurations.units)).astype(np.int64)
        share = np.where(changed[:, :, None], configurations.units[level], setting.share)
        order = np.where(changed, (of_order * configurations.orders).astype(np.int64), setting.order)
        return Setting(_fitted(share, cluster, configurations, rest), order)

    return control


def _split(
    draws: FloatArray, cluster: SharedCluster, configurations: Configurations, numbers: int
) -> tuple[FloatArray, FloatArray]:
    """Return uniform draws [numbers, B, G], and others [B, S] for the largest possible number of steps down."""
    key = (draws * float(1 << 53)).astype(np.uint64)
    steps = cluster.groups * len(configurations.units)
    drawn = uniform(key[:, None], np.arange(1, numbers * cluster.groups + steps + 1)[None, :])
    first, rest = np.split(drawn, [numbers * cluster.groups], axis=1)
    return first.reshape(-1, numbers, cluster.groups).transpose(1, 0, 2), np.ascontiguousarray(rest)


def _fitted(share: IntArray, cluster: SharedCluster, configurations: Configurations, draws: FloatArray) -> IntArray:
    """Return the shares after the steps down that it takes until the cluster has enough units."""
    each = [np.searchsorted(units, share[:, :, r], side="right") for r, units in enumerate(configurations.units.T)]
    below: IntArray = np.min(each, axis=0) - 1
    below -= (configurations.units[below] == share).all(axis=2)
    fitted = np.array(share, dtype=np.int64, order="C")
    units, capacity = (np.ascontiguousarray(a, dtype=np.int64) for a in (configurations.units, cluster.capacity))
    _step_down(fitted, below, units, capacity, draws)
    return fitted


@njit(cache=True)
def _step_down(share: IntArray, below: IntArray, units: IntArray, capacity: IntArray, draws: FloatArray) -> None:
    """Reduce random groups to the level `below` their share, and further, until the capacity suffices."""
    for b in range(len(share)):
        total = share[b].sum(axis=0)
        step = 0
        while (total > capacity).any():
            reducible = np.flatnonzero(below[b] >= 0)
            g = reducible[int(draws[b, step] * len(reducible))]
            total += units[below[b, g]] - share[b, g]
            share[b, g] = units[below[b, g]]
            below[b, g] -= 1
            step += 1
