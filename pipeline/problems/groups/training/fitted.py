"""Off-policy evaluation: what would a controller cost, estimated from logged decisions of others alone?

Fitted Q evaluation (Le, Voloshin, Yue 2019): a value function of the controller's cost is fitted to the log, again and
again, on targets cost + gamma * Q(s', what the controller would set in s'). Importance weights, and with them the
doubly robust estimator, are of no use here: a decision is a configuration for each of G groups, and no log holds enough
of the controller's own to weigh the others by.

The log says what would be set for every group; each group's value is fitted apart, as in Q-learning.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from pipeline.core import FloatArray, IntArray
from pipeline.problems.groups.networks.features import States
from pipeline.problems.groups.networks.q_network import QNetwork, tensors
from pipeline.problems.groups.training.q_learning import Target
from pipeline.problems.groups.training.replay_memory import Transitions

DRAWS = 13  # keeps the batches apart from other random numbers
LEAST = 8  # decisions of the cluster in a batch


class Fit(NamedTuple):
    """How much is fitted."""

    gamma: float
    steps: int
    batch: int  # decisions of single groups
    learning_rate: float
    target: int  # steps between two copies to the target network
    clip: float


class Meant(NamedTuple):
    """What a controller would set in D states."""

    share: FloatArray  # [D, G, R]
    order: IntArray  # [D, G]


def fitted(network: QNetwork, log: Transitions, then: Meant, how: Fit, seed: int) -> None:
    """Fit a value function of costs to a log, for the controller that means to set `then` in the next states.

    Args:
        network: changed in place; its `scale` is set.
        log: rewards are costs with a minus.
        then: what the controller would set in the next state of each decision.
        how: how much.
        seed: of the batches.
    """
    rng = np.random.default_rng([seed, DRAWS])
    network.scale.fill_(float(log.reward.std()) or 1.0)
    reward = torch.from_numpy(log.reward) / network.scale
    goes_on = torch.from_numpy((~log.over).astype(np.float32))[:, None]
    target, optimizer = Target(network), torch.optim.Adam(network.parameters(), lr=how.learning_rate)
    for step in range(how.steps):
        for group in optimizer.param_groups:
            group["lr"] = how.learning_rate * (1 - step / how.steps)
        some = rng.integers(0, len(log.over), max(LEAST, how.batch // log.order.shape[1]))
        with torch.no_grad():
            later = _at(target, _some(log.then, some), Meant(then.share[some], then.order[some]))
            wanted = reward[some] + how.gamma * goes_on[some] * later
        values = _at(network, _some(log.state, some), Meant(log.share[some], log.order[some]))
        # Squares, for a mean is asked for: Huber's error leans to the median, and costs have a long tail.
        loss = torch.nn.functional.mse_loss(values, wanted)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), how.clip)
        optimizer.step()
        target.follow(how.target)


def estimated(network: QNetwork, state: States, meant: Meant) -> FloatArray:
    """Return the discounted cost [D] from D states on, summed over groups."""
    with torch.no_grad():
        value: FloatArray = (-_at(network, state, meant) * network.scale).sum(dim=1).numpy()
    return value


Values = Callable[[tuple[torch.Tensor, torch.Tensor], torch.Tensor], torch.Tensor]


def _at(values: Values, state: States, meant: Meant) -> torch.Tensor:
    """Return the values [D, G] of what is set."""
    given = torch.from_numpy(meant.share.astype("float32"))[:, :, None]
    found = values(tensors(state), given)[:, :, 0]
    return found.gather(2, torch.from_numpy(meant.order.astype(np.int64))[:, :, None])[:, :, 0]


def _some(state: States, rows: IntArray) -> States:
    return States(state.features[rows], state.amounts[rows])
