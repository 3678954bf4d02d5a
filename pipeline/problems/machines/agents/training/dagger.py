"""Dataset aggregation (Deepk8s section 4.5.3, equation 5; Ross, Gordon, Bagnell 2011).

One update: the network samples its own actions, a teacher names its action in each state that occurs, and the network
learns from a sample of all such pairs so far. The loss is minus the log-probability of the teacher's action, less an
entropy term. There is no critic. Departure: the pool keeps only the latest pairs, so that memory is bounded.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

from pipeline.core.config import pick
from pipeline.core.config.machines.learning import Dagger, DaggerRecipe
from pipeline.core.types import IntArray
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.machines.agents.networks.actor_critic import ActorCritic, Inputs
from pipeline.problems.machines.agents.networks.features import Features
from pipeline.problems.machines.agents.training.task import (
    Task,
    log_chances,
    mean_entropy,
    optimizer_for,
    play_update,
    set_rate,
    take_step,
)
from pipeline.problems.machines.env.teachers import TEACHERS


def dagger(network: ActorCritic, task: Task, config: Dagger, memory: Memory | None = None) -> Iterator[Update]:
    """Teach a network what a heuristic would do in the states that the network reaches."""
    memory = memory or Memory()
    recipe = task.recipe_for(DaggerRecipe)
    teacher = pick(TEACHERS, config.teacher, "teacher")
    optimizer, pool = optimizer_for(network, recipe), Pool(recipe.pool)
    memory.keep(optimizer=optimizer, pool=pool)
    for step in range(memory.done + 1, config.updates + 1):
        set_rate(optimizer, recipe, step, config.updates)
        jobsets = task.draw(step, config.jobsets)
        played = play_update(network, task, step, jobsets, teacher=teacher)
        pool.add(played.observed, played.taught)
        rng = np.random.default_rng([task.seed, step])
        losses = [
            _learn(network, optimizer, *pool.take(rng.integers(len(pool), size=recipe.batch)), recipe, step)
            for _ in range(recipe.steps)
        ]
        report = dict(zip(("loss", "accuracy", "entropy"), np.mean(losses, axis=0), strict=True))
        yield Update(step, {**report, "cost": played.cost_of_job(jobsets), "pool": float(len(pool))})


class Pool:
    """The latest pairs of state and teacher's action."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.columns: list[npt.NDArray[np.generic]] = []

    def __len__(self) -> int:
        return len(self.columns[-1]) if self.columns else 0

    def add(self, observed: Features, action: IntArray) -> None:
        """Add pairs; if there are too many, drop the oldest."""
        new = [*observed, action]
        old = self.columns or [column[:0] for column in new]
        self.columns = [np.concatenate(pair)[-self._most :] for pair in zip(old, new, strict=True)]

    def take(self, rows: IntArray) -> tuple[Features, IntArray]:
        """Return some pairs."""
        *observed, action = (column[rows] for column in self.columns)
        return Features._make(observed), action.astype(np.int64, copy=False)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return the pairs for saving."""
        return {str(k): torch.from_numpy(column) for k, column in enumerate(self.columns)}

    def load_state_dict(self, state: dict[str, torch.Tensor], /) -> None:
        """Restore saved pairs."""
        self.columns = [state[str(k)].numpy().copy() for k in range(len(state))]


def _learn(
    network: ActorCritic,
    optimizer: torch.optim.Optimizer,
    observed: Features,
    action: IntArray,
    recipe: DaggerRecipe,
    number: int,
) -> tuple[float, float, float]:
    """Take one step of the optimizer; return the loss, the share of matching actions, and the mean entropy."""
    inputs, taught = Inputs(observed), torch.from_numpy(action)
    chances = log_chances(network(inputs)[0], inputs.may)
    imitated, entropy = -chances.gather(1, taught[:, None]).mean(), mean_entropy(chances)
    optimizer.zero_grad()
    loss = imitated - recipe.entropy * entropy
    loss.backward()  # type: ignore[no-untyped-call]
    take_step(network, optimizer, recipe.clip, number)
    equal = (chances.argmax(dim=1) == taught).float().mean()
    return float(imitated.detach()), float(equal), float(entropy.detach())
