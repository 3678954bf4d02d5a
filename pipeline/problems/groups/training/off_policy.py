"""How far is off-policy evaluation from the truth? Estimates from a log, beside what the simulator says.

The log is what the sample generator makes of training jobsets. The question is asked in states of other jobsets, which
a rule brings about and at a random interval hands over: what does the controller cost from there on, discounted? It is
estimated from the log alone, and then played.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from pipeline.config import GroupQ, Replay
from pipeline.core import FloatArray, IntArray
from pipeline.problems.groups.heuristics.rules import proportional
from pipeline.problems.groups.networks import group_q
from pipeline.problems.groups.networks.features import States, past, states
from pipeline.problems.groups.nouns import Controller, GroupJobs, GroupObservation, Setting
from pipeline.problems.groups.simulator.rewards import Moment, moments
from pipeline.problems.groups.tables import OFF_POLICY
from pipeline.problems.groups.training.fitted import Fit, Meant, estimated, fitted
from pipeline.problems.groups.training.replay import mixed
from pipeline.problems.groups.training.replay_memory import Transitions
from pipeline.problems.groups.training.task import GroupTask
from pipeline.schemas import empty

FIT = Fit(gamma=0.9, steps=1500, batch=256, learning_rate=1e-3, target=50, clip=1.0)
EARLIEST, LATEST = 6, 60  # intervals after which a state is handed over
LEAST = 2  # states: one has no interval
SURE = 1.96  # standard errors of a mean, for 95 %


def off_policy(
    task: GroupTask,
    network: GroupQ,
    log: Replay,
    controllers: Mapping[str, Controller],
    held_out: Sequence[GroupJobs],
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
    (seen, views), logged = handed, _logged(task, log)
    rows = []
    for name, controller in controllers.items():
        fresh = group_q.build(network, task.cluster, past(task.train, task.cluster), task.seed)
        fitted(fresh, logged.transitions, logged.meant(controller), FIT, task.seed)
        guess = estimated(fresh, seen, _meant(controller, views))
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

    def __init__(self, played: Sequence[Moment], task: GroupTask) -> None:
        episode = np.concatenate([moment.rows for moment in played])
        turn = np.repeat(np.arange(len(played)), [len(moment.rows) for moment in played])
        place = np.full((len(played) + 1, int(episode.max()) + 1), -1)
        place[turn, episode] = np.arange(len(turn))
        after = place[turn + 1, episode]
        self._played, self._after = played, np.where(after < 0, np.arange(len(turn)), after)
        seen = _joined([states(moment.view, task.cluster) for moment in played])
        share = np.concatenate([moment.setting.share for moment in played]).astype(np.float32)
        order = np.concatenate([moment.setting.order for moment in played])
        reward = np.concatenate([moment.reward for moment in played]).astype(np.float32)
        then = States(seen.told[self._after], seen.amounts[self._after])
        self.transitions = Transitions(seen, share, order, reward, then, after < 0)

    def meant(self, controller: Controller) -> Meant:
        """Return what a controller would set in the next state of each decision."""
        set_there = [_meant(controller, moment.view) for moment in self._played]
        share, order = (np.concatenate(column)[self._after] for column in zip(*set_there, strict=True))
        return Meant(share, order)


def _logged(task: GroupTask, log: Replay) -> _Log:
    jobsets = [task.train[log.loads[k % len(log.loads)]][k // len(log.loads)] for k in range(log.jobsets)]
    return _Log(list(moments(task.begin(jobsets), mixed(task, log), "zero")), task)


def _joined(parts: Sequence[States]) -> States:
    return States(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _meant(controller: Controller, view: GroupObservation) -> Meant:
    setting = controller(view, np.full(len(view.now), 0.5))
    return Meant(setting.share.astype(np.float32), setting.order)


def _changes_at(task: GroupTask, episodes: int) -> IntArray:
    return np.random.default_rng([task.seed, 14]).integers(EARLIEST, LATEST, episodes)


def _handed_over(task: GroupTask, jobsets: Sequence[GroupJobs]) -> tuple[States, GroupObservation] | None:
    """Return the states, and views, in which jobsets are handed over; those that end earlier are left out.

    None where fewer than two are left.
    """
    at, rule = _changes_at(task, len(jobsets)), proportional(task.cluster, 0)
    views: list[tuple[IntArray, GroupObservation]] = []
    played = moments(task.begin(jobsets), lambda rows, view: rule(view, np.zeros(len(rows))), "zero")
    for turn, moment in enumerate(played):
        here = np.flatnonzero(at[moment.rows] == turn)
        if len(here):
            views.append((moment.rows[here], GroupObservation._make(field[here] for field in moment.view)))
    if sum(len(rows) for rows, _ in views) < LEAST:
        return None
    order = np.argsort(np.concatenate([rows for rows, _ in views]), kind="stable")
    view = GroupObservation._make(
        np.concatenate(column)[order] for column in zip(*(view for _, view in views), strict=True)
    )
    return states(view, task.cluster), view


def _truth(task: GroupTask, jobsets: Sequence[GroupJobs], controller: Controller) -> FloatArray:
    """Return the discounted cost from the hand-over on, of the jobsets that have one."""
    at, rule = _changes_at(task, len(jobsets)), proportional(task.cluster, 0)
    total, reached, turn = np.zeros(len(jobsets)), np.zeros(len(jobsets), dtype=bool), 0

    def acts(rows: IntArray, view: GroupObservation) -> Setting:
        before, after = rule(view, np.zeros(len(rows))), controller(view, np.full(len(rows), 0.5))
        mine = at[rows] <= turn
        share = np.where(mine[:, None, None], after.share, before.share)
        return Setting(share, np.where(mine[:, None], after.order, before.order))

    for moment in moments(task.begin(jobsets), acts, "zero"):
        ago = turn - at[moment.rows]
        reached[moment.rows] |= ago >= 0
        total[moment.rows] += np.where(ago >= 0, FIT.gamma ** np.maximum(ago, 0), 0) * moment.cost.sum(axis=1)
        turn += 1
    return np.asarray(total[reached])
