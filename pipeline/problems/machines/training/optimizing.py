"""What PPO, A3C and DAgger share: optimizers, and one step of them."""

from collections.abc import Callable

import torch

from pipeline.config import A3cRecipe, DaggerRecipe, PpoRecipe
from pipeline.core import FloatArray
from pipeline.errors import UserError
from pipeline.problems.machines.networks.actor_critic import ActorCritic

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
