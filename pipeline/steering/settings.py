"""Settings of a controller, and its status: a line each minute, and one when a queue lacks a policy for some ticks."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pipeline.core.storage.files import OWNER, write
from pipeline.errors import UserError
from pipeline.progress import say
from pipeline.steering.factors import PoolDecision
from pipeline.steering.rows import Reading

EVERY_S = 60.0
LACKING_TICKS = 3  # without a policy, after which a line is printed at once
METRIC = "deeprm_steer_ticks_without_policy"
MOST_QUEUES = 3  # in one line


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


class Status:
    """Counts events between two lines."""

    def __init__(self, done: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._done, self._clock, self._due = done, clock, clock()
        self._lacking: dict[str, int] = {}
        self._moved, self._complaint = 0, ""

    def count_lacking(self, one: PoolDecision) -> int:
        """Return how many ticks in a row a queue has had no policy, and report when such a period begins or ends."""
        name = ",".join(one.pool.partitions)
        before = self._lacking.get(name, 0)
        count = self._lacking[name] = before + 1 if one.order is None else 0
        if count == LACKING_TICKS:
            say(f"steer: {name}: no policy for {count} ticks: {one.why}; Slurm's own order applies")
        elif before >= LACKING_TICKS and not count:
            say(f"steer: {name}: the policy answers again")
        return count

    def write_metrics(self, folder: Path) -> None:
        """Write the ticks without a policy of each queue, for the textfile collector of Prometheus' node exporter."""
        rows = [f'{METRIC}{{queue="{queue}"}} {count}' for queue, count in sorted(self._lacking.items())]
        with suppress(UserError):  # a full disk stops no tick
            write(folder / "metrics.prom", "\n".join([f"# TYPE {METRIC} gauge", *rows, ""]).encode(), OWNER)

    def tick(self, found: Sequence[PoolDecision], reading: Reading, moved: int, complaint: str, ms: float) -> None:
        """Count a tick, and print a line once a minute."""
        self._moved += moved
        self._complaint = complaint or self._complaint
        if self._clock() < self._due:
            return
        queues = [self._queue(one, reading) for one in sorted(found, key=lambda one: -len(one.pool.waiting))]
        queues[MOST_QUEUES:] = [f"{len(queues) - MOST_QUEUES} more queues"] if len(queues) > MOST_QUEUES else []
        waiting = sum(len(one.pool.waiting) for one in found)
        said = [f"{waiting} jobs wait", *queues, f"{self._moved} {self._done}", f"{ms:.0f} ms a tick"]
        said += [f"scontrol: {' '.join(self._complaint.split())[:200]}"] if self._complaint else []
        say(f"steer: {'; '.join(said)}")
        self._due, self._moved, self._complaint = self._clock() + EVERY_S, 0, ""

    def _queue(self, one: PoolDecision, reading: Reading) -> str:
        name = ",".join(one.pool.partitions)
        if one.order is None:
            return f"{name}: no policy for {self._lacking.get(name, 0)} ticks: {one.why}"
        waiting = {job.number: job.array for job in one.pool.waiting}
        theirs = next((waiting[job.number] for job in reading.jobs if job.number in waiting), None)
        return f"{name}: first {one.order[0] if one.order else None}, {theirs} in Slurm's order"
