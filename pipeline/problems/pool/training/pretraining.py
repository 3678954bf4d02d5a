"""The ways to pre-train by their params.yaml word; each file holds one."""

from collections.abc import Callable, Iterator
from typing import Any

from pipeline.config import NoPretrain
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.pool.training.clone import clone
from pipeline.problems.pool.training.imitate import imitate
from pipeline.problems.pool.training.task import Task


def none(network: Any, task: Task, config: NoPretrain, memory: Memory | None = None) -> Iterator[Update]:
    """Leave the seeded initial weights as they are (DeepRM)."""
    return iter(())


PRETRAINING: dict[str, Callable[[Any, Task, Any, Memory | None], Iterator[Update]]] = {
    "none": none,
    "clone": clone,
    "imitate": imitate,
}
