"""How far is off-policy evaluation from the truth? Estimates from a log, beside what the simulator says.

The log is what the sample generator makes of training jobsets. The question is asked in states of other jobsets, which
a rule brings about and at a random interval hands over: what does the controller cost from there on, discounted? It is
estimated from the log alone, and then played.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from pipeline.config import QNetworkConfig, Replay
from pipeline.core import FloatArray, IntArray
from pipeline.problems.groups.heuristics.teachers import proportional
from pipeline.problems.groups.networks import q_network
from pipeline.problems.groups.networks.features import States, past, states
from pipeline.problems.groups.nouns import Controller, Jobs, Observation, Setting
from pipeline.problems.groups.simulator.rewards import Transition, transitions
from pipeline.problems.groups.tables import OFF_POLICY
from pipeline.problems.groups.training.fitted import Fit, Meant, estimated, fitted
from pipeline.problems.groups.training.replay import mixed
from pipeline.problems.groups.training.replay_memory import Transitions
from pipeline.problems.groups.training.task import Task
from pipeline.schemas import empty

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
    (state, views), logged = handed, _logged(task, log)
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


def _logged(task: Task, log: Replay) -> _Log:
    jobsets = [task.train[log.loads[k % len(log.loads)]][k // len(log.loads)] for k in range(log.jobsets)]
    return _Log(list(transitions(task.begin(jobsets), mixed(task, log), "zero")), task)


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
