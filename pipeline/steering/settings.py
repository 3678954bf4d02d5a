"""Settings of a controller."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pipeline.errors import UserError


class Mode(StrEnum):
    """Levels of trust."""

    OBSERVE = "observe"  # records decisions, and touches nothing
    SHADOW = "shadow"  # the same, and replays the recorded jobs under both orders
    ORDER = "order"  # sets SiteFactor
    RELEASE = "release"  # releases jobs that are submitted held, one by one, on the policy's nodes

    @property
    def acts(self) -> bool:
        """Whether the controller changes anything."""
        return self in (Mode.ORDER, Mode.RELEASE)


@dataclass(frozen=True)
class Settings:
    """The user's choices."""

    mode: Mode
    folder: Path
    tick_s: float = 5.0
    strength: int = 1_000_000  # highest SiteFactor
    most: int = 200  # most changes per tick
    unit_s: float = 1.0  # seconds of the scenario's unit of time
    ticks: int = 0  # number of ticks after which it ends; 0: only at a signal
    draw: float = 0.0  # temperature of drawn orders, in units of the policy's scores; 0: no draws
    held_in: tuple[str, ...] = ()  # partitions whose jobs are submitted held, for the controller to release
    canary: int = 50  # jobs of a window, after each of which an acting policy is judged; 0: it is not judged
    longest_hold_s: float = 86_400.0  # after which a job is released, regardless of the policy

    def __post_init__(self) -> None:
        if self.draw and self.mode not in (Mode.OBSERVE, Mode.ORDER):
            raise UserError(f"--draw: expected with --mode observe or order, got {self.mode}")
        if bool(self.held_in) != (self.mode is Mode.RELEASE):
            raise UserError(
                "--held-in: expected with --mode release, and only there: the partitions whose jobs are submitted held"
            )
