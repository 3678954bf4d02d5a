"""Base classes of networks, and policies from them."""

from collections.abc import Callable
from functools import partial
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.core.types import BoolArray, FloatArray, IntArray, Observation, Policy
from pipeline.learning import stored
from pipeline.learning.sampling import best, sample
from pipeline.problems.pool.agents.networks.compiled_mlp import MlpWeights
from pipeline.problems.pool.agents.networks.encodings import Layout
from pipeline.problems.pool.agents.networks.lookup import Places
from pipeline.problems.pool.agents.networks.loss import Loss, loss_gradient
from pipeline.problems.pool.env.nouns import CompactObservation, compact


def allowed(observed: CompactObservation, masked: bool) -> BoolArray:
    """Return the actions [D, A] that may be chosen: the legal ones or, without a mask, all."""
    return observed.may if masked else np.ones_like(observed.may)


def log_probabilities(logits: Tensor, may: BoolArray) -> Tensor:
    """Return the log-probabilities [D, A]; those of forbidden actions are very low but finite, to keep gradients."""
    return torch.log_softmax(logits.masked_fill(~torch.from_numpy(may).to(logits.device), -1e9), dim=1)


def backward_from(values: Tensor, gradient: Tensor) -> None:
    """Add the gradients of the weights, given the gradient with respect to values that depend on them.

    The result equals `values.backward(gradient)` to the byte, which would first import sympy (0.2 s).
    """
    (values * gradient).sum().backward()  # type: ignore[no-untyped-call]


class EncodedObservation(Protocol):
    """D observations in a network's input format."""

    @property
    def may(self) -> BoolArray:
        """Return the legal actions [D, A]."""


Encoded = TypeVar("Encoded", bound=EncodedObservation)
Forward = Callable[[Encoded], FloatArray]  # observations [D] -> logits [D, A], without gradients

IMAGES_AT_ONCE = 4096  # on a GPU; 73 MB of DeepRM's images


class Scorer(nn.Module, Generic[Encoded]):
    """A network that scores the actions of encoded observations."""

    def __init__(self) -> None:
        super().__init__()
        stored.initialise_mkl()

    def encode(self, view: Observation) -> Encoded:
        """Return observations in the network's input format."""
        raise NotImplementedError

    def forward(self, observed: Encoded) -> Tensor:
        """Return the logits [D, A] of the actions, void last."""
        raise NotImplementedError

    def frozen(self) -> Forward[Encoded]:
        """Return a snapshot for play, which computes everything that is constant between two updates once."""
        raise NotImplementedError

    def placed(self, device: torch.device | None) -> Self:
        """Return the network on a device."""
        return self.to(device)


class Network(Scorer[CompactObservation]):
    """A network over an image, with its layout and the number of observations per forward pass on a CPU."""

    layout: Layout
    chunk: int

    def encode(self, view: Observation) -> CompactObservation:
        """Return observations in compact form."""
        return compact(view)

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""
        return next(self.parameters()).device

    @property
    def by_torch(self) -> bool:
        """Return whether torch draws images and computes dense layers, because our compiled code is for the CPU."""
        return any(weight.device.type != "cpu" for weight in self.parameters())

    @property
    def at_once(self) -> int:
        """Return the number of observations per forward pass."""
        return IMAGES_AT_ONCE if self.by_torch else self.chunk

    def compiled(self) -> tuple[MlpWeights, Places] | None:
        """Return the current weights, if this network can play in a compiled rollout."""
        return None

    def frozen(self) -> Forward[CompactObservation]:
        """Return a snapshot for play."""

        def logits_of(observed: CompactObservation) -> FloatArray:
            with torch.no_grad():
                parts = range(0, len(observed.cells), self.at_once)
                logits = torch.cat([self(observed.take(slice(k, k + self.at_once))) for k in parts])
            values: FloatArray = logits.cpu().numpy()
            return values

        return logits_of

    def add_gradient(self, observed: CompactObservation, loss: Loss) -> float:
        """Add the gradient of some decisions' summed loss to the weights' own; return the sum of their entropies."""
        total = 0.0
        for first in range(0, len(loss.gain), self.at_once):
            some = slice(first, first + self.at_once)
            part = observed.take(some)
            logits = self(part)
            values = logits.detach().cpu().numpy()
            gradient, entropy = np.empty_like(values), np.empty(len(values))
            loss_gradient(values, part.may, loss.take(some), gradient, entropy)
            backward_from(logits, torch.from_numpy(gradient).to(logits.device))
            total += float(entropy.sum())
        return total


def greedy(network: Scorer[Encoded], masked: bool, sampled: bool = False) -> Policy:
    """Return the policy that takes the network's most probable action (of equals, the lowest), or one that samples."""
    forward = network.frozen()

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        observed = network.encode(view)
        logits, may = forward(observed), observed.may
        actions: IntArray = sample(logits, may, masked, draws) if sampled else best(logits, may, masked)
        return actions

    return policy


PLAY: dict[str, Callable[..., Policy]] = {"greedy": greedy, "sampled": partial(greedy, sampled=True)}
