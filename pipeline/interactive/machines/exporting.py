"""Networks of many machines as ONNX files that compute their own features."""

from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor

from pipeline.core import storage
from pipeline.core.config import MachinesCard
from pipeline.interactive.exporting import Fields, Shapes, greedy, onnx_of
from pipeline.problems.machines.agents.networks.actor_critic import ActorCritic, DeepSets
from pipeline.problems.machines.agents.networks.features import SCALE, SHORTEST, SMALLEST, THERE, Shape
from pipeline.problems.machines.agents.networks.loading import restore


def onnx(folder: Path) -> bytes:
    """Return a stored network as an ONNX file that plays greedily among the legal actions."""
    model = storage.read_model(folder, MachinesCard)
    network = restore(model.card, model.weights).network
    shape = network.shape

    def outputs(view: Fields) -> tuple[Tensor, Tensor]:
        void = torch.ones_like(view["action_mask"][:, -1:]) & shape.void
        may = view["action_mask"] & torch.cat([torch.ones_like(view["action_mask"][:, :-1]), void], dim=1)
        return greedy(_logits(network, _features(view, shape)), may)

    slots, machines, resources = shape.slots, shape.machines, shape.resources
    numbers: Shapes = {
        **{"free": (machines, 1, resources), "demand": (slots, resources), "duration": (slots,), "waited": (slots,)},
        **{"backlog": (), "backlog_head": (1 + resources,), "capacity": (machines, resources), "since_arrival": ()},
        **{"nodes": (slots,), "fits_in": (slots,)},
    }
    masks: Shapes = {"fits_now": (slots, machines), "action_mask": (slots * machines + 1,)}
    return onnx_of(network, outputs, ["logits", "action"], numbers, masks)


def _logits(network: ActorCritic, seen: SimpleNamespace) -> Tensor:
    """Return logits [B, A]; for `deepsets`, computed from whole arrays that include empty slots."""
    if not isinstance(network, DeepSets):
        found: Tensor = network(seen)[0]
        return found
    there = seen.job[:, :, THERE, None]
    each, machine = network.of_job(seen.job) * there, network.of_machine(seen.machine)
    mean = each.sum(dim=1) / there.sum(dim=1).clamp(min=1)
    common = network.of_all(torch.cat([mean, each.amax(dim=1), machine.mean(dim=1), seen.rest], dim=1))
    of_job = network.job_part(each) + network.all_part(common)[:, None]
    hidden = of_job[:, :, None] + network.machine_part(machine)[:, None] + network.pair_part(seen.pair)
    scores = network.score(torch.relu(hidden))[..., 0] + network.direct(seen.job)
    return torch.cat([scores.flatten(1), network.void(common)], dim=1)


def _features(view: Fields, shape: Shape) -> SimpleNamespace:
    """Return the same as `features`, computed by torch's operations, as float32."""
    free, capacity, demand, unit = view["free"][:, :, 0], view["capacity"], view["demand"], shape.unit
    there, duration = view["nodes"] > 0, view["duration"]
    total = capacity.sum(dim=1).clamp(min=1)
    wanted = view["nodes"][:, :, None] * demand / total[:, None]
    widest = wanted.float().double().amax(dim=2)  # rounded as the stored feature
    over = duration + view["fits_in"]
    place = torch.arange(1, shape.slots + 1).double() / shape.slots
    jobs = [
        there.double(),
        _log(duration / unit, SHORTEST),
        _log(view["waited"] / unit, SHORTEST),
        _log(view["waited"] / torch.where(there, duration, 1.0), SHORTEST),
        _log(duration / unit * widest, SMALLEST),
        view["fits_now"].any(dim=2).double(),
        place.expand(duration.shape),
        _log(view["fits_in"] / unit, SHORTEST),
        _log(over / unit, SHORTEST),
        _log(over / unit * widest, SMALLEST),
    ]
    job = torch.cat([torch.stack(jobs, dim=2), wanted, _log(wanted, SMALLEST)], dim=2)
    each, largest = capacity.clamp(min=1), capacity.amax(dim=1, keepdim=True).clamp(min=1)
    share, asked = (free / each)[:, None], demand[:, :, None] / each[:, None]
    fits, aligned = view["fits_now"].double(), (share * asked).sum(dim=3) / shape.resources
    pair = torch.cat([torch.stack([fits, aligned], dim=3), share - asked], dim=3)
    idle = (free == capacity).all(dim=2, keepdim=True).double()
    machine = torch.cat([idle, free / each, capacity / largest], dim=2)
    head = view["backlog_head"]
    rest = [
        torch.log1p(there.sum(dim=1).double()),
        torch.log1p(view["backlog"]),
        _log(head[:, 0] / unit, SHORTEST),
        _log(view["since_arrival"] / unit, SHORTEST),
    ]
    return SimpleNamespace(
        job=torch.where(there[:, :, None], job, 0.0).float(),
        pair=torch.where(there[:, :, None, None], pair, 0.0).float(),
        machine=machine.float(),
        rest=torch.cat([torch.stack(rest, dim=1), free.sum(dim=1) / total, head[:, 1:] / total], dim=1).float(),
    )


def _log(value: Tensor, least: float) -> Tensor:
    return SCALE * (torch.log(value + least) - torch.log(torch.tensor(least, dtype=value.dtype)))
