"""Proximal policy optimisation (Deepk8s section 4.5.2, equation 4; Schulman et al. 2017).

One update: fresh jobsets are played by the network's own chances, and what was recorded is learned several times, in
minibatches, by the clipped objective, a squared-error critic (equation 3) and an entropy term.

Departures: advantages are generalised estimates (the paper has the return less the value) or, as a setting, the return
less the mean of the jobset's other episodes at the same time; they are learned in units of their standard deviation,
and costs in units of that of the first update's returns.
"""

from collections.abc import Iterator

import numpy as np
import torch

from pipeline.config import Ppo, PpoRecipe
from pipeline.core import FloatArray, IntArray, keys
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.machines.networks.actor_critic import ActorCritic, Inputs
from pipeline.problems.machines.training.task import (
    MOST_JOBSETS,
    Played,
    Task,
    by_critic,
    by_others,
    log_chances,
    optimizer_for,
    record,
    set_rate,
    set_scale,
    take_step,
)


def ppo(network: ActorCritic, task: Task, config: Ppo, memory: Memory | None = None) -> Iterator[Update]:
    """Improve a network by its own play, one update at a time."""
    memory = memory or Memory()
    recipe = task.recipe_for(PpoRecipe)
    optimizer = optimizer_for(network, recipe)
    memory.keep(optimizer=optimizer)
    for step in range(memory.done + 1, config.updates + 1):
        set_rate(optimizer, recipe, step, config.updates)
        yield Update(step, by_chance(network, optimizer, task, config, step))


def by_chance(
    network: ActorCritic, optimizer: torch.optim.Optimizer, task: Task, config: Ppo, step: int
) -> dict[str, float]:
    """Play fresh jobsets by the network's chances and learn from that; return what there is to tell of it."""
    recipe = task.recipe_for(PpoRecipe)
    jobsets = [jobs for jobs in task.draw(step, config.jobsets) for _ in range(config.episodes)]
    simulator = task.begin(jobsets)
    number = step * MOST_JOBSETS + np.repeat(np.arange(config.jobsets), config.episodes)
    key = keys(task.seed, number, np.tile(np.arange(config.episodes), config.jobsets))
    played = record(network, simulator, key)
    gain, target = _advantages(network, played, recipe, config.episodes)
    rng = np.random.default_rng([task.seed, step])
    told = [
        _learn(network, optimizer, played, gain, target, rows, recipe, step)
        for _ in range(recipe.epochs)
        for rows in np.array_split(rng.permutation(len(gain)), min(recipe.minibatches, len(gain)))
    ]
    report = dict(zip(("actor_loss", "critic_loss", "entropy"), np.mean(told, axis=0), strict=True))
    jobs = np.array([len(one.arrival) for one in jobsets])
    return {**report, "cost": float((played.cost / jobs).mean()), "decisions": float(len(gain))}


def _advantages(
    network: ActorCritic, played: Played, recipe: PpoRecipe, episodes: int
) -> tuple[FloatArray, FloatArray]:
    """Return the advantages [D] in units of their standard deviation, and the critic's targets [D]."""
    set_scale(network, played.cost)
    gain, target = by_critic(played, recipe.gamma, recipe.trace, float(network.scale))
    if recipe.advantage == "leave_one_out":
        gain = by_others(played, episodes)
        group = played.episode // episodes
        size = np.sqrt(np.bincount(group, weights=gain**2) / np.maximum(np.bincount(group), 1))
        gain = gain / (size[group] + 1e-9)  # hard jobsets cost a hundred times as much as easy ones
    return gain / (gain.std() + 1e-9), target


def _learn(
    network: ActorCritic,
    optimizer: torch.optim.Optimizer,
    played: Played,
    gain: FloatArray,
    target: FloatArray,
    rows: IntArray,
    recipe: PpoRecipe,
    number: int,
) -> tuple[float, float, float]:
    """Take one step of the optimizer on some decisions; return the losses and the mean entropy."""
    inputs = Inputs(played.observed.take(rows))
    logits, value = network(inputs)
    chances = log_chances(logits, inputs.may)
    chosen = chances.gather(1, torch.from_numpy(played.action[rows])[:, None])[:, 0]
    ratio = (chosen - torch.from_numpy(played.log_chance[rows])).exp()
    better = torch.from_numpy(gain[rows].astype(np.float32))
    actor = -torch.minimum(ratio * better, ratio.clamp(1 - recipe.ratio, 1 + recipe.ratio) * better).mean()
    critic = (value - torch.from_numpy(target[rows].astype(np.float32))).square().mean()
    entropy = -(chances.exp() * chances).sum(dim=1).mean()
    optimizer.zero_grad()
    (actor + recipe.critic * critic - recipe.entropy * entropy).backward()
    take_step(network, optimizer, recipe.clip, number)
    return float(actor.detach()), float(critic.detach()), float(entropy.detach())
