"""Networks: observation -> logits [B, A] of the actions, void last.

`Mlp` is DeepRM's (section 4.1: one hidden layer of 20, 89,451 weights on the 20 x 223 image); `Cnn` is DeepRM2's
Table 1.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from pipeline.config import Cnn as CnnConfig
from pipeline.config import Mlp as MlpConfig
from pipeline.config import NetworkConfig
from pipeline.core import Cluster, Observation
from pipeline.policies.encodings import Layout, clock, draw, pieces
from pipeline.policies.lookup import SumRows, piece_table
from pipeline.policies.patches import convolved, patches_of


class Network(nn.Module):
    """What every network here is: a layout of the image, and how many observations to take at once."""

    layout: Layout
    chunk: int

    def forward(self, view: Observation) -> Tensor:
        """Return the logits [B, A]."""
        raise NotImplementedError


class Mlp(Network):
    """One hidden layer over the image, which is never drawn."""

    chunk = 16384

    def __init__(self, layout: Layout, hidden: int) -> None:
        super().__init__()
        self.layout = layout
        self.first = nn.Linear(layout.rows * layout.columns, hidden)
        self.last = nn.Linear(hidden, layout.slots + 1)

    def forward(self, view: Observation) -> Tensor:
        """Return the logits [B, A]."""
        numbers = torch.from_numpy(pieces(view, self.layout))
        table = piece_table(self.first.weight, self.layout)
        hidden = SumRows.apply(table, numbers) + self.first.bias  # type: ignore[no-untyped-call]
        if self.layout.clock:
            column = self.first.weight.view(len(self.first.bias), self.layout.rows, -1)[:, :, -1].sum(dim=1)
            hidden = hidden + torch.from_numpy(clock(view))[:, None] * column
        logits: Tensor = self.last(torch.relu(hidden))
        return logits

    def on_image(self, image: Tensor) -> Tensor:
        """Return the same logits by the dense layer on drawn images [B, T, columns]."""
        logits: Tensor = self.last(torch.relu(self.first(image.flatten(1))))
        return logits


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

    def forward(self, view: Observation) -> Tensor:
        """Return the logits [B, A]."""
        maps = convolved(patches_of(draw(view, self.layout)), self.first, self.second)
        logits: Tensor = self.last(torch.tanh(self.third(maps)))
        return logits

    def on_image(self, image: Tensor) -> Tensor:
        """Return the same logits by convolving whole drawn images [B, T, columns]."""
        maps = nnf.avg_pool2d(torch.relu(self.first(image[:, None])), 2)
        maps = nnf.avg_pool2d(torch.relu(self.second(maps)), 2)
        logits: Tensor = self.last(torch.tanh(self.third(maps.flatten(1))))
        return logits


def _mlp(config: MlpConfig, cluster: Cluster) -> Network:
    return Mlp(Layout.of(cluster, config.clock), config.hidden)


def _cnn(config: CnnConfig, cluster: Cluster) -> Network:
    return Cnn(Layout.of(cluster, config.clock), config.channels, config.hidden)


def build(config: NetworkConfig, cluster: Cluster, seed: int) -> Network:
    """Return a network with the initial weights that `seed` gives."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NETWORKS[config.name](config, cluster)


NETWORKS: dict[str, Callable[..., Network]] = {"mlp": _mlp, "cnn": _cnn}
