"""Algorithms that pretrain and finetune a pooled cluster's agents, by name in params.yaml; each file holds one."""

from collections.abc import Callable, Iterator

from pipeline.learning.update import Update, none
from pipeline.problems.pool.agents.training.clone import clone
from pipeline.problems.pool.agents.training.evolution import evolution
from pipeline.problems.pool.agents.training.reinforce import reinforce

ALGORITHMS: dict[str, Callable[..., Iterator[Update]]] = {
    "none": none,
    "clone": clone,
    "evolution": evolution,
    "reinforce": reinforce,
}
