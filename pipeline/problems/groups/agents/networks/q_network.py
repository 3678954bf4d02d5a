"""The controller's value function Q(phi(s*), a; theta): value of a group with given units, for each order of queues.

The source has one network for each group (`per_group`). Ours (`shared`) has one for all; its inputs, which include
statistics of each group in the training jobsets, distinguish groups. Values are in units of `scale`.

`Worth` is an explicit value function with W parameters: the value of units by the jobs that they serve. A group's room
is its given units less those of its running jobs. It serves the waiting jobs queue by queue, in the order of the
scenario; the rest serves expected jobs (as many as recently arrived), all but a share exp(-left / need). The value of a
served job is its queue's weight, plus a weight times the pressure, plus a weight times the wait of the queue's first
job. Pressure: the units that all other groups want and expect, as a share of the cluster. So long jobs may wait under
pressure, but not forever.
"""

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.core.config import GroupsCard, QNetworkConfig, WorthConfig
from pipeline.core.types import FloatArray, IntArray
from pipeline.learning import stored
from pipeline.learning.stored import restore_weights
from pipeline.problems.groups.agents.networks.features import OF_QUEUE, Shape, States, of_levels, shape_of, states
from pipeline.problems.groups.env.evaluation.controllers import Choose, Decided, decided, setting_of
from pipeline.problems.groups.env.nouns import Configurations, Controller, Observation, Setting, SharedCluster
from pipeline.problems.groups.env.simulator.knapsack.several import plan

ROOM = 1.25  # equal shares; more room has no value of its own
RELEASED, NEED, FLOOR = 0.5, 0.5, 0.125  # initially: share of released units that counts; need of an expected unit

Inputs = tuple[Tensor, Tensor]  # States as tensors


class Layer(nn.Module):
    """An affine map for each of C parallel networks."""

    def __init__(self, copies: int, wide: int, out: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(wide)
        self.weight = nn.Parameter(torch.empty(copies, wide, out).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(copies, 1, out).uniform_(-bound, bound))

    def forward(self, value: Tensor) -> Tensor:
        """Apply each of C layers to its own N inputs: [C, N, wide] to [C, N, out]."""
        return torch.baddbmm(self.bias, value, self.weight)


class QNetwork(nn.Module):
    """Network for the values of each group's configurations."""

    scale: Tensor  # [1]     unit of rewards; 0 = not yet known
    past: Tensor  # [G, .]  statistics of the training jobsets
    part: Tensor  # [R]     units in an equal share

    def __init__(self, shape: Shape, config: QNetworkConfig, past: FloatArray, part: FloatArray) -> None:
        super().__init__()
        stored.initialise_mkl()
        self.shape, self.per_group = shape, config.weights == "per_group"
        copies, (first, second) = len(past) if self.per_group else 1, config.hidden
        self.register_buffer("scale", torch.zeros(1))
        self.register_buffer("past", torch.from_numpy(past.copy()))
        self.register_buffer("part", torch.from_numpy(part.astype("float32")))
        self.of_state = Layer(copies, shape.features + shape.past, first)
        self.of_level = Layer(copies, shape.level, first)
        self.hidden = Layer(copies, first, second)
        self.value = Layer(copies, second, shape.orders)
        self.reward = Layer(copies, second, shape.orders) if config.combine == "reward" else None

    def forward(self, inputs: Inputs, given: Tensor) -> Tensor:
        """Return the values [D, G, L, O] of some levels.

        Args:
            inputs: D states.
            given: [D, G, L, R] or a shape that can be broadcast to it: units.
        """
        return self._from(inputs, given, self.value)

    def rewards(self, inputs: Inputs, given: Tensor) -> Tensor | None:
        """Return the rewards [D, G, L, O] of the next interval if the dynamic programme sums rewards, else None."""
        return None if self.reward is None else self._from(inputs, given, self.reward)

    def _from(self, inputs: Inputs, given: Tensor, last: Layer) -> Tensor:
        features, amounts = inputs
        groups = self.past.expand(features.shape[0], -1, -1)
        state = self.of_state(self._by_copy(torch.cat([features, groups], dim=-1)))
        levels = of_levels(self.shape, amounts, given / self.part)
        count = levels.shape[2]
        level = self.of_level(self._by_copy(levels).flatten(1, 2)).unflatten(1, (-1, count))
        hidden = torch.relu(state[:, :, None] + level).flatten(1, 2)
        laid: Tensor = last(torch.relu(self.hidden(hidden)))
        values = laid.reshape(laid.shape[0], -1, count, laid.shape[2])
        return values.transpose(0, 1) if self.per_group else values[0].reshape(features.shape[0], -1, *values.shape[2:])

    def _by_copy(self, value: Tensor) -> Tensor:
        """Reshape [D, G, ...] to [C, N, ...]: inputs by network, one per group or one for all."""
        return value.transpose(0, 1).contiguous() if self.per_group else value.flatten(0, 1)[None]


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


ValueNetwork = QNetwork | Worth


def tensors(state: States) -> Inputs:
    """Return states as tensors."""
    return torch.from_numpy(state.features), torch.from_numpy(state.amounts)


def build(config: QNetworkConfig, cluster: SharedCluster, past: FloatArray, seed: int) -> QNetwork:
    """Return a network with seeded initial weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return QNetwork(shape_of(cluster), config, past, cluster.capacity / cluster.groups)


def values_of(network: ValueNetwork, state: States, units: IntArray) -> FloatArray:
    """Return the values [D, G, L, O] of levels with given units [L, R], without gradients."""
    with torch.no_grad():
        found: FloatArray = network(tensors(state), torch.from_numpy(units.astype("float32"))).numpy()
    return found


def choice(
    network: ValueNetwork, state: States, configurations: Configurations, total: IntArray, choose: Choose = plan
) -> Decided:
    """Return a network's choice of configurations in some states."""
    with torch.no_grad():
        rewards = network.rewards(tensors(state), torch.from_numpy(configurations.units.astype("float32")))
    values = values_of(network, state, configurations.units)
    return decided(values, configurations, total, choose, None if rewards is None else rewards.numpy())


def controller(
    network: ValueNetwork, cluster: SharedCluster, configurations: Configurations, choose: Choose = plan
) -> Controller:
    """Return the controller that sets the configurations with the highest values."""

    def control(view: Observation, draws: FloatArray) -> Setting:
        chosen = choice(network, states(view, cluster), configurations, cluster.capacity, choose)
        return setting_of(chosen, view, configurations, cluster.capacity)

    return control


def restore(card: GroupsCard, weights: Mapping[str, FloatArray]) -> ValueNetwork:
    """Rebuild a controller's network.

    Raises:
        UserError: the weights do not fit the network on the card.
    """
    shape = Shape(len(card.queues), len(card.orders), len(card.resources))
    past = np.zeros((card.groups, shape.past), dtype=np.float32)
    part, config = np.ones(shape.resources), card.network
    with torch.random.fork_rng(devices=[]):
        made = Worth(shape, past, part) if isinstance(config, WorthConfig) else QNetwork(shape, config, past, part)
    restore_weights(made, weights, card.agent)
    return made
