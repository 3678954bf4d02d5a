"""`plan_`: any policy, improved by looking ahead (rollout; Bertsekas, Tsitsiklis, Wu 1997).

Each action that may be taken is carried out in the simulator, and the base plays on from there, against the same
futures for every action; the action of least mean cost is taken, and the base's own of equals. Where all jobs are known
and a network is the base, it plays on in several ways instead, and the least cost counts (`ways`). The planner knows
what every policy knows, an observation, and what anybody can know of the scenario, its training jobsets.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.core import BoolArray, FloatArray, IntArray, Observation, Policy, legal_actions
from pipeline.problems.pool.lookahead.futures import Outlook
from pipeline.problems.pool.lookahead.trials import Player, trials
from pipeline.problems.pool.lookahead.ways import Liking, Ways
from pipeline.problems.pool.nouns import Cluster
from pipeline.problems.pool.simulator.compiled.trying import Limits, Tried


@dataclass(frozen=True)
class Reach:
    """How much is tried for one decision."""

    candidates: int = 12  # actions
    futures: int = 64
    ahead: int = 100  # steps
    decisions: int = 200_000  # simulated; of a network, those that it is asked for
    job: float = 0.0  # what a job that is left costs, in steps of what all that wait cost on average
    work: float = 0.0  # and a step of the whole cluster's work
    sure: float = 0.0  # standard errors by which an action must be better than the base's own


class Worth(NamedTuple):
    """What the actions of D decisions come to."""

    cost: FloatArray  # [D, C]  mean over futures, or least of all ways; infinite where there is none
    error: FloatArray  # [D, C]  standard error of the difference to the first of them, over futures
    futures: IntArray  # [D]  that were played


class Looked(NamedTuple):
    """What was tried in B episodes."""

    chosen: IntArray  # [B]
    action: IntArray  # [B, C]  the base's own first; -1 = no more
    worth: Worth  # of 0 futures where there was one action alone


class Planner:
    """A policy of one cluster."""

    def __init__(
        self,
        base: Policy,
        player: Player,
        cluster: Cluster,
        outlook: Outlook,
        reach: Reach,
        liking: Liking | None = None,
    ) -> None:
        """Prepare the copies that actions are tried on.

        Args:
            base: what is improved.
            player: plays on from what is tried: the base, as its rule or as its weights where it has them.
            cluster: that jobs are scheduled on.
            outlook: what may come.
            reach: how much is tried.
            liking: what the base thinks of each action, those that it likes best are tried; None: the first jobs.
        """
        self.base, self._outlook, self.reach, self._liking = base, outlook, reach, liking
        known = outlook.known(cluster.slots)
        self._best_way = known and isinstance(player, Ways)
        limits = Limits(outlook.from_now, reach.ahead, reach.decisions)
        tries = min(reach.candidates, cluster.slots + 1) * reach.futures
        self._trials = trials(player, cluster, outlook.futures, limits, tries, known)

    def __call__(self, view: Observation, draws: FloatArray) -> IntArray:
        """Return an action [B] for every episode."""
        return self.look(view, draws).chosen

    def look(self, view: Observation, draws: FloatArray) -> Looked:
        """Return what was tried in every episode, and the action to take."""
        own = self.base(view, draws)
        action = self.candidates(view, own)
        asked = np.flatnonzero(action[:, 1] >= 0) if action.shape[1] > 1 else np.empty(0, dtype=np.int64)
        cost = np.where(action >= 0, 0.0, np.inf)
        found = Looked(own.copy(), action, Worth(cost, np.zeros(action.shape), np.zeros(len(own), dtype=np.int64)))
        for first in range(0, len(asked), self._trials.at_once):
            rows = asked[first : first + self._trials.at_once]
            worth = self.worth(view.take(rows), action[rows])
            for whole, part in zip(found.worth, worth, strict=True):
                whole[rows] = part
            found.chosen[rows] = action[rows, self.best(worth)]
        return found

    def candidates(self, view: Observation, own: IntArray) -> IntArray:
        """Return the actions [D, C] that it would try, the base's own first; -1 = no more."""
        return candidates(view, own, self.reach.candidates, None if self._liking is None else self._liking(view))

    def best(self, worth: Worth) -> IntArray:
        """Return the place [D] of the action to take."""
        if not self.reach.sure:
            return np.asarray(worth.cost.argmin(axis=1))
        better = worth.cost[:, :1] - worth.cost > self.reach.sure * worth.error
        better[:, 0] = True
        return np.asarray(np.where(better, worth.cost, np.inf).argmin(axis=1))

    def worth(self, view: Observation, action: IntArray) -> Worth:
        """Return what actions [D, C] come to, of no more decisions than are tried at once; -1 = no action."""
        count, tries, most = len(action), action.shape[1], self.reach.futures
        waiting, jobs, work = np.zeros((3, count, tries, most))
        tried = Tried(waiting, jobs, work, np.zeros(count, dtype=np.int64))
        likely = self._outlook.likely(view.now.astype(np.int64), view.arrived[:, 0])
        self._trials.run(view, action, self._outlook.chosen(likely, most), tried)
        return self._worth(tried, action >= 0)

    def _worth(self, tried: Tried, there: BoolArray) -> Worth:
        """Return what the jobs cost, with what those left cost beyond: mean over futures, or least of all ways."""
        played = np.maximum(tried.futures, 1)[:, None]
        waiting, jobs, work = (part.sum(axis=2) / played for part in tried[:3])
        rate = waiting.sum(axis=1) / np.maximum(there.sum(axis=1), 1) / self.reach.ahead
        cost = waiting + rate[:, None] * (self.reach.job * jobs + self.reach.work * work)
        each = tried.waiting + rate[:, None, None] * (self.reach.job * tried.jobs + self.reach.work * tried.work)
        if self._best_way:  # found by playing what is known: nothing of it is unsure
            least = np.where(np.arange(each.shape[2]) < tried.futures[:, None, None], each, np.inf).min(axis=2)
            return Worth(np.where(there, least, np.inf), np.zeros(cost.shape), tried.futures)
        apart = (each - each[:, :1]) - (cost - cost[:, :1])[:, :, None]
        apart = np.where(np.arange(each.shape[2]) < tried.futures[:, None, None], apart, 0.0)
        error = np.sqrt((apart**2).sum(axis=2) / np.maximum(played - 1, 1) / played)
        return Worth(np.where(there, cost, np.inf), error, tried.futures)


def candidates(view: Observation, own: IntArray, most: int, liked: FloatArray | None = None) -> IntArray:
    """Return the actions [D, C] to try, the base's own first; -1 = no more.

    Behind it stand void and the first jobs; where it is told what is liked [D, A], the best liked. Of jobs of the same
    size and demand one is enough: the first.
    """
    legal, slots = legal_actions(view), view.duration.shape[1]
    size = np.concatenate([view.duration[:, :, None], view.demand], axis=2)
    same = (size[:, :, None] == size[:, None]).all(axis=3) & legal[:, None, :slots]
    first = ~(same & np.tri(slots, k=-1, dtype=bool)).any(axis=2)
    rank = np.broadcast_to(np.arange(slots + 1), legal.shape).copy()
    rank[:, slots] = -1
    if liked is not None:
        rank = np.where(legal, -liked, np.inf).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    rank[np.arange(len(own)), own] = -2
    good = legal & np.concatenate([first, np.ones((len(own), 1), dtype=bool)], axis=1)
    good[np.arange(len(own)), own] = True
    order = np.where(good, rank, slots + 2).argsort(axis=1, kind="stable")[:, :most]
    return np.where(np.take_along_axis(good, order, axis=1), order, -1)
