"""`plan_`: any heuristic, improved by looking ahead (rollout; Bertsekas, Tsitsiklis, Wu 1997).

Each action that may be taken is carried out in the simulator, and the heuristic plays on from there, against the same
futures for every action; the action of least mean cost is taken, and the heuristic's own of equals. The planner knows
what every policy knows, an observation, and what anybody can know of the scenario, its training jobsets.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.core import BoolArray, CompiledRule, FloatArray, IntArray, Observation, Policy, legal_actions
from pipeline.problems.pool.lookahead.futures import Outlook
from pipeline.problems.pool.nouns import Cluster
from pipeline.problems.pool.simulator.compiled.rules import players
from pipeline.problems.pool.simulator.compiled.state import Rules
from pipeline.problems.pool.simulator.compiled.trying import Limits, Tried, buffer, seen, try_actions

AT_ONCE = 256  # decisions that are taken side by side: the bound of the memory
ENDLESS = np.iinfo(np.int64).max // 8  # steps; an episode's limit is none of the planner's


@dataclass(frozen=True)
class Reach:
    """How much is tried for one decision."""

    candidates: int = 12  # actions
    futures: int = 64
    ahead: int = 100  # steps
    decisions: int = 200_000  # simulated
    job: float = 0.0  # what a job that is left costs, in steps of what all that wait cost on average
    work: float = 0.0  # and a step of the whole cluster's work


class Planner:
    """A policy of one cluster."""

    def __init__(self, base: Policy, rule: CompiledRule, cluster: Cluster, outlook: Outlook, reach: Reach) -> None:
        self._base, self._rule, self._outlook, self._reach = base, rule, outlook, reach
        room = cluster.slots + cluster.backlog + int(np.diff(outlook.futures.first).max(initial=0))
        self._state = buffer(AT_ONCE, room, cluster)
        end = -1 if cluster.arrivals_end is None else cluster.arrivals_end
        self._rules = Rules(cluster.place_ahead, ENDLESS, 0, False, False, cluster.stalled_after, end)
        self._limits = Limits(outlook.from_now, reach.ahead, reach.decisions)

    def __call__(self, view: Observation, draws: FloatArray) -> IntArray:
        """Return an action [B] for every episode."""
        own = self._base(view, draws)
        action = candidates(view, own, self._reach.candidates)
        asked = np.flatnonzero(action[:, 1] >= 0) if action.shape[1] > 1 else np.empty(0, dtype=np.int64)
        chosen = own.copy()
        for first in range(0, len(asked), AT_ONCE):
            rows = asked[first : first + AT_ONCE]
            cost = self.costs(view.take(rows), action[rows])
            chosen[rows] = action[rows, cost.argmin(axis=1)]
        return chosen

    def costs(self, view: Observation, action: IntArray) -> FloatArray:
        """Return the mean cost [D, C] of actions, of at most AT_ONCE decisions; infinite where there is none."""
        count, tries, most = len(action), action.shape[1], self._reach.futures
        waiting, jobs, work = np.zeros((3, count, tries, most))
        tried = Tried(waiting, jobs, work, np.zeros(count, dtype=np.int64))
        likely = self._outlook.likely(view.now.astype(np.int64), view.arrived[:, 0])
        who = players([self._rule] * AT_ONCE, np.zeros(AT_ONCE, dtype=np.uint64))
        try_actions(
            self._state,
            self._rules,
            seen(view, action),
            who,
            self._outlook.futures,
            self._outlook.chosen(likely, most),
            self._limits,
            tried,
        )
        return self._mean(tried, action >= 0)

    def _mean(self, tried: Tried, there: BoolArray) -> FloatArray:
        """Return the mean over futures of what the jobs cost, with what those left cost beyond."""
        played = np.maximum(tried.futures, 1)[:, None]
        waiting, jobs, work = (part.sum(axis=2) / played for part in tried[:3])
        rate = waiting.sum(axis=1) / np.maximum(there.sum(axis=1), 1) / self._reach.ahead
        cost = waiting + rate[:, None] * (self._reach.job * jobs + self._reach.work * work)
        return np.where(there, cost, np.inf)


def candidates(view: Observation, own: IntArray, most: int) -> IntArray:
    """Return the actions [D, C] to try, the heuristic's own first, then void and the first jobs; -1 = no more.

    Of jobs of the same size and demand one is enough: the first.
    """
    legal, slots = legal_actions(view), view.duration.shape[1]
    size = np.concatenate([view.duration[:, :, None], view.demand], axis=2)
    same = (size[:, :, None] == size[:, None]).all(axis=3) & legal[:, None, :slots]
    first = ~(same & np.tri(slots, k=-1, dtype=bool)).any(axis=2)
    rank = np.broadcast_to(np.arange(slots + 1), legal.shape).copy()
    rank[:, slots] = -1
    rank[np.arange(len(own)), own] = -2
    good = legal & np.concatenate([first, np.ones((len(own), 1), dtype=bool)], axis=1)
    good[np.arange(len(own)), own] = True
    order = np.where(good, rank, slots + 2).argsort(axis=1, kind="stable")[:, :most]
    return np.where(np.take_along_axis(good, order, axis=1), order, -1)
