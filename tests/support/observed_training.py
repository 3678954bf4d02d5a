"""One training run, shared by the contract tests of a problem's learning algorithms that only look at it."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import nn

from pipeline.learning.update import Update


class Run(NamedTuple):
    """What a training run did."""

    start: dict[str, bytes]
    updates: list[Update]
    network: Any
    drawn_after: list[float]  # from torch, seeded with 4 before


def content(network: nn.Module) -> dict[str, bytes]:
    """Return all weights and buffers as bytes."""
    return {name: weight.numpy().tobytes() for name, weight in network.state_dict().items()}


def observed(network: Any, learn: Callable[[Any], Iterable[Update]]) -> Run:
    """Train a network in place."""
    start = content(network)
    torch.manual_seed(4)
    return Run(start, list(learn(network)), network, torch.rand(2).tolist())
