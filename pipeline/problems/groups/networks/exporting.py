"""A controller's network as an ONNX file: the value of every configuration; `decided` then hands out the units."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from pipeline import storage
from pipeline.config import GroupsCard, QNetworkConfig
from pipeline.errors import UserError
from pipeline.learning.exporting import Fields, onnx_of
from pipeline.problems.groups.networks.features import MOST_SHARES
from pipeline.problems.groups.networks.q_network import ValueNetwork, restore
from pipeline.problems.groups.workload.source import configurations_of

OF_QUEUE = ("waiting", "waiting_work", "waited", "head_waited", "head_estimate", "recent_jobs", "recent_work")
OF_QUEUE_UNITS, OF_GROUP_UNITS = ("waiting_demand", "head_demand"), ("used", "releasing", "share")
OF_GROUP = ("running", "left", "order")


def onnx(folder: Path) -> bytes:
    """Return a stored network as an ONNX file, of fields of the observation.

    Raises:
        UserError: it combines rewards, which are not values.
    """
    model = storage.read_model(folder, GroupsCard)
    card = model.card
    if isinstance(card.network, QNetworkConfig) and card.network.combine == "reward":
        raise UserError(f"model of agent '{card.agent}': expected network.combine q, for values alone; got reward")
    groups, queues, resources = card.groups, len(card.queues), len(card.resources)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(OF_QUEUE, (groups, queues))
    shapes |= dict.fromkeys(OF_QUEUE_UNITS, (groups, queues, resources))
    shapes |= dict.fromkeys(OF_GROUP_UNITS, (groups, resources)) | dict.fromkeys(OF_GROUP, (groups,))
    example = {name: torch.ones((2, *shape), dtype=torch.float64) for name, shape in shapes.items()}
    network = Values(restore(model.card, model.weights), card, list(example))
    return onnx_of(network, ["values"], example)


class Values(nn.Module):
    """A network, from the fields of an observation to values [B, G, L, O]."""

    def __init__(self, network: ValueNetwork, card: GroupsCard, names: list[str]) -> None:
        super().__init__()
        self.network, self._card, self._names = network.eval(), card, names
        self._units = torch.from_numpy(configurations_of(card).units.astype(np.float32))
        self._capacity = torch.tensor(list(card.resources.values()), dtype=torch.float64)

    def forward(self, *fields: Tensor) -> Tensor:
        """Return the values."""
        features, amounts = self._states(dict(zip(self._names, fields, strict=True)))
        found: Tensor = self.network((features.float(), amounts.float()), self._units)
        return found

    def _states(self, view: Fields) -> tuple[Tensor, Tensor]:
        """Return what `features.states` does, by torch's operations."""
        groups, time = self._card.groups, self._card.interval
        shares, work = groups / self._capacity, groups / time
        wanted, heads = view["waiting_demand"] * shares, view["head_demand"] * shares
        used, releasing, share = (view[name] * shares for name in OF_GROUP_UNITS)
        of_queue = [
            torch.log1p(view["waiting"]),
            torch.log1p(wanted.amax(dim=-1)),
            torch.log1p(view["waiting_work"] * work),
            torch.log1p(view["waited"] / time),
            torch.log1p(view["head_waited"] / time),
            heads.amax(dim=-1).clamp(max=MOST_SHARES),
            torch.log1p(view["head_estimate"] / time),
            torch.log1p(view["recent_jobs"]),
            torch.log1p(view["recent_work"] * work),
        ]
        of_group = [
            torch.log1p(view["running"]),
            used.amax(dim=-1).clamp(max=MOST_SHARES),
            torch.log1p(view["left"] * work),
            share.amin(dim=-1).clamp(max=MOST_SHARES),
        ]
        order = (view["order"][:, :, None] == torch.arange(len(self._card.orders))).double()
        waits = wanted.sum(dim=2)
        others = (waits.sum(dim=1, keepdim=True) - waits).amax(dim=-1) / groups
        idle = 1 - view["used"].sum(dim=1, keepdim=True) / self._capacity
        of_cluster = torch.stack([torch.log1p(others), idle.amin(dim=-1).expand(others.shape)], dim=-1)
        queues = torch.stack(of_queue, dim=-1).flatten(2)
        features = torch.cat([queues, torch.stack(of_group, dim=-1), order, of_cluster], dim=-1)
        return features, torch.cat([used, releasing, share, waits, heads.flatten(2)], dim=-1)
