"""How a controller goes about it."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pipeline.errors import UserError


class Mode(StrEnum):
    """Steps of trust."""

    OBSERVE = "observe"  # records what it would do, and touches nothing
    SHADOW = "shadow"  # the same, and replays what was recorded under both orders
    ORDER = "order"  # sets SiteFactor


@dataclass(frozen=True)
class Settings:
    """What a person chose."""

    mode: Mode
    folder: Path
    tick_s: float = 5.0
    strength: int = 1_000_000  # highest SiteFactor
    most: int = 200  # changes of a tick
    unit_s: float = 1.0  # seconds of the scenario's unit of time
    ticks: int = 0  # after which it ends; 0: when it is told to

    def __post_init__(self) -> None:
        if self.strength <= 2000:
            raise UserError(f"--strength: expected more than 2000, the jobs that are ordered, got {self.strength}")
