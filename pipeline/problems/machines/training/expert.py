"""Expert iteration: some decisions are taken in several ways, and the network learns from all of them at once.

After Anthony, Tian, Barber 2017 (and rollouts: Bertsekas, Tsitsiklis, Wu 1997): the expert is the network itself, which
tries each action and plays on (`retrying`). The first updates are those of PPO; then an update plays fresh jobsets
once, by chance, and tries the likeliest actions of some decisions, drawn by the seed.

With p the chances of a decision's actions and c their costs, the expected cost is the sum of p c. What is learned is to
lower it: no action is drawn, so that none has to be tried by luck. Gains are shares of what the episode costs, in units
of their deviation. The network learns them as often, and in as many parts, as the recipe has PPO learn its play.

Departures from the paper: no tree, but one action and play behind it; a policy gradient, not a copy of the best action,
for what one future shows is mostly chance; the jobs to come are the jobset's own (`retrying` says why that is no leak).
"""

from collections.abc import Iterator

import numpy as np
import torch

from pipeline.config import MachinesExpert, PpoRecipe
from pipeline.core import FloatArray, IntArray, keys
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.machines.networks.actor_critic import ActorCritic, Inputs
from pipeline.problems.machines.training.optimizing import optimizer_for, set_rate, take_step
from pipeline.problems.machines.training.ppo import by_chance
from pipeline.problems.machines.training.retrying import Retried, retried
from pipeline.problems.machines.training.task import MOST_JOBSETS, Task, log_chances, record

TINY = 1e-12
TOLD = ("entropy", "cost", "decisions")  # of every update, however it learns


def expert(network: ActorCritic, task: Task, config: MachinesExpert, memory: Memory | None = None) -> Iterator[Update]:
    """Improve a network by what several actions of some decisions would have cost, one update at a time."""
    memory, recipe = memory or Memory(), task.recipe_for(PpoRecipe)
    optimizer = optimizer_for(network, recipe)
    memory.keep(optimizer=optimizer)
    for step in range(memory.done + 1, config.updates + 1):
        set_rate(optimizer, recipe, step, config.updates)
        learn = by_chance if step <= config.begins else _by_trying
        told = learn(network, optimizer, task, config, step)
        yield Update(step, {name: told[name] for name in TOLD})


def _by_trying(
    network: ActorCritic, optimizer: torch.optim.Optimizer, task: Task, config: MachinesExpert, step: int
) -> dict[str, float]:
    """Play fresh jobsets once, try, and learn from what was tried; return what there is to tell of it."""
    recipe, rng = task.recipe_for(PpoRecipe), np.random.default_rng([task.seed, step])
    jobsets, number = task.draw(step, config.jobsets), step * MOST_JOBSETS + np.arange(config.jobsets)
    played = record(network, task.begin(jobsets), keys(task.seed, number, np.zeros_like(number)))
    draws = rng.random(len(played.action))
    found = retried(network, task, jobsets, played, 1 / config.every, config.unsure, config.actions, draws)
    jobs = np.array([len(one.arrival) for one in jobsets])
    # The mean surprise of what was drawn is the entropy, but for chance.
    report = {"cost": float((played.cost / jobs).mean()), "entropy": float(-played.log_chance.mean())}
    if found is None:
        return {**report, "decisions": 0.0}
    gain = gains(found)
    count = len(gain)
    for _ in range(recipe.epochs):
        for rows in np.array_split(rng.permutation(count), min(recipe.minibatches, count)):
            _learn(network, optimizer, found, gain, rows, recipe, step)
    return {**report, "decisions": float(count)}


def gains(found: Retried) -> FloatArray:
    """Return how much less each action [D, A] costs than the network's own play, in units of the gains' deviation.

    What it costs is a share of what its episode costs in the mean, so that no jobset outweighs the others; 0 of what
    was not tried.
    """
    mean = (found.chance * found.cost).sum(axis=1, keepdims=True)
    gain = np.where(found.tried, (mean - found.cost) / np.maximum(mean, TINY), 0.0)
    square = np.average((found.chance * gain**2).sum(axis=1), weights=found.weight)
    return np.asarray(gain / (np.sqrt(square) + TINY))


def _learn(
    network: ActorCritic,
    optimizer: torch.optim.Optimizer,
    found: Retried,
    gain: FloatArray,
    rows: IntArray,
    recipe: PpoRecipe,
    number: int,
) -> None:
    """Take one step of the optimizer on some decisions."""
    logits, _ = network(Inputs(found.observed.take(rows)))
    chances = log_chances(logits, torch.from_numpy(found.tried[rows]))
    weight = torch.from_numpy((found.weight[rows] / found.weight[rows].sum()).astype(np.float32))
    better = torch.from_numpy(gain[rows].astype(np.float32))
    expected = (chances.exp() * better).sum(dim=1)
    entropy = -(chances.exp() * chances).sum(dim=1)
    optimizer.zero_grad()
    loss = -(weight * (expected + recipe.entropy * entropy)).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    take_step(network, optimizer, recipe.clip, number)
