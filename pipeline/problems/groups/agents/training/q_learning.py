"""One step of Q-learning from the replay memory (Algorithm 1, lines 10 to 12), with later improvements.

Target: reward + gamma * Q'(phi(s*'), a'), where Q' is a copy of the network that is updated periodically (Mnih et al.
2015). The network itself chooses a' (double DQN, van Hasselt et al. 2016), and the loss is Huber's. All are settings.

The choice of a' is also a setting. With `own`, as in the source, it is each group's own best: every group then expects
its ideal share from the next interval on, which no cluster can give to all of them. With `joint`, it is the knapsack's
choice for all groups, so that the values are those of the controller that will be used.

The conservative term (CQL, Kumar et al. 2020) lowers the values of configurations that are not in the log.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from pipeline.core.config import DqnRecipe
from pipeline.core.types import IntArray, TimeArray
from pipeline.errors import UserError
from pipeline.learning.memory import Memory
from pipeline.problems.groups.agents.networks.q_network import Inputs, QNetwork, tensors
from pipeline.problems.groups.agents.training.task import Task, Transitions
from pipeline.problems.groups.env.evaluation.controllers import decided


class Learner:
    """Value function with its optimizer and target network."""

    def __init__(self, network: QNetwork, task: Task, memory: Memory) -> None:
        recipe = task.recipe_for(DqnRecipe)
        self.network, self._task, self._recipe = network, task, recipe
        self._units = torch.from_numpy(task.configurations.units.astype("float32"))
        self._optimizer = torch.optim.Adam(network.parameters(), lr=recipe.learning_rate)
        self._target = Target(network)
        memory.keep(network_target=self._target, optimizer=self._optimizer)

    def slow_down(self, left: float) -> None:
        """Set the learning rate to a share of the recipe's, if the recipe has a falling rate."""
        if self._recipe.falling:
            for group in self._optimizer.param_groups:
                group["lr"] = self._recipe.learning_rate * left

    def step(self, batch: Transitions, conservative: float = 0.0) -> dict[str, float]:
        """Learn from some decisions; return the loss and the mean value.

        Raises:
            UserError: the gradient is not finite.
        """
        inputs = tensors(batch.state)
        target = batch_target(self.network, self._target, self._task, batch)
        values = values_at(self.network, inputs, batch.share, batch.order)
        loss = self._loss(values, target)
        if self.network.reward is not None:
            rewards = values_at(self.network.rewards, inputs, batch.share, batch.order)  # type: ignore[arg-type]  # not None
            loss = loss + self._loss(rewards, torch.from_numpy(batch.reward) / self.network.scale)
        if conservative:
            every = self.network(inputs, self._units).flatten(2)
            loss = loss + conservative * (every.logsumexp(dim=2) - values).mean()
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        clip = float("inf") if self._recipe.clip is None else self._recipe.clip
        if not bool(torch.nn.utils.clip_grad_norm_(self.network.parameters(), clip).isfinite()):
            raise UserError("the gradient is not finite; lower learning_rate, or set clip")
        self._optimizer.step()
        self._target.follow(max(self._recipe.target, 1))
        return {"loss": float(loss.detach()), "q": float(values.detach().mean())}

    def _loss(self, values: Tensor, target: Tensor) -> Tensor:
        if self._recipe.huber:
            return torch.nn.functional.smooth_l1_loss(values, target)
        return torch.nn.functional.mse_loss(values, target)


class Target:
    """Copy of a network that is updated periodically."""

    def __init__(self, network: QNetwork) -> None:
        self._network = network
        self.weights = {name: value.clone() for name, value in network.state_dict().items()}
        self._steps = torch.zeros(1, dtype=torch.int64)

    def __call__(self, inputs: Inputs, given: Tensor) -> Tensor:
        """Return the copy's values."""
        found: Tensor = torch.func.functional_call(self._network, self.weights, (inputs, given))
        return found

    def follow(self, every: int) -> None:
        """Count a step, and copy the network every `every` steps."""
        self._steps += 1
        if int(self._steps) % every == 0:
            for name, value in self._network.state_dict().items():
                self.weights[name].copy_(value)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the state."""
        return {**self.weights, "steps": self._steps}

    def load_state_dict(self, state: dict[str, Tensor], /) -> None:
        """Restore a state."""
        copies = {name: value.clone() for name, value in state.items()}
        self._steps = copies.pop("steps")
        self.weights = copies


def values_at(values: Callable[[Inputs, Tensor], Tensor], inputs: Inputs, share: TimeArray, order: IntArray) -> Tensor:
    """Return the values [N, G] of the shares and orders that were set."""
    found = values(inputs, torch.from_numpy(share.astype(np.float32))[:, :, None])[:, :, 0]
    return found.gather(2, torch.from_numpy(order.astype(np.int64))[:, :, None])[:, :, 0]


def batch_target(network: QNetwork, target: Target, task: Task, batch: Transitions) -> Tensor:
    """Return the Q-learning targets [N, G] of a batch of decisions: reward plus discounted value of the next state."""
    recipe, then = task.recipe_for(DqnRecipe), tensors(batch.then)
    units = torch.from_numpy(task.configurations.units.astype("float32"))
    with torch.no_grad():
        valued = target(then, units)
        chosen_by = network(then, units) if recipe.double else valued
        if recipe.bootstrap == "joint":
            summed = network.rewards(then, units)
            rewards = None if summed is None else summed.numpy()
            chosen = decided(chosen_by.numpy(), task.configurations, task.cluster.capacity, rewards=rewards)
            place: IntArray = chosen.level * task.configurations.orders + chosen.order
        else:
            place = chosen_by.flatten(2).numpy().argmax(axis=2)
        later = valued.flatten(2).gather(2, torch.from_numpy(place)[:, :, None])[:, :, 0]
        continues = torch.from_numpy((~batch.over).astype(np.float32))[:, None]
        return torch.from_numpy(batch.reward) / network.scale + recipe.gamma * continues * later
