"""What PPO, A3C and DAgger share: advantages of recorded play, optimizers, and one step of them."""

from collections.abc import Callable

import numpy as np
import torch

from pipeline.config import A3cRecipe, DaggerRecipe, PpoRecipe
from pipeline.core import FloatArray
from pipeline.errors import UserError
from pipeline.learning.returns import generalised_advantage
from pipeline.problems.machines.networks.actor_critic import ActorCritic
from pipeline.problems.machines.training.task import Played

Gradient = PpoRecipe | A3cRecipe | DaggerRecipe

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
    "adam": torch.optim.Adam,
}


def optimizer_for(network: ActorCritic, recipe: Gradient) -> torch.optim.Optimizer:
    """Return the recipe's optimizer."""
    return OPTIMIZERS[recipe.optimizer](network.parameters(), lr=recipe.learning_rate)


def set_scale(network: ActorCritic, cost: FloatArray) -> None:
    """Set what the critic counts costs in, if it is not known yet: the standard deviation of the episodes' costs."""
    if not float(network.scale):
        network.scale.fill_(float(cost.std()) or float(cost.mean()) or 1.0)


def set_rate(optimizer: torch.optim.Optimizer, recipe: Gradient, step: int, updates: int) -> None:
    """Set the learning rate of an update, which depends on its number alone."""
    left = (updates - step + 1) / updates if recipe.falling else 1.0
    for group in optimizer.param_groups:
        group["lr"] = recipe.learning_rate * left


def take_step(network: ActorCritic, optimizer: torch.optim.Optimizer, clip: float | None, number: int) -> None:
    """Follow the gradient, whose norm is clipped.

    Raises:
        UserError: it is not finite.
    """
    size = torch.nn.utils.clip_grad_norm_(network.parameters(), float("inf") if clip is None else clip)
    if not bool(size.isfinite()):
        raise UserError(f"update {number}: the gradient is not finite; lower learning_rate, or set clip")
    optimizer.step()


def by_critic(played: Played, gamma: float, trace: float, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return advantages and the critic's targets [D], both in units of `scale`."""
    episodes, turns = len(played.cost), int(played.turn.max()) + 1
    length = np.bincount(played.episode, minlength=episodes)
    place = played.episode, played.turn
    spent, value = np.zeros((episodes, turns + 1)), np.zeros((episodes, turns + 1))
    spent[place] = played.spent
    spent[np.arange(episodes), length] = played.cost
    value[place] = played.value
    rewards = -np.diff(spent, axis=1) / scale
    rewards[np.arange(turns)[None] >= length[:, None]] = 0.0
    gain = generalised_advantage(rewards, value, length, gamma, trace)[place]
    return gain, gain + played.value


def by_others(played: Played, episodes: int) -> FloatArray:
    """Return how much less each decision's cost to come is than that of the jobset's other episodes at its time [D].

    The others' costs between their decisions are interpolated; an episode that is over has none to come (Kool, van
    Hoof, Welling 2019, at equal time: decision numbers of two episodes mean different times).
    """
    order = np.lexsort((played.turn, played.episode))
    first = np.concatenate([[0], np.cumsum(np.bincount(played.episode, minlength=len(played.cost)))])
    gain = np.empty(len(order))
    paths = []
    for b in range(len(played.cost)):
        mine = order[first[b] : first[b + 1]]
        times = np.concatenate([played.now[mine], [played.end[b]]])
        paths.append((times, np.concatenate([played.spent[mine], [played.cost[b]]])))
    for b in range(len(played.cost)):
        mine = order[first[b] : first[b + 1]]
        group = b - b % episodes
        others = [k for k in range(group, group + episodes) if k != b]
        to_come = np.mean([played.cost[k] - np.interp(played.now[mine], *paths[k]) for k in others], axis=0)
        gain[mine] = to_come - (played.cost[b] - played.spent[mine])
    return gain
