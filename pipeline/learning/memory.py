"""Memory: the state of a learner between two updates, which survives if the process is killed.

It includes the weights that were best on validation jobsets (maybe the initial ones), and the mean of the latest
weights, which plays better than the last of them (Polyak and Juditsky 1992).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy.typing as npt
import torch
from torch import Tensor, nn

from pipeline.learning.update import Update

Tensors = Mapping[str, npt.NDArray[Any]]
SOON = 10  # updates; before that, less than half of the mean is kept


class Part(Protocol):
    """An object with a state, such as torch's networks and optimizers."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state: tensors, in dicts within dicts."""

    def load_state_dict(self, state: dict[str, Any], /) -> object:
        """Restore a state."""


class Memory:
    """The parts of a learner; after a kill, a part gets its saved state when it is registered again.

    The state is that after `done` complete updates.
    """

    def __init__(self, saved: Tensors | None = None, done: int = 0) -> None:
        self.resumed = saved is not None
        self.done = done
        self._saved = saved or {}
        self._parts: dict[str, Part] = {}

    def keep(self, **parts: Part) -> None:
        """Register parts; each restores its saved state, if any."""
        for name, part in parts.items():
            if name in self._parts:
                raise ValueError(f"a part named {name!r} is registered already")
            self._parts[name] = part
            mine = {place: value for place, value in self._saved.items() if place.split("/")[0] == name}
            if mine:
                part.load_state_dict({**part.state_dict(), **_nested(mine)[name]})  # settings are not saved

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the tensors of all parts by name, for a checkpoint."""
        parts = {name: part.state_dict() for name, part in self._parts.items()}
        return {place: value.detach().cpu().contiguous().numpy() for place, value in _leaves(parts, "")}


class Best:
    """The best weights of a network so far: lowest cost, the first of equals."""

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
        """Restore a state."""
        self.cost, self.stale, self._weights = float(state["cost"]), int(state["stale"]), state["weights"]


def _copied(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in weights.items()}


def _leaves(state: Mapping[Any, Any], place: str) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of nested dicts by path; other values are settings."""
    for key, value in state.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{place}{key}/")
        elif isinstance(value, Tensor):
            yield f"{place}{key}", value


def _nested(leaves: Tensors) -> dict[str, Any]:
    """Return nested dicts from paths; numeric keys become integers, as in torch's optimizers."""
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
    """Yield updates, with the metric `validation` after a validation; leave the best weights in the network."""
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
    """Moving average of a network's weights after each update.

    Between two updates the network holds the mean, which is therefore validated and stored; during an update it holds
    the learning weights. The mean is exponential, like Adam's, but decays faster at first, to drop the initial weights.
    """

    def __init__(self, network: torch.nn.Module, keep: float, memory: Memory) -> None:
        self._network, self._keep, self._taken = network, keep, memory.done
        self._other = _copied(network.state_dict())  # the weights that the network does not hold at the moment
        memory.keep(average=self)

    def begin(self) -> None:
        """Put the learning weights into the network."""
        self._swap()

    def end(self) -> None:
        """Add the learned weights to the mean, and put the mean into the network."""
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
        """Return the weights that the network does not hold at the moment."""
        return dict(self._other)

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Restore these weights."""
        self._other = dict(state)
