"""The learning algorithms of the controller by their params.yaml word; each file holds one."""

from collections.abc import Callable, Iterator

from pipeline.config import NoPretrain
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.groups.networks.q_network import QNetwork
from pipeline.problems.groups.training.dqn import dqn
from pipeline.problems.groups.training.replay import replay
from pipeline.problems.groups.training.task import Task


def none(network: QNetwork, task: Task, config: NoPretrain, memory: Memory | None = None) -> Iterator[Update]:
    """Leave the seeded initial weights as they are."""
    return iter(())


ALGORITHMS: dict[str, Callable[..., Iterator[Update]]] = {
    "none": none,
    "replay": replay,
    "dqn": dqn,
}
