"""Networks of a pooled cluster as ONNX files: the image, or the features of `relative`, drawn within the graph."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from pipeline import storage
from pipeline.config import PoolCard
from pipeline.errors import UserError
from pipeline.learning.exporting import Exported, Fields, onnx_of
from pipeline.problems.pool.networks import relative as at
from pipeline.problems.pool.networks.cnn import Cnn
from pipeline.problems.pool.networks.encodings import image_of
from pipeline.problems.pool.networks.loading import restore
from pipeline.problems.pool.networks.mlp import Mlp
from pipeline.problems.pool.networks.relative import AHEAD, OF_JOB, OF_REST, STRETCH_SCALE
from pipeline.problems.pool.networks.sets import Sets

OF_IMAGE = ("free", "demand", "duration", "backlog", "since_arrival", "action_mask")


def onnx(folder: Path) -> bytes:
    """Return a stored network as an ONNX file, played greedily and among the legal actions.

    Raises:
        UserError: it has no such form.
    """
    model = storage.read_model(folder, PoolCard)
    card = model.card
    if card.network.name == "scores":
        raise UserError(
            f"{folder}: a network 'scores' has no ONNX form: its features are compiled code; 'serve' answers by it"
        )
    loaded = restore(card, model.weights)
    network = loaded.network
    capacity = torch.tensor(loaded.cluster.capacity, dtype=torch.float64)

    def logits(view: Fields) -> tuple[Tensor, Tensor]:
        may = view["action_mask"]
        if isinstance(network, Sets):
            return network.on_features(*_relative(view, capacity)), may
        assert isinstance(network, Mlp | Cnn)
        slots = torch.cat([view["duration"][:, :, None], view["demand"]], dim=2)
        rest = torch.stack([view["backlog"], view["since_arrival"]], dim=1)
        return network.on_image(image_of(view["free"][:, 0], slots, rest, network.layout).float()), may

    example = _example(card)
    return onnx_of(Exported(network, logits, list(example)), ["logits", "action"], example)


def _example(card: PoolCard) -> dict[str, Tensor]:
    """Return the fields of two observations."""
    slots, resources = card.slots, len(card.resources)
    shapes: Mapping[str, tuple[int, ...]] = {
        "free": (1, card.horizon, resources),
        "demand": (slots, resources),
        "duration": (slots,),
        "waited": (slots,),
        "backlog": (),
        "backlog_head": (1 + resources,),
        "since_arrival": (),
        "now": (),
        "arrived": (2 + resources,),
        "to_end": (),
    }
    fields = {name: torch.ones((2, *shape), dtype=torch.float64) for name, shape in shapes.items()}
    masks = {"fits_now": (slots, 1), "action_mask": (slots + 1,)}
    fields |= {name: torch.ones((2, *shape), dtype=torch.bool) for name, shape in masks.items()}
    return fields if card.network.name == "sets" else {name: fields[name] for name in OF_IMAGE}


def _relative(view: Fields, capacity: Tensor) -> tuple[Tensor, Tensor]:
    """Return the features of `describing`, by torch's operations: [B, M, OF_JOB] and [B, OF_REST], float32."""
    mean = view["arrived"][:, 1] / view["arrived"][:, 0].clamp(min=1)
    free = torch.cat([view["free"][:, 0] / capacity, torch.ones_like(view["free"][:, 0, :1])], dim=1)  # last: beyond
    job = _jobs(view, capacity, free, mean)
    return job.float(), _rest(view, capacity, free, mean).float()


def _jobs(view: Fields, capacity: Tensor, free: Tensor, mean: Tensor) -> Tensor:
    duration, demand, fits = view["duration"], view["demand"], view["fits_now"][:, :, 0]
    there, steps = duration > 0, free.shape[1] - 1
    share, now = demand / capacity, free[:, :1]
    left = now - share
    mean_share = share.sum(dim=2) / len(capacity)
    most, widest = share.max(dim=2, keepdim=True)
    room = (view["free"] >= demand[:, :, None]).all(dim=3)
    first = torch.where(room.any(dim=2), room.to(torch.int32).argmax(dim=2), steps).double()
    end = duration.long().clamp(max=steps)
    free_at_end = free.mean(dim=2).gather(1, end)
    shortest = torch.where(there, duration, torch.full_like(duration, 1e9)).amin(dim=1, keepdim=True)
    area = duration.float() * mean_share.float()  # in the precision that it is compared in
    fitting = fits.sum(dim=1, keepdim=True).clamp(min=1)
    waiting = there.sum(dim=1, keepdim=True).clamp(min=1)
    shorter = (duration[:, None] < duration[:, :, None]) & there[:, None]
    smaller = (area[:, None] < area[:, :, None]) & there[:, None]
    both = fits[:, None] & fits[:, :, None]
    beside = (demand[:, None] <= (view["free"][:, :, 0] - demand)[:, :, None]).all(dim=3)
    others = ~torch.eye(duration.shape[1], dtype=torch.bool)
    columns = {
        at.DURATION: _log(duration, 3.0),
        at.DURATION_TO_MEAN: _log(duration / mean.clamp(min=1)[:, None], 2.0),
        at.WAITED: torch.log1p(view["waited"]) / 4.0,
        at.STRETCH: torch.log1p(view["waited"] / duration.clamp(min=1)) / STRETCH_SCALE,
        at.MOST_DEMAND: most[:, :, 0],
        at.MEAN_DEMAND: mean_share,
        at.LEAST_DEMAND: share.amin(dim=2).clamp(max=1),
        at.FITS: fits,
        at.LEAST_LEFT: left.amin(dim=2).clamp(max=1),
        at.MEAN_LEFT: left.sum(dim=2) / len(capacity),
        at.ALIGNMENT: (now * share).sum(dim=2) / len(capacity),
        at.FIRST_FIT: torch.log1p(first) / 3.0,
        at.SHORTER: shorter.sum(dim=2) / waiting,
        at.SMALLER: smaller.sum(dim=2) / waiting,
        at.AREA: _log(duration * share.sum(dim=2) / len(capacity), 3.0),
        at.FITTING_BESIDE: (both & beside & others).sum(dim=2) / fitting,
        at.DURATION_TO_SHORTEST: _log(duration / shortest, 2.0),
        at.KEPT_OUT: (both & ~beside & (duration[:, None] < duration[:, :, None])).sum(dim=2) / fitting,
        at.LEFT_OF_MOST: torch.where(most > 0, left.gather(2, widest), torch.zeros_like(most))[:, :, 0],
        at.HASTE: 1.0 / duration.clamp(min=1),
        at.FREE_AT_END: free_at_end,
    }
    return torch.stack([columns[k].double() for k in range(OF_JOB)], dim=2) * there[:, :, None]


def _rest(view: Fields, capacity: Tensor, free: Tensor, mean: Tensor) -> Tensor:
    duration, there, steps = view["duration"], view["duration"] > 0, free.shape[1] - 1
    waiting = there.sum(dim=1)
    ahead = free[:, [min(step, steps) for step in AHEAD]]
    work = (duration[:, :, None] * view["demand"]).sum(dim=1) / capacity
    load = (view["arrived"][:, 2:] / capacity).sum(dim=1) / (view["now"] + 1)
    later, ends = view["backlog"] > 0, torch.isfinite(view["to_end"])
    head = view["backlog_head"]
    none = torch.zeros_like(mean)
    columns = {
        **{at.FREE + 2 * k: ahead[:, k].mean(dim=1) for k in range(len(AHEAD))},
        **{at.FREE + 2 * k + 1: ahead[:, k].amin(dim=1).clamp(max=1) for k in range(len(AHEAD))},
        at.WAITING: torch.log1p(waiting.double()) / 3.0,
        at.BACKLOG: torch.log1p(view["backlog"]) / 3.0,
        at.LOAD: (load / len(capacity)).clamp(max=3),
        at.MEAN_DURATION: _log(mean.clamp(min=1), 3.0),
        at.SINCE_ARRIVAL: torch.log1p(view["since_arrival"]) / 3.0,
        at.FITTING: (view["fits_now"][:, :, 0] & there).sum(dim=1) / waiting.clamp(min=1),
        at.WORK: torch.log1p(work.sum(dim=1) / len(capacity)) / 3.0,
        at.IMBALANCE: (work.amax(dim=1) - work.mean(dim=1)) / work.amax(dim=1).clamp(min=1e-3),
        at.HEAD_DURATION: torch.where(later, _log(head[:, 0] / mean.clamp(min=1), 2.0), none),
        at.HEAD_DEMAND: (head[:, 1:] / capacity).amax(dim=1),
        at.LONG: (duration > 2 * mean[:, None]).sum(dim=1) / waiting.clamp(min=1),
        at.MEAN_WAITED: torch.log1p((view["waited"] * there).sum(dim=1) / waiting.clamp(min=1)) / 4.0,
        at.HAS_BACKLOG: later,
        at.ELAPSED: torch.log1p(view["now"]) / 8.0,
        at.ENDS: ends,
        at.TO_END: torch.where(ends, torch.log1p(torch.where(ends, view["to_end"], none)) / 4.0, none),
    }
    return torch.stack([columns[k].double() for k in range(OF_REST)], dim=1)


def _log(value: Tensor, scale: float) -> Tensor:
    return torch.log(value.clamp(min=1e-3)) / scale
