"""The learning algorithms of the event-driven problem by their params.yaml word; each file holds one."""

from collections.abc import Callable, Iterator
from typing import Any

from pipeline.config import NoPretrain
from pipeline.policies.actor_critic import ActorCritic
from pipeline.training.a3c import a3c
from pipeline.training.cem import cem
from pipeline.training.dagger import dagger
from pipeline.training.decisions import Update
from pipeline.training.event_task import EventTask
from pipeline.training.memory import Memory
from pipeline.training.ppo import ppo


def none(network: ActorCritic, task: EventTask, config: NoPretrain, memory: Memory | None = None) -> Iterator[Update]:
    """Leave the seeded initial weights as they are."""
    return iter(())


EVENT_ALGORITHMS: dict[str, Callable[[ActorCritic, EventTask, Any, Memory | None], Iterator[Update]]] = {
    "none": none,
    "ppo": ppo,
    "a3c": a3c,
    "dagger": dagger,
    "cem": cem,
}
