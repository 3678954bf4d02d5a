"""What every network here is."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from pipeline.core import FloatArray, Seen
from pipeline.policies.encodings import Layout

Judge = Callable[[Seen], FloatArray]  # what is seen [D] -> logits [D, A], without gradients

IMAGES_AT_ONCE = 4096  # on a GPU; 73 MB of DeepRM's images


class Network(nn.Module):
    """A layout of the image, and how many observations to take at once on a CPU."""

    layout: Layout
    chunk: int

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

    def frozen(self) -> Judge:
        """Return the network as it is now, for play: what does not change between two updates is computed once."""

        def judge(seen: Seen) -> FloatArray:
            with torch.no_grad():
                parts = range(0, len(seen.cells), self.at_once)
                logits = torch.cat([self(seen.take(slice(k, k + self.at_once))) for k in parts])
            values: FloatArray = logits.cpu().numpy()
            return values

        return judge
