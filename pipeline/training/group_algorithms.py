"""The learning algorithms of the controller by their params.yaml word; each file holds one."""

from collections.abc import Callable, Iterator
from typing import Any

from pipeline.config import NoPretrain
from pipeline.policies.group_q import GroupQ
from pipeline.training.decisions import Update
from pipeline.training.dqn import dqn
from pipeline.training.group_task import GroupTask
from pipeline.training.memory import Memory
from pipeline.training.replay import replay


def none(network: GroupQ, task: GroupTask, config: NoPretrain, memory: Memory | None = None) -> Iterator[Update]:
    """Leave the seeded initial weights as they are."""
    return iter(())


GROUP_ALGORITHMS: dict[str, Callable[[GroupQ, GroupTask, Any, Memory | None], Iterator[Update]]] = {
    "none": none,
    "replay": replay,
    "dqn": dqn,
}
