"""The learning algorithms of many machines by their name in params.yaml; each file holds one."""

from collections.abc import Callable, Iterator

from pipeline.learning.update import Update, none
from pipeline.problems.machines.agents.training.a3c import a3c
from pipeline.problems.machines.agents.training.dagger import dagger
from pipeline.problems.machines.agents.training.evolution import evolution
from pipeline.problems.machines.agents.training.ppo import ppo

ALGORITHMS: dict[str, Callable[..., Iterator[Update]]] = {
    "none": none,
    "ppo": ppo,
    "a3c": a3c,
    "dagger": dagger,
    "evolution": evolution,
}
