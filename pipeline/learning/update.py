"""What an update of a learner reports, and the learner that makes none."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Update(NamedTuple):
    """One update of a learner."""

    step: int
    metrics: Mapping[str, float]

    @property
    def note(self) -> str:
        """Return the metrics for people."""
        return ", ".join(f"{name} {value:.4g}" for name, value in self.metrics.items())


def none(network: object, task: object, config: object, memory: object = None) -> Iterator[Update]:
    """Leave the seeded initial weights as they are (DeepRM)."""
    return iter(())
