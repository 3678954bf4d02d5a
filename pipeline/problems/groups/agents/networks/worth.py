"""An explicit value function with W parameters: the value of units by the jobs that they serve.

A group's room is its given units less those of its running jobs. It serves the waiting jobs queue by queue, in the
order of the scenario; the rest serves expected jobs (as many as recently arrived), all but a share exp(-left / need).
The value of a served job is its queue's weight, plus a weight times the pressure, plus a weight times the wait of the
queue's first job. Pressure: the units that all other groups want and expect, as a share of the cluster. So long jobs
may wait under pressure, but not forever.
"""

import torch
from torch import Tensor, nn

from pipeline.core.types import FloatArray
from pipeline.learning import stored
from pipeline.problems.groups.agents.networks.features import OF_QUEUE, Shape

ROOM = 1.25  # equal shares; more room has no value of its own
RELEASED, NEED, FLOOR = 0.5, 0.5, 0.125  # initially: share of released units that counts; need of an expected unit


def first_weights(queues: int) -> Tensor:
    """Return the initial weights [W] of a search, set by hand, in delays of an interval."""
    first = torch.zeros(2 * queues + 8)
    first[:queues] = 1.0 - 0.1 * torch.arange(queues)
    first[2 * queues] = 0.3
    return first


class Worth(nn.Module):
    """Values of configurations, equal for all orders, so that the first order is set."""

    scale: Tensor  # [1]     unit of values
    past: Tensor  # [G, .]  statistics of the training jobsets
    part: Tensor  # [R]     units in an equal share

    def __init__(self, shape: Shape, past: FloatArray, part: FloatArray) -> None:
        super().__init__()
        stored.initialise_mkl()
        self.shape = shape
        self.register_buffer("scale", torch.ones(1))
        self.register_buffer("past", torch.from_numpy(past.copy()))
        self.register_buffer("part", torch.from_numpy(part.astype("float32")))
        self.weight = nn.Parameter(first_weights(shape.queues))

    def forward(self, inputs: tuple[Tensor, Tensor], given: Tensor) -> Tensor:
        """Return the values [D, G, L, O] of some levels."""
        return self.values(inputs, given, self.weight[None])[..., None].expand(*[-1] * 3, self.shape.orders)

    def rewards(self, inputs: tuple[Tensor, Tensor], given: Tensor) -> None:
        """Return None: the dynamic programme sums values."""

    def values(self, inputs: tuple[Tensor, Tensor], given: Tensor, weight: Tensor) -> Tensor:
        """Return the value [D, G, L] of each level for each group, by weights [D, W], or [1, W] for all states."""
        features, amounts = inputs
        q, r = self.shape.queues, self.shape.resources
        of_queue = features[..., : OF_QUEUE * q].reshape(*features.shape[:2], q, OF_QUEUE)
        waiting, wanted, lately = (of_queue[..., k].expm1() for k in (0, 1, 7))
        jobs, by_pressure, (arriving, pressed, released, need, floor, room_by, closed, age) = (
            weight[:, None, :q], weight[:, None, q : 2 * q], weight[:, 2 * q :].T[:, :, None, None]
        )  # fmt: skip
        expected = (lately * self.past[:, 2 * q :].expm1()).sum(-1)
        load = wanted.sum(-1) + expected
        pressure = (load.sum(1, keepdim=True) - load) / features.shape[1]
        each = jobs + by_pressure * pressure[..., None] + age * of_queue[..., 4]
        used, releasing = amounts[:, :, None, :r], amounts[:, :, None, r : 2 * r]
        spare = given / self.part - used
        room = (spare + (RELEASED + released[..., None]).clamp(0, 1) * releasing).amin(-1).clamp(min=0)
        value = room_by * room.clamp(max=ROOM) + closed * (spare.amin(-1) < 0)
        for k in range(q):
            got = torch.minimum(room, wanted[:, :, None, k])
            room = room - got
            value = value + (each[..., k] * waiting[..., k] / wanted[..., k].clamp(min=1e-6))[..., None] * got
        needed = NEED * need.exp() * expected[..., None] + FLOOR * floor.exp()
        served = lately.sum(-1)[..., None] * (1 - (-room / needed).exp())
        worth: Tensor = value + (arriving + pressed * pressure[..., None]) * served
        return worth
