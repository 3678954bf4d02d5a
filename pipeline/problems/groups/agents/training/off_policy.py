"""Off-policy evaluation: the cost of controllers estimated from a log, compared with the simulator's.

The log holds the sample generator's decisions on training jobsets. A rule controls other jobsets up to a random
interval, where a controller takes over: what is its discounted cost from there on? That cost is estimated from the log
only, and then simulated for comparison.

Fitted Q evaluation (Le, Voloshin, Yue 2019): a value function of the controller's cost is fitted to the log repeatedly,
with targets cost + gamma * Q(s', the controller's setting in s'). Importance weights, and with them the doubly robust
estimator, cannot be used here: a decision is a configuration for each of G groups, and no log holds enough decisions
equal to the controller's to be weighted.

The log has the settings of all groups; each group's value is fitted separately, as in Q-learning.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from pipeline.core.config import QNetworkConfig, Replay
from pipeline.core.schemas import empty
from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.groups.agents.networks import q_network
from pipeline.problems.groups.agents.networks.features import States, past, states
from pipeline.problems.groups.agents.networks.q_network import QNetwork, tensors
from pipeline.problems.groups.agents.training.q_learning import Target, values_at
from pipeline.problems.groups.agents.training.replay import mixed
from pipeline.problems.groups.agents.training.task import Task, Transitions
from pipeline.problems.groups.env.nouns import Controller, Jobs, Observation, Setting
from pipeline.problems.groups.env.simulator.rewards import Transition, transitions
from pipeline.problems.groups.env.tables import OFF_POLICY
from pipeline.problems.groups.env.teachers import proportional

FIT_DRAWS = 13  # separates the batches from other random numbers
LEAST_DECISIONS = 8  # decisions of the cluster in a batch
EARLIEST, LATEST = 6, 60  # intervals before the controller takes over
LEAST = 2  # states: a single one gives no confidence interval
DRAWS = 14  # separates the times of takeover from other random numbers
SURE = 1.96  # standard errors of a mean, for 95 %


class Fit(NamedTuple):
    """Settings of a fit."""

    gamma: float
    steps: int
    batch: int  # decisions of single groups
    learning_rate: float
    target: int  # steps between two updates of the target network
    clip: float


FIT = Fit(gamma=0.9, steps=1500, batch=256, learning_rate=1e-3, target=50, clip=1.0)


def fitted(network: QNetwork, log: Transitions, then: Setting, how: Fit, seed: int) -> None:
    """Fit a value function of costs to a log, for a controller with given settings in the next states.

    Args:
        network: changed in place, including its `scale`.
        log: decisions with negative costs as rewards.
        then: the controller's settings in the next state of each decision.
        how: settings of the fit.
        seed: seed of the batches.
    """
    rng = np.random.default_rng([seed, FIT_DRAWS])
    network.scale.fill_(float(log.reward.std()) or 1.0)
    reward = torch.from_numpy(log.reward) / network.scale
    continues = torch.from_numpy((~log.over).astype(np.float32))[:, None]
    target, optimizer = Target(network), torch.optim.Adam(network.parameters(), lr=how.learning_rate)
    for step in range(how.steps):
        for group in optimizer.param_groups:
            group["lr"] = how.learning_rate * (1 - step / how.steps)
        some = rng.integers(0, len(log.over), max(LEAST_DECISIONS, how.batch // log.order.shape[1]))
        with torch.no_grad():
            later = values_at(target, tensors(_some(log.then, some)), then.share[some], then.order[some])
            wanted = reward[some] + how.gamma * continues[some] * later
        values = values_at(network, tensors(_some(log.state, some)), log.share[some], log.order[some])
        # Squared error, because the mean is wanted: Huber's loss tends to the median, and costs have a long tail.
        loss = torch.nn.functional.mse_loss(values, wanted)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), how.clip)
        optimizer.step()
        target.follow(how.target)


def estimated(network: QNetwork, state: States, meant: Setting) -> FloatArray:
    """Return the discounted cost [D] from D states on, summed over groups."""
    with torch.no_grad():
        value: FloatArray = (-values_at(network, tensors(state), *meant) * network.scale).sum(dim=1).numpy()
    return value


def _some(state: States, rows: IntArray) -> States:
    return States(state.features[rows], state.amounts[rows])


def off_policy(
    task: Task,
    network: QNetworkConfig,
    log: Replay,
    controllers: Mapping[str, Controller],
    held_out: Sequence[Jobs],
) -> pd.DataFrame:
    """Return the estimated and the true discounted cost of each controller after it takes over.

    There are no rows if fewer than two jobsets last until then.

    Args:
        task: the cluster, and the training jobsets of the log.
        network: network of the value function that is fitted.
        log: settings of the generator.
        controllers: controllers by name.
        held_out: jobsets in which controllers take over.
    """
    at = np.random.default_rng([task.seed, DRAWS]).integers(EARLIEST, LATEST, len(held_out))
    played = list(transitions(task.begin(task.replayed(log)), mixed(task, log), "zero"))
    (logged, after), rows = _logged(played, task), []
    for name, controller in controllers.items():
        views, truth = _taken_over(task, held_out, at, controller)
        if len(truth) < LEAST:
            return empty(OFF_POLICY)
        fresh = q_network.build(network, task.cluster, past(task.train, task.cluster), task.seed)
        settings = [_meant(controller, transition.view) for transition in played]
        then = Setting._make(np.concatenate(column)[after] for column in zip(*settings, strict=True))
        fitted(fresh, logged, then, FIT, task.seed)
        guess = estimated(fresh, states(views, task.cluster), _meant(controller, views))
        row: dict[str, str | int | float] = {"policy": name, "n": len(truth), "decisions": len(logged.over)}
        for label, prefix, value in (("estimate", "", guess), ("truth", "truth_", truth)):
            mean, half = float(value.mean()), SURE * float(value.std(ddof=1)) / len(value) ** 0.5
            row |= {label: mean, f"{prefix}low": mean - half, f"{prefix}high": mean + half}
        rows.append(row | {"error": float(guess.mean() / max(truth.mean(), 1e-9) - 1)})
    return pd.DataFrame(rows)


def _logged(played: Sequence[Transition], task: Task) -> tuple[Transitions, IntArray]:
    """Return logged decisions, and the index [N] of the next state of each."""
    episode = np.concatenate([transition.rows for transition in played])
    turn = np.repeat(np.arange(len(played)), [len(transition.rows) for transition in played])
    place = np.full((len(played) + 1, int(episode.max()) + 1), -1)
    place[turn, episode] = np.arange(len(turn))
    following = place[turn + 1, episode]
    after = np.where(following < 0, np.arange(len(turn)), following)
    parts = [states(transition.view, task.cluster) for transition in played]
    state = States(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    share = np.concatenate([transition.setting.share for transition in played]).astype(np.float32)
    order = np.concatenate([transition.setting.order for transition in played])
    reward = np.concatenate([transition.reward for transition in played]).astype(np.float32)
    return Transitions(state, share, order, reward, _some(state, after), following < 0), after


def _meant(controller: Controller, view: Observation) -> Setting:
    return controller(view, np.full(len(view.now), 0.5))


def _taken_over(
    task: Task, jobsets: Sequence[Jobs], at: IntArray, controller: Controller
) -> tuple[Observation, FloatArray]:
    """Return observations at the takeover and discounted costs after it, of the jobsets that last until then."""
    rule = proportional(task.cluster, 0)
    total, turn, found = np.zeros(len(jobsets)), 0, list[tuple[IntArray, Observation]]()

    def acts(rows: IntArray, view: Observation) -> Setting:
        before, after = rule(view, np.zeros(len(rows))), _meant(controller, view)
        mine = at[rows] <= turn
        share = np.where(mine[:, None, None], after.share, before.share)
        return Setting(share, np.where(mine[:, None], after.order, before.order))

    for transition in transitions(task.begin(jobsets), acts, "zero"):
        ago = turn - at[transition.rows]
        here = np.flatnonzero(ago == 0)
        found.append((transition.rows[here], Observation._make(field[here] for field in transition.view)))
        total[transition.rows] += np.where(ago >= 0, FIT.gamma ** np.maximum(ago, 0), 0) * transition.cost.sum(axis=1)
        turn += 1
    rows = np.concatenate([rows for rows, _ in found])
    order = np.argsort(rows)
    columns = zip(*(view for _, view in found), strict=True)
    return Observation._make(np.concatenate(column)[order] for column in columns), total[rows[order]]
