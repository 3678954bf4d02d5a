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
    RELEASE = "release"  # lets jobs go that are submitted held, one by one, where the policy wants them

    @property
    def acts(self) -> bool:
        """Return whether it changes anything."""
        return self in (Mode.ORDER, Mode.RELEASE)


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
    draw: float = 0.0  # temperature, in units of the policy's scores, at which orders are drawn; 0: they are not
    held_in: tuple[str, ...] = ()  # partitions whose jobs are submitted held, for the controller to let go
    canary: int = 50  # jobs of a window by which the policy is judged while it acts; 0: it is not
    longest_hold_s: float = 86_400.0  # behind which a job is let go, whatever the policy wants

    def __post_init__(self) -> None:
        if self.draw and self.mode not in (Mode.OBSERVE, Mode.ORDER):
            raise UserError(f"--draw: expected with --mode observe or order, got {self.mode}")
        if bool(self.held_in) != (self.mode is Mode.RELEASE):
            raise UserError(
                "--held-in: expected with --mode release, and only there: the partitions whose jobs are submitted held"
            )
        if self.strength <= 2000:
            raise UserError(f"--strength: expected more than 2000, the jobs that are ordered, got {self.strength}")
