"""A controller's network as an ONNX file: the value of every configuration; `decided` then distributes the units."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.core import storage
from pipeline.core.config import GroupsCard, QNetworkConfig
from pipeline.errors import UserError
from pipeline.interactive.exporting import example_of, onnx_of
from pipeline.interactive.groups.serving import SHAPES
from pipeline.problems.groups.agents.networks.features import input_of
from pipeline.problems.groups.agents.networks.q_network import ValueNetwork, restore
from pipeline.problems.groups.env.workload.source import cluster_of, configurations_of


def onnx(folder: Path) -> bytes:
    """Return a stored network as an ONNX file, with fields of the observation as inputs.

    Raises:
        UserError: the network combines rewards, which are not values.
    """
    model = storage.read_model(folder, GroupsCard)
    card = model.card
    if isinstance(card.network, QNetworkConfig) and card.network.combine == "reward":
        raise UserError(f"model of agent '{card.agent}': expected network.combine q, with values only; got reward")
    sizes = {"G": card.groups, "Q": len(card.queues), "R": len(card.resources)}
    shapes = {name: tuple(sizes[axis] for axis in axes) for name, axes in SHAPES.items() if name != "now"}
    example = example_of(shapes, masks={})
    return onnx_of(Values(restore(model.card, model.weights), card, list(example)), ["values"], example)


class Values(nn.Module):
    """A network that maps the fields of an observation to values [B, G, L, O]."""

    def __init__(self, network: ValueNetwork, card: GroupsCard, names: list[str]) -> None:
        super().__init__()
        self.network, self._names = network.eval(), names
        self._units = torch.from_numpy(configurations_of(card).units.astype(np.float32))
        cluster = cluster_of(card)
        self._cluster = SimpleNamespace(**cluster._asdict() | {"capacity": torch.from_numpy(cluster.capacity).double()})

    def forward(self, *fields: Tensor) -> Tensor:
        """Return the values."""
        view = SimpleNamespace(**dict(zip(self._names, fields, strict=True)))
        features, amounts = input_of(view, self._cluster, torch)
        found: Tensor = self.network((features.float(), amounts.float()), self._units)
        return found
