"""DeepRM2's network (Table 1, 326,859 weights): convolutions over the image, on each distinct part of it once."""

import numpy as np
import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from pipeline.core import FloatArray, Seen
from pipeline.policies.convolving import LONE, Pool, Sum, add_up, pool, share, strip_rows
from pipeline.policies.encodings import Layout
from pipeline.policies.network import Judge, Network
from pipeline.policies.patches import Patchwork
from numba import get_num_threads

MOST = 400_000


class Cnn(Network):
    """Two convolutions with average pools, then two dense layers."""

    chunk = 65536

    def __init__(self, layout: Layout, channels: tuple[int, int], hidden: int) -> None:
        super().__init__()
        self.layout = layout
        self.first = nn.Conv2d(1, channels[0], kernel_size=5, padding=2)
        self.second = nn.Conv2d(channels[0], channels[1], kernel_size=5, padding=2)
        self.third = nn.Linear(channels[1] * (layout.rows // 4) * (layout.columns // 4), hidden)
        self.last = nn.Linear(hidden, layout.slots + 1)

    def forward(self, seen: Seen) -> Tensor:
        """Return the logits [D, A]."""
        patchwork = Patchwork(self.layout)
        where = patchwork.add(seen)
        rows = strip_rows(torch.from_numpy(patchwork.cells), self.first, self.second)
        maps = Pool.apply(rows, self.second.bias, patchwork.strips)
        hidden = Sum.apply(maps, self._by_column(), patchwork.placed, where) + self.third.bias
        logits: Tensor = self.last(torch.tanh(hidden))
        return logits

    def frozen(self) -> Judge:
        """Return the network as it is now, with memory of what it met."""
        return Memory(self)

    def _by_column(self) -> Tensor:
        """Return the third layer's weights [columns, C, H]."""
        columns = self.layout.columns // 4
        return self.third.weight.view(len(self.third.bias), -1, columns).permute(2, 1, 0).contiguous()

    def on_image(self, image: Tensor) -> Tensor:
        """Return the same logits by convolving whole drawn images [D, T, columns]."""
        maps = nnf.avg_pool2d(torch.relu(self.first(image[:, None])), 2)
        maps = nnf.avg_pool2d(torch.relu(self.second(maps)), 2)
        logits: Tensor = self.last(torch.tanh(self.third(maps.flatten(1))))
        return logits


class Memory:
    def __init__(self, net: Cnn) -> None:
        import copy
        self.net = copy.deepcopy(net)
        self.weight = self.net._by_column().detach().numpy()
        self.bias = self.net.second.bias.detach().numpy()
        self.reset()

    def reset(self):
        self.patchwork = Patchwork(self.net.layout)
        self.rows = np.empty((0, 5, self.net.second.out_channels * (self.net.layout.rows // 2)), np.float32)
        self.maps = np.empty((0, self.weight.shape[1]), np.float32)
        self.shares = np.empty((0, self.weight.shape[2]), np.float32)
        self.n = [0, 0, 0]

    def __call__(self, seen: Seen) -> FloatArray:
        B = max(1, 65536 // self.weight.shape[0])
        out = []
        for k in range(0, len(seen.cells), B):
            out.append(self.block(seen.take(slice(k, k + B))))
        return np.concatenate(out)

    def block(self, seen):
        if self.n[2] > MOST: self.reset()
        where = self.patchwork.add(seen)
        p = self.patchwork
        s, u, q = self.n
        S, U, P = len(p.cells), len(p.strips), len(p.placed)
        from pipeline.policies.patches import _longer
        self.rows, self.maps, self.shares = _longer(self.rows, S), _longer(self.maps, U), _longer(self.shares, P)
        with torch.no_grad():
            for k in range(s, S, LONE):
                some = p.cells[k:k + LONE]
                full = np.zeros((LONE, *some.shape[1:]), np.float32); full[:len(some)] = some
                self.rows[k:k + len(some)] = strip_rows(torch.from_numpy(full), self.net.first, self.net.second)[:len(some)].numpy()
            if U > u: pool(self.rows, self.bias, p.strips[u:], self.maps[u:U])
            if P > q: share(self.maps, self.weight, p.placed[q:], self.shares[q:P])
            self.n = [S, U, P]
            hidden = np.empty((len(where), self.weight.shape[2]), np.float32)
            add_up(self.shares, where, get_num_threads(), hidden)
            return self.net.last(torch.tanh(torch.from_numpy(hidden) + self.net.third.bias)).numpy()
