"""What an update of a learner reports."""

from collections.abc import Mapping
from typing import NamedTuple


class Update(NamedTuple):
    """One update of a learner."""

    step: int
    metrics: Mapping[str, float]

    @property
    def note(self) -> str:
        """Return the metrics for people."""
        return ", ".join(f"{name} {value:.4g}" for name, value in self.metrics.items())
