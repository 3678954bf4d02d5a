"""DeepRM's network (section 4.1): one hidden layer of 20 units over an image that is never drawn."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from pipeline.problems.pool.agents.networks.compiled_mlp import MlpWeights, forward, gradient
from pipeline.problems.pool.agents.networks.encodings import Layout, paint
from pipeline.problems.pool.agents.networks.lookup import Places, SumRows, piece_table, places_of
from pipeline.problems.pool.agents.networks.loss import Loss
from pipeline.problems.pool.agents.networks.network import Forward, Network, backward_from
from pipeline.problems.pool.agents.networks.rows import padded
from pipeline.problems.pool.env.nouns import CompactObservation


class Mlp(Network):
    """One hidden layer over the image."""

    chunk = 65536

    def __init__(self, layout: Layout, hidden: int) -> None:
        super().__init__()
        self.layout = layout
        self.first = nn.Linear(layout.rows * layout.columns, hidden)
        self.last = nn.Linear(hidden, layout.slots + 1)

    def forward(self, observed: CompactObservation) -> Tensor:
        """Return the logits [D, A]."""
        if self.by_torch:
            return self.on_image(paint(observed, self.layout, self.device))
        table = piece_table(self.first.weight, self.layout)
        sums = SumRows.apply(table, observed, places_of(self.layout))  # type: ignore[no-untyped-call]
        hidden = sums[:, : len(self.first.bias)] + self.first.bias
        logits: Tensor = self.last(torch.relu(hidden))
        return logits

    def compiled(self) -> tuple[MlpWeights, Places] | None:
        """Return the current weights for compiled play; None on a GPU."""
        if self.by_torch:
            return None
        with torch.no_grad():
            return self._laid_out(piece_table(self.first.weight, self.layout)), places_of(self.layout)

    def _laid_out(self, table: Tensor) -> MlpWeights:
        hidden, actions = table.shape[1] - len(self.first.bias), padded(len(self.last.bias)) - len(self.last.bias)
        with torch.no_grad():
            bias, last_bias = pad(self.first.bias, (0, hidden)), pad(self.last.bias, (0, actions))
            last = pad(self.last.weight.T, (0, actions, 0, hidden))
            rows = (value.contiguous().numpy() for value in (table.detach(), bias, last, last_bias))
        return MlpWeights(*rows)

    def frozen(self) -> Forward[CompactObservation]:
        """Return a compiled snapshot of the network."""
        weights = self.compiled()
        return super().frozen() if weights is None else lambda observed: forward(*weights, observed)

    def add_gradient(self, observed: CompactObservation, loss: Loss) -> float:
        """Add the gradient of some decisions' summed loss, compiled; return the sum of their entropies."""
        if self.by_torch:
            return super().add_gradient(observed, loss)
        table = piece_table(self.first.weight, self.layout)
        found = gradient(self._laid_out(table), places_of(self.layout), observed, loss)
        backward_from(table, torch.from_numpy(found.table.sum(axis=0)))
        hidden, actions = len(self.first.bias), len(self.last.bias)
        for weight, value in (
            (self.first.bias, found.bias.sum(axis=0)[:hidden]),
            (self.last.weight, found.last.sum(axis=0)[:hidden, :actions].T),
            (self.last.bias, found.last_bias.sum(axis=0)[:actions]),
        ):
            more = torch.from_numpy(value.astype(np.float32))
            weight.grad = more if weight.grad is None else weight.grad + more
        return float(found.entropy.sum())

    def on_image(self, image: Tensor) -> Tensor:
        """Return the same logits, computed by a dense layer on drawn images [D, T, columns]."""
        logits: Tensor = self.last(torch.relu(self.first(image.flatten(1))))
        return logits
