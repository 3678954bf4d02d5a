"""The ways to fine-tune by their params.yaml word; each file holds one. None of them imitates a heuristic."""

from collections.abc import Callable, Iterator
from typing import Any

from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.pool.training.mixture import mixture
from pipeline.problems.pool.training.reinforce import reinforce
from pipeline.problems.pool.training.task import Task

FINETUNING: dict[str, Callable[[Any, Task, Any, Memory | None], Iterator[Update]]] = {
    "mixture": mixture,
    "reinforce": reinforce,
}
