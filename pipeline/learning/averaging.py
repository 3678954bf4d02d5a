"""The mean of a network's latest weights, which plays better than the last of them (Polyak and Juditsky 1992).

It forgets in a geometric row, as Adam's own means do, and at first faster, so that the initial weights do not stay.
"""

from typing import Any

import torch

from pipeline.learning.memory import Memory

SOON = 10  # updates; before so many are taken, less than half of the mean is kept


class Average:
    """The mean of a network's weights behind each update, which the network has between two updates.

    So whoever validates or stores it there has the mean before him. While an update is made it has what learns.
    """

    def __init__(self, network: torch.nn.Module, keep: float, memory: Memory) -> None:
        self._network, self._keep, self._taken = network, keep, memory.done
        self._other = {name: value.clone() for name, value in network.state_dict().items()}  # what it has not just now
        memory.keep(average=self)

    def begin(self) -> None:
        """Give the network the weights that learn."""
        self._swap()

    def end(self) -> None:
        """Take the weights that have learned into the mean, and give the network that."""
        self._taken += 1
        keep = min(self._keep, self._taken / (self._taken + SOON))
        with torch.no_grad():
            for name, now in self._network.state_dict().items():
                self._other[name].mul_(keep).add_(now, alpha=1.0 - keep)
        self._swap()

    def _swap(self) -> None:
        with torch.no_grad():
            for name, now in self._network.state_dict().items():
                kept = now.clone()
                now.copy_(self._other[name])
                self._other[name] = kept

    def state_dict(self) -> dict[str, Any]:
        """Return the weights that the network has not just now."""
        return dict(self._other)

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Take them over."""
        self._other = dict(state)
