"""A controller's network as an ONNX file: the value of every configuration; `decided` then distributes the units."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor

from pipeline.core import storage
from pipeline.core.config import GroupsCard, QNetworkConfig
from pipeline.errors import UserError
from pipeline.interactive.exporting import Fields, onnx_of
from pipeline.interactive.groups.serving import SHAPES
from pipeline.problems.groups.agents.networks.features import input_of
from pipeline.problems.groups.agents.networks.q_network import restore
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
    network, cluster = restore(model.card, model.weights), cluster_of(card)
    units = torch.from_numpy(configurations_of(card).units.astype(np.float32))
    tensors = SimpleNamespace(**cluster._asdict() | {"capacity": torch.from_numpy(cluster.capacity).double()})

    def values(view: Fields) -> Tensor:
        """Return values [B, G, L, O]."""
        features, amounts = input_of(SimpleNamespace(**view), tensors, torch)
        found: Tensor = network((features.float(), amounts.float()), units)
        return found

    return onnx_of(network, values, ["values"], shapes, masks={})
