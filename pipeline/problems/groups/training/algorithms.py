"""The learning algorithms of the controller by their params.yaml word; each file holds one."""

from collections.abc import Callable, Iterator

from pipeline.learning.update import Update, none
from pipeline.problems.groups.training.dqn import dqn
from pipeline.problems.groups.training.replay import replay

ALGORITHMS: dict[str, Callable[..., Iterator[Update]]] = {
    "none": none,
    "replay": replay,
    "dqn": dqn,
}
