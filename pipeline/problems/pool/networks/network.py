"""What every network here is."""

from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.core import BoolArray, FloatArray, Observation
from pipeline.problems.pool.networks.compiled_mlp import Weights
from pipeline.problems.pool.networks.encodings import Layout
from pipeline.problems.pool.networks.lookup import Places
from pipeline.problems.pool.networks.loss import Loss, loss_gradient
from pipeline.problems.pool.nouns import Seen, compact


class Sight(Protocol):
    """What a network sees of D observations."""

    @property
    def may(self) -> BoolArray:
        """Return the legal actions [D, A]."""


Seeing = TypeVar("Seeing", bound=Sight)
Judge = Callable[[Seeing], FloatArray]  # what is seen [D] -> logits [D, A], without gradients

IMAGES_AT_ONCE = 4096  # on a GPU; 73 MB of DeepRM's images


class Scorer(nn.Module, Generic[Seeing]):
    """What scores actions by something that it sees of an observation."""

    def see(self, view: Observation) -> Seeing:
        """Return what it sees of observations."""
        raise NotImplementedError

    def forward(self, seen: Seeing) -> Tensor:
        """Return the logits [D, A] of the actions, void last."""
        raise NotImplementedError

    def frozen(self) -> Judge[Seeing]:
        """Return the network as it is now, for play: what does not change between two updates is computed once."""
        raise NotImplementedError

    def placed(self, device: torch.device | None) -> Self:
        """Return it where it computes."""
        return self.to(device)


class Network(Scorer[Seen]):
    """A layout of the image, and how many observations to take at once on a CPU."""

    layout: Layout
    chunk: int

    def see(self, view: Observation) -> Seen:
        """Return observations in compact form."""
        return compact(view)

    def forward(self, seen: Seen) -> Tensor:
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

    def compiled(self) -> tuple[Weights, Places] | None:
        """Return the weights as they are now, if this network can play inside a compiled roll-out."""
        return None

    def frozen(self) -> Judge[Seen]:
        """Return the network as it is now, for play: what does not change between two updates is computed once."""

        def judge(seen: Seen) -> FloatArray:
            with torch.no_grad():
                parts = range(0, len(seen.cells), self.at_once)
                logits = torch.cat([self(seen.take(slice(k, k + self.at_once))) for k in parts])
            values: FloatArray = logits.cpu().numpy()
            return values

        return judge

    def add_gradient(self, seen: Seen, loss: Loss) -> float:
        """Add the gradient of some decisions' summed loss to the weights' own; return the sum of their entropies."""
        total = 0.0
        for first in range(0, len(loss.gain), self.at_once):
            some = slice(first, first + self.at_once)
            part = seen.take(some)
            logits = self(part)
            values = logits.detach().cpu().numpy()
            gradient, entropy = np.empty_like(values), np.empty(len(values))
            loss_gradient(values, part.may, loss.take(some), gradient, entropy)
            logits.backward(torch.from_numpy(gradient).to(logits.device))
            total += float(entropy.sum())
        return total
