"""The learning algorithms by their params.yaml word; each file holds one."""

from collections.abc import Callable, Iterator
from typing import Any

from pipeline.config import NoPretrain
from pipeline.policies.network import Network
from pipeline.training.clone import clone
from pipeline.training.decisions import Update
from pipeline.training.memory import Memory
from pipeline.training.reinforce import reinforce
from pipeline.training.task import Task


def none(network: Network, task: Task, config: NoPretrain, memory: Memory | None = None) -> Iterator[Update]:
    """Leave the seeded initial weights as they are (DeepRM)."""
    return iter(())


ALGORITHMS: dict[str, Callable[[Network, Task, Any, Memory | None], Iterator[Update]]] = {
    "none": none,
    "clone": clone,
    "reinforce": reinforce,
}
