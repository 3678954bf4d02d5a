"""DeepRM's network (section 4.1): one hidden layer of 20, on an image that is never drawn."""

import torch
from torch import Tensor, nn

from pipeline.core import FloatArray, Seen
from pipeline.policies.encodings import Layout, paint
from pipeline.policies.lookup import SumRows, decide, piece_table, places_of
from pipeline.policies.network import Judge, Network


class Mlp(Network):
    """One hidden layer over the image."""

    chunk = 65536

    def __init__(self, layout: Layout, hidden: int) -> None:
        super().__init__()
        self.layout = layout
        self.first = nn.Linear(layout.rows * layout.columns, hidden)
        self.last = nn.Linear(hidden, layout.slots + 1)

    def forward(self, seen: Seen) -> Tensor:
        """Return the logits [D, A]."""
        if self.by_torch:
            return self.on_image(paint(seen, self.layout, self.device))
        table = piece_table(self.first.weight, self.layout)
        hidden = SumRows.apply(table, seen, places_of(self.layout)) + self.first.bias  # type: ignore[no-untyped-call]
        logits: Tensor = self.last(torch.relu(hidden))
        return logits

    def frozen(self) -> Judge:
        """Return the network as it is now, wholly compiled."""
        if self.by_torch:
            return super().frozen()
        places = places_of(self.layout)
        with torch.no_grad():
            table = piece_table(self.first.weight, self.layout).numpy()
            bias, last, last_bias = (
                value.numpy().copy() for value in (self.first.bias, self.last.weight, self.last.bias)
            )

        def judge(seen: Seen) -> FloatArray:
            return decide(table, bias, last, last_bias, seen, places)

        return judge

    def on_image(self, image: Tensor) -> Tensor:
        """Return the same logits by the dense layer on drawn images [D, T, columns]."""
        logits: Tensor = self.last(torch.relu(self.first(image.flatten(1))))
        return logits
