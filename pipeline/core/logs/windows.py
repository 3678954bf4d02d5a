"""Periods of a log, and windows of consecutive jobs in them."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from pipeline.core.config import GroupsScenario, MachinesLog, MachinesScenario, PoolLog
from pipeline.core.types import SPLIT_NUMBERS
from pipeline.errors import TooShortError

Jobs = TypeVar("Jobs")  # of one jobset


@dataclass(frozen=True)
class Origin(Generic[Jobs]):
    """A source of jobsets with random numbers of their own, keyed by (seed, split, load, number)."""

    seed: int
    scenario: GroupsScenario | MachinesScenario

    def draw(self, stream: str, load: int, rng: np.random.Generator) -> Jobs:
        """Return a jobset of a split, or a `fresh` one, at a load in percent."""
        raise NotImplementedError

    def split(self, name: str) -> dict[int, list[Jobs]]:
        """Return the jobsets of a split, by load."""
        count = getattr(self.scenario.jobsets, name)
        return {load: [self._drawn(name, load, k) for k in range(count)] for load in self.scenario.loads}

    def fresh(self, load: int, number: int) -> Jobs:
        """Return a training jobset other than those of `generate`."""
        return self._drawn("fresh", load, number)

    def _drawn(self, stream: str, load: int, number: int) -> Jobs:
        return self.draw(stream, load, np.random.default_rng([self.seed, SPLIT_NUMBERS[stream], load, number]))


def periods(jobs: int, workload: PoolLog | MachinesLog) -> dict[str, tuple[int, int]]:
    """Return each split's first job and the one after its last.

    >>> periods(100, PoolLog(name="swf", path="", train_share=0.6, validation_share=0.15))
    {'train': (0, 60), 'validation': (60, 75), 'test': (75, 100)}
    """
    learned = workload.train_share
    first, second = round(jobs * learned), round(jobs * (learned + workload.validation_share))
    return {"train": (0, first), "validation": (first, second), "test": (second, jobs)}


def starts(span: tuple[int, int], size: int, most: int) -> list[int]:
    """Return the first jobs of disjoint windows in a period, up to `most`, evenly spread; UserError if none fits.

    >>> starts((60, 100), 10, 3)
    [60, 75, 90]
    """
    room = _room(span, size)
    windows = min((room + size) // size, most)
    # Whole numbers throughout: a start rounded down could overlap the window before it.
    return [span[0] + k * room // max(windows - 1, 1) for k in range(windows)]


def random_start(span: tuple[int, int], size: int, rng: np.random.Generator) -> int:
    """Return a random first job of a window in a period; a UserError if the period is too short."""
    return span[0] + int(rng.integers(_room(span, size) + 1))


def _room(span: tuple[int, int], size: int) -> int:
    """Return the number of jobs by which a window can be moved within a period."""
    room = span[1] - span[0] - size
    if room < 0:
        jobs = f"{span[1] - span[0]} jobs ({span[0]} to {span[1]} of the log)"
        raise TooShortError(
            f"workload: a period of {jobs} is shorter than a window of {size}: lower it, or read a longer log"
        )
    return room
