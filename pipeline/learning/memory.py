"""Memory: what a learner must not forget when its process is killed between two updates.

The best weights on validation jobsets are part of it, the starting ones among them; so is the mean of the latest
weights, which plays better than the last of them (Polyak and Juditsky 1992).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy.typing as npt
import torch
from torch import Tensor, nn

from pipeline.learning.update import Update

Tensors = Mapping[str, npt.NDArray[Any]]
SOON = 10  # updates; before so many are taken, less than half of the mean is kept


class Part(Protocol):
    """Something with a state, as torch's networks and optimizers have one."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state: tensors, in dicts within dicts."""

    def load_state_dict(self, state: dict[str, Any], /) -> object:
        """Take a state over."""


class Memory:
    """The parts of a learner, which are given back their state when they are named again after a kill.

    Parts are named where they are made. What is remembered is the state between two updates, `done` of them taken.
    """

    def __init__(self, saved: Tensors | None = None, done: int = 0) -> None:
        self.resumed = saved is not None
        self.done = done
        self._saved = saved or {}
        self._parts: dict[str, Part] = {}

    def keep(self, **parts: Part) -> None:
        """Remember parts from now on; each takes over the state that was saved of it, if any."""
        for name, part in parts.items():
            if name in self._parts:
                raise ValueError(f"a part named {name!r} is remembered already")
            self._parts[name] = part
            mine = {place: value for place, value in self._saved.items() if place.split("/")[0] == name}
            if mine:
                part.load_state_dict({**part.state_dict(), **_nested(mine)[name]})  # settings are not saved

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the tensors of all parts by name, to be saved."""
        parts = {name: part.state_dict() for name, part in self._parts.items()}
        return {place: value.detach().cpu().contiguous().numpy() for place, value in _leaves(parts, "")}


class Best:
    """The best weights of a network so far; less cost is better, and of equals the first is kept."""

    def __init__(self, network: torch.nn.Module) -> None:
        self._network = network
        self.cost = float("inf")
        self.stale = 0  # offers since the best one
        self._weights = _copied(network.state_dict())

    def offer(self, cost: float) -> None:
        """Keep the network's weights if they are better than the best."""
        if cost < self.cost:
            self.cost, self.stale, self._weights = cost, 0, _copied(self._network.state_dict())
        else:
            self.stale += 1

    def restore(self) -> None:
        """Put the best weights into the network."""
        self._network.load_state_dict(self._weights)

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        cost, stale = torch.tensor(self.cost, dtype=torch.float64), torch.tensor(self.stale)
        return {"cost": cost, "stale": stale, "weights": self._weights}

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Take a state over."""
        self.cost, self.stale, self._weights = float(state["cost"]), int(state["stale"]), state["weights"]


def _copied(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in weights.items()}


def _leaves(state: Mapping[Any, Any], place: str) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of dicts within dicts, by their places; the rest is settings."""
    for key, value in state.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{place}{key}/")
        elif isinstance(value, Tensor):
            yield f"{place}{key}", value


def _nested(leaves: Tensors) -> dict[str, Any]:
    """Return dicts within dicts again; torch's optimizers number what they keep of each weight."""
    whole: dict[Any, Any] = {}
    for place, value in leaves.items():
        *way, last = place.split("/")
        at = whole
        for key in way:
            at = at.setdefault(int(key) if key.isdigit() else key, {})
        at[last] = torch.from_numpy(value.copy())
    return whole


def best_on_validation(
    updates: Iterable[Update],
    network: nn.Module,
    validate: Callable[[], float],
    every: int,
    last: int,
    memory: Memory | None = None,
) -> Iterator[Update]:
    """Pass updates on, with `validation` whenever the network was validated; leave the best weights in it."""
    memory = memory or Memory()
    best = Best(network)
    memory.keep(best_on_validation=best)
    if not memory.resumed:
        start = validate()
        best.offer(start)
        yield Update(0, {"validation": start})
    for update in updates:
        if update.step % every and update.step != last:
            yield update
            continue
        now = validate()
        best.offer(now)
        yield Update(update.step, {**update.metrics, "validation": now})
    best.restore()


class Average:
    """The mean of a network's weights behind each update, which the network has between two updates.

    So whoever validates or stores it there has the mean before him. While an update is made it has what learns. The
    mean forgets in a geometric row, as Adam's own means do; at first faster, so that the initial weights do not stay.
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
