"""Proximal policy optimisation (Deepk8s section 4.5.2, equation 4; Schulman et al. 2017).

One update: the network plays fresh jobsets, sampling its actions, and learns several times from the recorded decisions,
in minibatches, by the clipped objective, a squared-error critic (equation 3) and an entropy term.

Departures: advantages are generalised estimates (in the paper: the return less the value) or, as a setting, the return
less the mean return of the jobset's other episodes from the same time on. Advantages are in units of their standard
deviation, costs in units of the standard deviation of the first update's returns.
"""

from collections.abc import Iterator

import numpy as np
import torch

from pipeline.core.config.machines.learning import Ppo, PpoRecipe
from pipeline.core.types import FloatArray, IntArray
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.machines.agents.networks.actor_critic import ActorCritic, Inputs
from pipeline.problems.machines.agents.training.task import (
    Task,
    Trajectory,
    by_critic,
    log_chances,
    mean_entropy,
    optimizer_for,
    play_update,
    scale_of,
    set_rate,
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
        jobsets = task.draw(step, config.jobsets)
        played = play_update(network, task, step, jobsets, config.episodes)
        gain, target = by_critic(played, recipe.gamma, recipe.trace, scale_of(network, played.cost))
        if recipe.advantage == "leave_one_out":
            gain = by_others(played, config.episodes)
            group = played.episode // config.episodes
            size = np.sqrt(np.bincount(group, weights=gain**2) / np.maximum(np.bincount(group), 1))
            gain = gain / (size[group] + 1e-9)  # hard jobsets cost a hundred times as much as easy ones
        gain = gain / (gain.std() + 1e-9)
        rng = np.random.default_rng([task.seed, step])
        losses = [
            _learn(network, optimizer, played, gain, target, rows, recipe, step)
            for _ in range(recipe.epochs)
            for rows in np.array_split(rng.permutation(len(gain)), min(recipe.minibatches, len(gain)))
        ]
        report = dict(zip(("actor_loss", "critic_loss", "entropy"), np.mean(losses, axis=0), strict=True))
        yield Update(step, {**report, "cost": played.cost_of_job(jobsets), "decisions": float(len(gain))})


def by_others(played: Trajectory, episodes: int) -> FloatArray:
    """Return how far each decision's cost to come is below that of the jobset's other episodes at the same time [D].

    The others' costs are interpolated between their decisions; an episode that is over has none to come. It is the
    baseline of Kool, van Hoof, Welling 2019, compared at equal times: equal decision numbers mean different times.
    """
    order = np.lexsort((played.turn, played.episode))
    mine = np.split(order, np.cumsum(np.bincount(played.episode, minlength=len(played.cost)))[:-1])
    gain = np.empty(len(order))
    paths = [
        (np.append(played.now[rows], played.end[b]), np.append(played.spent[rows], played.cost[b]))
        for b, rows in enumerate(mine)
    ]
    for b, rows in enumerate(mine):
        group = b - b % episodes
        others = [k for k in range(group, group + episodes) if k != b]
        to_come = np.mean([played.cost[k] - np.interp(played.now[rows], *paths[k]) for k in others], axis=0)
        gain[rows] = to_come - (played.cost[b] - played.spent[rows])
    return gain


def _learn(
    network: ActorCritic,
    optimizer: torch.optim.Optimizer,
    played: Trajectory,
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
    entropy = mean_entropy(chances)
    optimizer.zero_grad()
    (actor + recipe.critic * critic - recipe.entropy * entropy).backward()
    take_step(network, optimizer, recipe.clip, number)
    return float(actor.detach()), float(critic.detach()), float(entropy.detach())
