"""Hill climbing on the weights: an update tries one random change and keeps it if the return does not fall."""

from collections.abc import Iterator

import numpy as np
import torch

from pipeline.config import Climb
from pipeline.core import keys
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.pool.networks.network import PLAY, Network
from pipeline.problems.pool.nouns import batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.training.task import Task, in_turn
from pipeline.simulation.rollout import play


def climb(network: Network, task: Task, config: Climb, memory: Memory | None = None) -> Iterator[Update]:
    """Improve a network by trial.

    Args:
        network: changed in place.
        task: what is learned.
        config: updates, jobsets to judge by, scale of a change.
        memory: what survives a kill; a change depends on its update's number alone.
    """
    memory = memory or Memory()
    best = mean_return(network, task, config)
    for step in range(memory.done + 1, config.updates + 1):
        before = {name: weight.clone() for name, weight in network.state_dict().items()}
        rng = np.random.default_rng([task.seed, step])
        for weight in network.parameters():
            change = config.scale * rng.standard_normal(tuple(weight.shape))
            weight.data += torch.from_numpy(change.astype(np.float32))
        found = mean_return(network, task, config)
        if found < best:
            network.load_state_dict(before)
        best = max(found, best)
        yield Update(step, {"mean_return": best})


def mean_return(network: Network, task: Task, config: Climb) -> float:
    """Return the mean return over training jobsets."""
    jobs, masked = in_turn(task.train, task.loads, config.jobsets), task.recipe.masked
    simulator = Batched(batch(jobs), task.cluster, task.step_limit, task.objective, skip_forced=masked)
    number = np.arange(len(jobs))
    play(simulator, PLAY[task.recipe.play](network, masked), keys(task.seed, number, np.zeros_like(number)))
    return float(simulator.rewards.sum() / len(jobs))
