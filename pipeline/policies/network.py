"""What every network here is."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from pipeline.core import FloatArray, Seen
from pipeline.policies.encodings import Layout

Judge = Callable[[Seen], FloatArray]  # what is seen [D] -> logits [D, A], without gradients


class Network(nn.Module):
    """A layout of the image, and how many observations to take at once."""

    layout: Layout
    chunk: int

    def forward(self, seen: Seen) -> Tensor:
        """Return the logits [D, A] of the actions, void last."""
        raise NotImplementedError

    def frozen(self) -> Judge:
        """Return the network as it is now, for play: what does not change between two updates is computed once."""

        def judge(seen: Seen) -> FloatArray:
            with torch.no_grad():
                parts = range(0, len(seen.cells), self.chunk)
                logits = torch.cat([self(seen.take(slice(k, k + self.chunk))) for k in parts])
            values: FloatArray = logits.cpu().numpy()
            return values

        return judge
