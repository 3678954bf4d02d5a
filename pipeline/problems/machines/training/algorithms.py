"""The learning algorithms of many machines by their params.yaml word; each file holds one."""

from collections.abc import Callable, Iterator

from pipeline.config import NoPretrain
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.machines.networks.actor_critic import ActorCritic
from pipeline.problems.machines.training.a3c import a3c
from pipeline.problems.machines.training.cem import cem
from pipeline.problems.machines.training.dagger import dagger
from pipeline.problems.machines.training.ppo import ppo
from pipeline.problems.machines.training.task import Task


def none(network: ActorCritic, task: Task, config: NoPretrain, memory: Memory | None = None) -> Iterator[Update]:
    """Leave the seeded initial weights as they are."""
    return iter(())


ALGORITHMS: dict[str, Callable[..., Iterator[Update]]] = {
    "none": none,
    "ppo": ppo,
    "a3c": a3c,
    "dagger": dagger,
    "cem": cem,
}
