"""DeepRM2's network (Table 1, 326,859 weights): convolutions over the drawn image."""

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from pipeline.core import Seen
from pipeline.policies.encodings import Layout, draw
from pipeline.policies.network import Network
from pipeline.policies.patches import convolved, patches_of


class Cnn(Network):
    """Two convolutions with average pools, then two dense layers."""

    chunk = 1024

    def __init__(self, layout: Layout, channels: tuple[int, int], hidden: int) -> None:
        super().__init__()
        self.layout = layout
        self.first = nn.Conv2d(1, channels[0], kernel_size=5, padding=2)
        self.second = nn.Conv2d(channels[0], channels[1], kernel_size=5, padding=2)
        self.third = nn.Linear(channels[1] * (layout.rows // 4) * (layout.columns // 4), hidden)
        self.last = nn.Linear(hidden, layout.slots + 1)

    def forward(self, seen: Seen) -> Tensor:
        """Return the logits [D, A]."""
        maps = convolved(patches_of(draw(seen, self.layout)), self.first, self.second)
        logits: Tensor = self.last(torch.tanh(self.third(maps)))
        return logits

    def on_image(self, image: Tensor) -> Tensor:
        """Return the same logits by convolving whole drawn images [D, T, columns]."""
        maps = nnf.avg_pool2d(torch.relu(self.first(image[:, None])), 2)
        maps = nnf.avg_pool2d(torch.relu(self.second(maps)), 2)
        logits: Tensor = self.last(torch.tanh(self.third(maps.flatten(1))))
        return logits
