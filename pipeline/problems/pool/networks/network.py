"""What every network here is."""

from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.core import BoolArray, FloatArray, IntArray, Observation, Policy
from pipeline.learning import stored
from pipeline.learning.sampling import best, sample
from pipeline.problems.pool.networks.compiled_mlp import MlpWeights
from pipeline.problems.pool.networks.encodings import Layout
from pipeline.problems.pool.networks.lookup import Places
from pipeline.problems.pool.networks.loss import Loss, loss_gradient
from pipeline.problems.pool.nouns import CompactObservation, compact


def allowed(observed: CompactObservation, masked: bool) -> BoolArray:
    """Return the actions [D, A] that may be chosen: the legal ones, or with no mask all."""
    return observed.may if masked else np.ones_like(observed.may)


def log_probabilities(logits: Tensor, may: BoolArray) -> Tensor:
    """Return the log-probabilities [D, A]; those of forbidden actions are very low, not infinite, to keep gradients."""
    return torch.log_softmax(logits.masked_fill(~torch.from_numpy(may).to(logits.device), -1e9), dim=1)


def pull(values: Tensor, gradient: Tensor) -> None:
    """Add what a gradient by some values comes to, to the gradients of the weights that they depend on.

    It is `values.backward(gradient)`, to the same bytes: that one imports sympy first, 0.2 s of a process.
    """
    (values * gradient).sum().backward()  # type: ignore[no-untyped-call]


class EncodedObservation(Protocol):
    """D observations as a network takes them."""

    @property
    def may(self) -> BoolArray:
        """Return the legal actions [D, A]."""

    def _replace(self, *, may: BoolArray) -> Self:
        """Return the same with other legal actions."""


Encoded = TypeVar("Encoded", bound=EncodedObservation)
Forward = Callable[[Encoded], FloatArray]  # observations [D] -> logits [D, A], without gradients

IMAGES_AT_ONCE = 4096  # on a GPU; 73 MB of DeepRM's images


class Scorer(nn.Module, Generic[Encoded]):
    """What scores the actions of encoded observations."""

    def __init__(self) -> None:
        super().__init__()
        stored.settle()

    def encode(self, view: Observation) -> Encoded:
        """Return observations as it takes them."""
        raise NotImplementedError

    def forward(self, observed: Encoded) -> Tensor:
        """Return the logits [D, A] of the actions, void last."""
        raise NotImplementedError

    def frozen(self) -> Forward[Encoded]:
        """Return the network as it is now, for play: what does not change between two updates is computed once."""
        raise NotImplementedError

    def placed(self, device: torch.device | None) -> Self:
        """Return it where it computes."""
        return self.to(device)


class Network(Scorer[CompactObservation]):
    """A layout of the image, and how many observations to take at once on a CPU."""

    layout: Layout
    chunk: int

    def encode(self, view: Observation) -> CompactObservation:
        """Return observations in compact form."""
        return compact(view)

    def forward(self, observed: CompactObservation) -> Tensor:
        """Return the logits [D, A] of the actions, void last."""
        raise NotImplementedError

    @property
    def device(self) -> torch.device:
        """Return where the weights are."""
        return next(self.parameters()).device

    @property
    def by_torch(self) -> bool:
        """Return whether images and dense layers are torch's business: our compiled code is for the CPU."""
        return any(weight.device.type != "cpu" for weight in self.parameters())

    @property
    def at_once(self) -> int:
        """Return how many observations to take at once."""
        return IMAGES_AT_ONCE if self.by_torch else self.chunk

    def compiled(self) -> tuple[MlpWeights, Places] | None:
        """Return the weights as they are now, if this network can play inside a compiled roll-out."""
        return None

    def frozen(self) -> Forward[CompactObservation]:
        """Return the network as it is now, for play: what does not change between two updates is computed once."""

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
            pull(logits, torch.from_numpy(gradient).to(logits.device))
            total += float(entropy.sum())
        return total


def sampled(network: Scorer[Encoded], masked: bool) -> Policy:
    """Return the policy that draws each action with the chances that the network gives it now."""
    forward = network.frozen()

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        observed = network.encode(view)
        actions: IntArray = sample(forward(observed), observed.may, masked, draws)
        return actions

    return policy


def greedy(network: Scorer[Encoded], masked: bool) -> Policy:
    """Return the policy that takes what is the most probable action to the network now; ties go to the lowest."""
    forward = network.frozen()

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        observed = network.encode(view)
        actions: IntArray = best(forward(observed), observed.may, masked)
        return actions

    return policy


PLAY = {"greedy": greedy, "sampled": sampled}
