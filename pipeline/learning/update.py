"""Updates, as learners report them, and a learner that makes none."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Update(NamedTuple):
    """One update of a learner."""

    step: int
    metrics: Mapping[str, float]

    @property
    def note(self) -> str:
        """The metrics as text."""
        return ", ".join(f"{name} {value:.4g}" for name, value in self.metrics.items())


def none(network: object, task: object, config: object, memory: object = None) -> Iterator[Update]:
    """Keep the seeded initial weights (DeepRM)."""
    return iter(())
