"""The learning algorithms by their params.yaml word; each file holds one."""

from collections.abc import Callable, Iterator
from typing import Any

from pipeline.config import NoPretrain
from pipeline.training.clone import clone
from pipeline.training.decisions import Update
from pipeline.training.imitate import imitate
from pipeline.training.memory import Memory
from pipeline.training.mixture import mixture
from pipeline.training.reinforce import reinforce
from pipeline.training.task import Task


def none(network: Any, task: Task, config: NoPretrain, memory: Memory | None = None) -> Iterator[Update]:
    """Leave the seeded initial weights as they are (DeepRM)."""
    return iter(())


ALGORITHMS: dict[str, Callable[[Any, Task, Any, Memory | None], Iterator[Update]]] = {
    "none": none,
    "clone": clone,
    "imitate": imitate,
    "mixture": mixture,
    "reinforce": reinforce,
}
