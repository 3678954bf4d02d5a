"""`plan_`: any policy, improved by looking ahead (rollout; Bertsekas, Tsitsiklis, Wu 1997).

Each candidate action is carried out on copies of the episode, and the policy to improve (the base) continues from
there, with the same sampled futures for every candidate. The candidate with the best mean is taken; the base's own
action wins ties. A problem supplies the `Search`: candidates, a model of futures, and compiled code for copies.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from pipeline.core.types import BoolArray, FloatArray, IntArray, KeyArray, Observation, Policy
from pipeline.simulation.rollout import Episodes, Turn, play_turns

PREFIX = "plan_"

Liking = Callable[[Observation], FloatArray]  # (view) -> preference for each action [D, A]; -inf: not allowed
Player = TypeVar("Player")  # the form of a base that plays copies, such as a compiled rule


class SearchBudget(NamedTuple):
    """Limits of the search for one decision."""

    candidates: int  # number of actions
    futures: int  # number for each candidate
    ahead: int  # length of a future: steps of a pooled cluster; for many machines, arriving jobs
    decisions: int  # number that is simulated; for a network of a pooled cluster, those that it makes
    sure: float = 0.0  # standard errors by which a candidate must be better than the base's own action
    left_job: float = 0.0  # cost of a job that still waits at the end of a future, in mean costs of a step
    left_work: float = 0.0  # cost of work left then that fills the whole cluster for a step, in the same unit


class Base(NamedTuple, Generic[Player]):
    """A policy to improve by looking ahead, and the player that continues copies in its place."""

    policy: Policy
    player: Player
    likes: Liking | None = None  # of a network: its preferred actions are the candidates
    masked: bool = True  # does it take only legal actions?


class ActionValues(NamedTuple):
    """Estimated costs of the candidates of D decisions."""

    cost: FloatArray  # [D, C]  mean over futures, without common costs; infinite if there is no candidate
    error: FloatArray  # [D, C]  standard error of the difference from the first one, over futures
    futures: IntArray  # [D, C]  number simulated; 0 for a single candidate

    def surely_better(self, sure: float) -> IntArray:
        """Return the index [D] of the best candidate that beats the first by `sure` standard errors; 0 if none does."""
        if not sure:
            return np.asarray(self.cost.argmin(axis=1))
        better = self.cost[:, :1] - self.cost > sure * self.error
        better[:, 0] = True
        return np.asarray(np.where(better, self.cost, np.inf).argmin(axis=1))

    def best_bound(self, sure: float) -> IntArray:
        """Return the index [D] of the least upper bound: the cost plus `sure` standard errors.

        >>> values = ActionValues(np.array([[0.0, -0.5, 0.0]]), np.array([[0.0, 1.5, 0.0]]), np.array([[2, 2, 0]]))
        >>> [values.best_bound(sure).tolist() for sure in (0.0, 1.0)]
        [[1], [0]]
        """
        margin = sure * self.error if sure else 0.0  # 0 times an infinite error is nan
        return np.asarray(np.where(self.futures > 0, self.cost + margin, np.inf).argmin(axis=1))


class SearchResult(NamedTuple):
    """Candidates of D decisions, and the choices."""

    chosen: IntArray  # [D]
    action: IntArray  # [D, C]  candidates, the base's own action first; -1 = no more
    values: ActionValues


class Search(Protocol):
    """The part of the planner that a problem supplies."""

    def at_once(self, turn: Turn) -> int:
        """Return the number of decisions to search in parallel, which memory limits."""

    def candidates(self, turn: Turn) -> IntArray:
        """Return the candidate actions [D, C], the base's own first; -1 = no more."""

    def values(self, turn: Turn, action: IntArray) -> ActionValues:
        """Return the values of candidates [D, C] of up to `at_once` decisions."""

    def best(self, values: ActionValues) -> IntArray:
        """Return the index [D] of the candidate to take."""


Watcher = Callable[[Turn, SearchResult], None]  # called before a decision is carried out


@dataclass(frozen=True)
class Planner:
    """A policy that looks ahead."""

    search: Search

    def play(self, simulator: Episodes, key: KeyArray, watch: Watcher) -> Iterator[int]:
        """Decide until every episode is over, and report to `watch`; yield how many are left after each lock step."""

        def decide(turn: Turn) -> IntArray:
            result = self.look(turn)
            watch(turn, result)
            return result.chosen

        return play_turns(simulator, decide, key)

    def act(self, turn: Turn) -> IntArray:
        """Return the actions [B] of a turn."""
        return self.look(turn).chosen

    def look(self, turn: Turn) -> SearchResult:
        """Return the candidates of a turn, their values and the choices."""
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
    """Return candidates [D, C]: the base's own action, then the preferred ones; -1 = no more.

    Args:
        own: index [D] of the base's own action.
        action: numbers [D, A] of the actions.
        liked: preferences [D, A]; -inf: no candidate.
        superfluous: which actions [D, A] to leave out, such as duplicates; the base's own action is always kept.
        most: C, the maximum number of candidates.
    """
    liked = np.where(superfluous, -np.inf, liked)
    liked[np.arange(len(own)), own] = np.inf
    order = np.argsort(-liked, axis=1, kind="stable")[:, :most]
    return np.where(np.isneginf(np.take_along_axis(liked, order, 1)), -1, np.take_along_axis(action, order, 1))
