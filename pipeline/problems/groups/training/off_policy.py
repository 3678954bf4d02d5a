"""How far is off-policy evaluation from the truth? Estimates from a log, beside what the simulator says.

The log is what the sample generator makes of training jobsets. The question is asked in states of other jobsets, which
a rule brings about and at a random interval hands over: what does the controller cost from there on, discounted? It is
estimated from the log alone, and then played.

Fitted Q evaluation (Le, Voloshin, Yue 2019): a value function of the controller's cost is fitted to the log, again and
again, on targets cost + gamma * Q(s', what the controller would set in s'). Importance weights, and with them the
doubly robust estimator, are of no use here: a decision is a configuration for each of G groups, and no log holds enough
of the controller's own to weigh the others by.

The log says what would be set for every group; each group's value is fitted apart, as in Q-learning.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from pipeline.config import QNetworkConfig, Replay
from pipeline.core import FloatArray, IntArray
from pipeline.problems.groups.heuristics.teachers import proportional
from pipeline.problems.groups.networks import q_network
from pipeline.problems.groups.networks.features import States, past, states
from pipeline.problems.groups.networks.q_network import QNetwork, tensors
from pipeline.problems.groups.nouns import Controller, Jobs, Observation, Setting
from pipeline.problems.groups.simulator.rewards import Transition, transitions
from pipeline.problems.groups.tables import OFF_POLICY
from pipeline.problems.groups.training.q_learning import Target
from pipeline.problems.groups.training.replay import mixed
from pipeline.problems.groups.training.task import Task, Transitions
from pipeline.schemas import empty

FIT_DRAWS = 13  # keeps the batches apart from other random numbers
LEAST_DECISIONS = 8  # decisions of the cluster in a batch


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
    rng = np.random.default_rng([seed, FIT_DRAWS])
    network.scale.fill_(float(log.reward.std()) or 1.0)
    reward = torch.from_numpy(log.reward) / network.scale
    goes_on = torch.from_numpy((~log.over).astype(np.float32))[:, None]
    target, optimizer = Target(network), torch.optim.Adam(network.parameters(), lr=how.learning_rate)
    for step in range(how.steps):
        for group in optimizer.param_groups:
            group["lr"] = how.learning_rate * (1 - step / how.steps)
        some = rng.integers(0, len(log.over), max(LEAST_DECISIONS, how.batch // log.order.shape[1]))
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


FIT = Fit(gamma=0.9, steps=1500, batch=256, learning_rate=1e-3, target=50, clip=1.0)
EARLIEST, LATEST = 6, 60  # intervals after which a state is handed over
LEAST = 2  # states: one has no interval
DRAWS = 14  # keeps the times of hand-over apart from other random numbers
SURE = 1.96  # standard errors of a mean, for 95 %


def off_policy(
    task: Task,
    network: QNetworkConfig,
    log: Replay,
    controllers: Mapping[str, Controller],
    held_out: Sequence[Jobs],
) -> pd.DataFrame:
    """Return, for each controller, the estimated and the true discounted cost from states on.

    There are no rows where fewer than two jobsets last until they are handed over.

    Args:
        task: the cluster, and the training jobsets of the log.
        network: of the value function that is fitted.
        log: how the log is made.
        controllers: by name.
        held_out: jobsets in which states are handed over.
    """
    handed = _handed_over(task, held_out)
    if handed is None:
        return empty(OFF_POLICY)
    jobsets = [task.train[log.loads[k % len(log.loads)]][k // len(log.loads)] for k in range(log.jobsets)]
    (state, views), logged = handed, _Log(list(transitions(task.begin(jobsets), mixed(task, log), "zero")), task)
    rows = []
    for name, controller in controllers.items():
        fresh = q_network.build(network, task.cluster, past(task.train, task.cluster), task.seed)
        fitted(fresh, logged.transitions, logged.meant(controller), FIT, task.seed)
        guess = estimated(fresh, state, _meant(controller, views))
        truth = _truth(task, held_out, controller)
        rows.append(_row(name, len(logged.transitions.over), guess, truth))
    return pd.DataFrame(rows)


def _row(name: str, decisions: int, guess: FloatArray, truth: FloatArray) -> dict[str, str | int | float]:
    found: dict[str, str | int | float] = {"policy": name, "n": len(truth), "decisions": decisions}
    for label, value in {"estimate": guess, "truth": truth}.items():
        half = SURE * float(value.std(ddof=1)) / len(value) ** 0.5
        low, high = ("low", "high") if label == "estimate" else ("truth_low", "truth_high")
        found |= {label: float(value.mean()), low: float(value.mean()) - half, high: float(value.mean()) + half}
    return found | {"error": float(guess.mean() / max(truth.mean(), 1e-9) - 1)}


class _Log:
    """Logged decisions, and the views they were taken in."""

    def __init__(self, played: Sequence[Transition], task: Task) -> None:
        episode = np.concatenate([transition.rows for transition in played])
        turn = np.repeat(np.arange(len(played)), [len(transition.rows) for transition in played])
        place = np.full((len(played) + 1, int(episode.max()) + 1), -1)
        place[turn, episode] = np.arange(len(turn))
        after = place[turn + 1, episode]
        self._played, self._after = played, np.where(after < 0, np.arange(len(turn)), after)
        state = _joined([states(transition.view, task.cluster) for transition in played])
        share = np.concatenate([transition.setting.share for transition in played]).astype(np.float32)
        order = np.concatenate([transition.setting.order for transition in played])
        reward = np.concatenate([transition.reward for transition in played]).astype(np.float32)
        then = States(state.features[self._after], state.amounts[self._after])
        self.transitions = Transitions(state, share, order, reward, then, after < 0)

    def meant(self, controller: Controller) -> Meant:
        """Return what a controller would set in the next state of each decision."""
        set_there = [_meant(controller, transition.view) for transition in self._played]
        share, order = (np.concatenate(column)[self._after] for column in zip(*set_there, strict=True))
        return Meant(share, order)


def _joined(parts: Sequence[States]) -> States:
    return States(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _meant(controller: Controller, view: Observation) -> Meant:
    setting = controller(view, np.full(len(view.now), 0.5))
    return Meant(setting.share.astype(np.float32), setting.order)


def _changes_at(task: Task, episodes: int) -> IntArray:
    return np.random.default_rng([task.seed, DRAWS]).integers(EARLIEST, LATEST, episodes)


def _handed_over(task: Task, jobsets: Sequence[Jobs]) -> tuple[States, Observation] | None:
    """Return the states, and views, in which jobsets are handed over; those that end earlier are left out.

    None where fewer than two are left.
    """
    at, rule = _changes_at(task, len(jobsets)), proportional(task.cluster, 0)
    views: list[tuple[IntArray, Observation]] = []
    played = transitions(task.begin(jobsets), lambda rows, view: rule(view, np.zeros(len(rows))), "zero")
    for turn, transition in enumerate(played):
        here = np.flatnonzero(at[transition.rows] == turn)
        if len(here):
            views.append((transition.rows[here], Observation._make(field[here] for field in transition.view)))
    if sum(len(rows) for rows, _ in views) < LEAST:
        return None
    order = np.argsort(np.concatenate([rows for rows, _ in views]), kind="stable")
    view = Observation._make(np.concatenate(column)[order] for column in zip(*(view for _, view in views), strict=True))
    return states(view, task.cluster), view


def _truth(task: Task, jobsets: Sequence[Jobs], controller: Controller) -> FloatArray:
    """Return the discounted cost from the hand-over on, of the jobsets that have one."""
    at, rule = _changes_at(task, len(jobsets)), proportional(task.cluster, 0)
    total, reached, turn = np.zeros(len(jobsets)), np.zeros(len(jobsets), dtype=bool), 0

    def acts(rows: IntArray, view: Observation) -> Setting:
        before, after = rule(view, np.zeros(len(rows))), controller(view, np.full(len(rows), 0.5))
        mine = at[rows] <= turn
        share = np.where(mine[:, None, None], after.share, before.share)
        return Setting(share, np.where(mine[:, None], after.order, before.order))

    for transition in transitions(task.begin(jobsets), acts, "zero"):
        ago = turn - at[transition.rows]
        reached[transition.rows] |= ago >= 0
        total[transition.rows] += np.where(ago >= 0, FIT.gamma ** np.maximum(ago, 0), 0) * transition.cost.sum(axis=1)
        turn += 1
    return np.asarray(total[reached])
