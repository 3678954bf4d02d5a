"""The learning algorithms of the controller by their params.yaml word; each file holds one."""

from collections.abc import Callable, Iterator
from typing import Any

from pipeline.config import NoPretrain
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.groups.networks.group_q import GroupQ
from pipeline.problems.groups.training.dqn import dqn
from pipeline.problems.groups.training.replay import replay
from pipeline.problems.groups.training.task import GroupTask


def none(network: GroupQ, task: GroupTask, config: NoPretrain, memory: Memory | None = None) -> Iterator[Update]:
    """Leave the seeded initial weights as they are."""
    return iter(())


GROUP_ALGORITHMS: dict[str, Callable[[GroupQ, GroupTask, Any, Memory | None], Iterator[Update]]] = {
    "none": none,
    "replay": replay,
    "dqn": dqn,
}
