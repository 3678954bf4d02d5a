"""The cross-entropy method (Rubinstein 1999; Szita and Lőrincz 2006): draw weights, keep the best, draw around them.

Where a few weights decide thousands of times, and one unlucky decision costs more than all others, the gradient of a
policy that draws its actions is lost in noise. Here every candidate plays greedily, all on the same fresh jobsets, and
what counts is the whole cost.
"""

from collections.abc import Iterator

import numpy as np
import torch

from pipeline.config import Cem, CemRecipe
from pipeline.core import FloatArray, IntArray
from pipeline.learning.memory import Memory
from pipeline.learning.sampling import best
from pipeline.learning.update import Update
from pipeline.problems.machines.networks.actor_critic import ActorCritic, Linear
from pipeline.problems.machines.networks.features import features
from pipeline.problems.machines.training.task import Costed, Task
from pipeline.simulation.rollout import to_end


def cem(network: ActorCritic, task: Task, config: Cem, memory: Memory | None = None) -> Iterator[Update]:
    """Move a linear network's weights to where the best of a population were, one population an update."""
    memory = memory or Memory()
    recipe = task.recipe_for(CemRecipe)
    if not isinstance(network, Linear):
        raise TypeError(f"expected a linear network, got {type(network).__name__}")
    spread = Spread(len(weights_in(network)), recipe.spread)
    memory.keep(spread=spread)
    for step in range(memory.done + 1, config.updates + 1):
        rng, mean = np.random.default_rng([task.seed, step]), weights_in(network)
        drawn = mean + spread.value * rng.standard_normal((recipe.population, len(mean)))
        drawn[0] = mean
        jobsets = task.draw(step, config.jobsets)
        simulator = task.begin(jobsets * recipe.population)
        play_side_by_side(network, simulator, drawn.astype(np.float32), len(jobsets))
        jobs = np.array([len(one.arrival) for one in jobsets])
        cost = (-simulator.gained.reshape(recipe.population, -1) / jobs).mean(axis=1)
        elite = drawn[np.argsort(cost, kind="stable")[: recipe.elite]]
        set_weights(network, recipe.keep * mean + (1 - recipe.keep) * elite.mean(axis=0))
        spread.value = recipe.keep * spread.value + (1 - recipe.keep) * elite.std(axis=0)
        metrics = {"cost": float(cost.mean()), "best_cost": float(cost.min()), "spread": float(spread.value.mean())}
        yield Update(step, metrics)


class Spread:
    """The standard deviation of each weight's candidates."""

    def __init__(self, weights: int, first: float) -> None:
        self.value: FloatArray = np.full(weights, first)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return it, to be saved."""
        return {"value": torch.from_numpy(self.value)}

    def load_state_dict(self, state: dict[str, torch.Tensor], /) -> None:
        """Take one over."""
        self.value = state["value"].numpy().copy()


def weights_in(network: Linear) -> FloatArray:
    """Return the weights of jobs, pairs and void in a row."""
    parts = (network.of_job, network.of_pair, network.void)
    return np.concatenate([part.detach().numpy() for part in parts]).astype(np.float64)


def set_weights(network: Linear, value: FloatArray) -> None:
    """Set the weights of jobs, pairs and void."""
    parts = (network.of_job, network.of_pair, network.void)
    edges = np.cumsum([len(part) for part in parts])[:-1]
    with torch.no_grad():
        for part, new in zip(parts, np.split(value.astype(np.float32), edges), strict=True):
            part.copy_(torch.from_numpy(new))


def play_side_by_side(network: Linear, simulator: Costed, drawn: FloatArray, each: int) -> None:
    """Let every candidate play greedily, each in `each` episodes in a row, to the end."""
    of_job, of_pair, void = np.split(drawn, [len(network.of_job), len(network.of_job) + len(network.of_pair)], axis=1)

    def advance(rows: IntArray) -> None:
        observed, who = features(simulator.observe(rows), network.shape), rows // each
        scores = np.einsum("dmf,df->dm", observed.job, of_job[who])[:, :, None]
        scores = scores + np.einsum("dmkf,df->dmk", observed.pair[..., : of_pair.shape[1]], of_pair[who])
        waits = void[who] if void.shape[1] else np.zeros((len(rows), 1), dtype=np.float32)
        logits = np.concatenate([scores.reshape(len(rows), -1), waits], axis=1)
        simulator.step(rows, best(logits, observed.may, True))

    for _ in to_end(simulator, advance):
        pass
