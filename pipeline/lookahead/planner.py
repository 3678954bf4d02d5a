"""`plan_`: any policy, improved by looking ahead (rollout; Bertsekas, Tsitsiklis, Wu 1997).

Each candidate is carried out on copies of the episode, and the base plays on from there, against the same sampled
futures for every candidate; the one of the best mean is taken, and the base's own of equals. A problem supplies the
`Search`: which actions are candidates, what futures are sampled from, and the kernels that play copies and cost them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from pipeline.core import BoolArray, FloatArray, IntArray, KeyArray, Observation, Policy
from pipeline.simulation.rollout import Episodes, Turn, play_turns

PREFIX = "plan_"

Liking = Callable[[Observation], FloatArray]  # (view) -> how much each action [D, A] is liked; -inf: not allowed
Player = TypeVar("Player")  # plays on in copies as a base does


class SearchBudget(NamedTuple):
    """How much is tried for one decision."""

    candidates: int  # actions
    futures: int  # as many are met by every candidate
    ahead: int  # how far a future goes: steps of a pooled cluster; of many machines, jobs that come
    decisions: int  # simulated; of a network of a pooled cluster, those that it is asked for
    sure: float = 0.0  # standard errors by which a candidate must be better than the base's own
    left_job: float = 0.0  # what a job that is left costs, in steps of what all that wait cost on average
    left_work: float = 0.0  # and a step of the whole cluster's work


class Base(NamedTuple, Generic[Player]):
    """A policy that is improved by looking ahead, and what plays on in copies as it does."""

    policy: Policy
    player: Player
    likes: Liking | None = None  # of a network: those that it likes best are tried
    masked: bool = True  # does it keep to the legal actions?


class ActionValues(NamedTuple):
    """What the candidates of D decisions come to."""

    cost: FloatArray  # [D, C]  mean over futures, but for what all candidates share; infinite where there is none
    error: FloatArray  # [D, C]  standard error of the difference to the first of them, over futures
    futures: IntArray  # [D, C]  that were played; 0 where one candidate stands alone

    def surely_better(self, sure: float) -> IntArray:
        """Return the place [D] of the least cost among those that are better than the first by so many errors."""
        if not sure:
            return np.asarray(self.cost.argmin(axis=1))
        better = self.cost[:, :1] - self.cost > sure * self.error
        better[:, 0] = True
        return np.asarray(np.where(better, self.cost, np.inf).argmin(axis=1))

    def best_bound(self, sure: float) -> IntArray:
        """Return the place [D] of the least bound, so many errors above the cost.

        >>> values = ActionValues(np.array([[0.0, -0.5, 0.0]]), np.array([[0.0, 1.5, 0.0]]), np.array([[2, 2, 0]]))
        >>> [values.best_bound(sure).tolist() for sure in (0.0, 1.0)]
        [[1], [0]]
        """
        margin = sure * self.error if sure else 0.0  # 0 times an unknown error is no number
        return np.asarray(np.where(self.futures > 0, self.cost + margin, np.inf).argmin(axis=1))


class SearchResult(NamedTuple):
    """What was tried in D decisions."""

    chosen: IntArray  # [D]
    action: IntArray  # [D, C]  candidates, the base's own first; -1 = no more
    values: ActionValues


class Search(Protocol):
    """What a problem supplies to the planner."""

    def at_once(self, turn: Turn) -> int:
        """Return how many decisions are tried side by side: the bound of the memory."""

    def candidates(self, turn: Turn) -> IntArray:
        """Return the actions [D, C] that are tried, the base's own first; -1 = no more."""

    def values(self, turn: Turn, action: IntArray) -> ActionValues:
        """Return what candidates [D, C] of at most `at_once` decisions come to."""

    def best(self, values: ActionValues) -> IntArray:
        """Return the place [D] of the candidate to take."""


Watcher = Callable[[Turn, SearchResult], None]  # called before a decision is carried out


@dataclass(frozen=True)
class Planner:
    """A policy that looks ahead."""

    search: Search

    def play(self, simulator: Episodes, key: KeyArray, watch: Watcher) -> Iterator[int]:
        """Decide until every episode is over, and be watched; yield how many go on, after each lock step."""

        def decide(turn: Turn) -> IntArray:
            result = self.look(turn)
            watch(turn, result)
            return result.chosen

        return play_turns(simulator, decide, key)

    def act(self, turn: Turn) -> IntArray:
        """Return the actions [B] of a turn."""
        return self.look(turn).chosen

    def look(self, turn: Turn) -> SearchResult:
        """Return what was tried, and the actions to take."""
        action, at_once = self.search.candidates(turn), self.search.at_once(turn)
        there = action >= 0
        values = ActionValues(np.where(there, 0.0, np.inf), np.zeros(action.shape), np.zeros_like(action))
        asked = np.flatnonzero(there.sum(axis=1) > 1)
        for first in range(0, len(asked), at_once):
            rows = asked[first : first + at_once]
            for whole, part in zip(values, self.search.values(turn.take(rows), action[rows]), strict=True):
                whole[rows] = part
        return SearchResult(action[np.arange(len(action)), self.search.best(values)], action, values)


def best_liked(own: IntArray, action: IntArray, liked: FloatArray, superfluous: BoolArray, most: int) -> IntArray:
    """Return candidates [D, C]: the base's own, then those liked best, of equals the first; -1 = no more.

    Args:
        own: place [D] of the base's own action.
        action: [D, A].
        liked: [D, A]; -inf: not to be tried.
        superfluous: [D, A], actions like others; the base's own is tried nevertheless.
        most: C.
    """
    liked = np.where(superfluous, -np.inf, liked)
    liked[np.arange(len(own)), own] = np.inf
    order = np.argsort(-liked, axis=1, kind="stable")[:, :most]
    return np.where(np.isneginf(np.take_along_axis(liked, order, 1)), -1, np.take_along_axis(action, order, 1))
