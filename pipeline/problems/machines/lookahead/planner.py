"""`plan_`: a heuristic or a network, improved by looking ahead (rollout; Bertsekas, Tsitsiklis, Wu 1997).

A decision is which job starts next; where dispatch blocks, which one holds the head of the queue. Each candidate is
carried out on a copy of the episode, and the base plays on from there until all have started that wait and that
may come, against the same futures for every candidate; the one of least mean bounded slowdown is taken, and the
base's own of equals. The planner knows what has been submitted, what is told of how long jobs run, what each
running job holds and since when, and jobs of the past, with how long those really ran.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pipeline.core import CompiledRule, FloatArray, IntArray, KeyArray, Observation, uniform
from pipeline.problems.machines.lookahead.asking import Asked, liked, try_asking
from pipeline.problems.machines.lookahead.copying import buffer
from pipeline.problems.machines.lookahead.futures import Outlook
from pipeline.problems.machines.lookahead.listing import LISTED
from pipeline.problems.machines.lookahead.trying import Limits, Tries, list_candidates, try_lists, try_moves
from pipeline.problems.machines.nouns import TOGETHER, Machines
from pipeline.problems.machines.simulator.compiled.batch import Simulator
from pipeline.problems.machines.simulator.compiled.rules import RULES, Players, players
from pipeline.problems.machines.simulator.compiled.state import Rules, State
from pipeline.simulation.rollout import Turn, play_turns

COPIES = 512  # of episodes, side by side: the bound of the memory
BITS = 2.0**53  # of a draw
ASKED = 2048  # the same of a policy that is asked, of which no candidate takes the place of another


@dataclass(frozen=True)
class Reach:
    """How much is tried for one decision."""

    candidates: int = 20  # jobs
    futures: int = 64
    jobs: int = 10  # that come in each
    decisions: int = 200_000  # simulated
    sure: float = 1.0  # standard errors that a candidate must be better by than the base's own


class Looked(NamedTuple):
    """What was tried in D decisions."""

    chosen: IntArray  # [D]
    action: IntArray  # [D, C]  candidates, the base's own first; -1 = no more
    cost: FloatArray  # [D, C, F]  sums of bounded slowdowns; nan where it was not played

    @property
    def worth(self) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return what each candidate costs more than the first [D, C], its standard error [D, C], and futures [D, C].

        The first is a mean over futures, of none 0. The error of one future is unknown: infinite, but for the first.
        """
        played = ~np.isnan(self.cost)
        count = played.sum(axis=2)
        more = np.where(played, self.cost - self.cost[:, :1], 0.0)
        mean = more.sum(axis=2) / np.maximum(count, 1)
        apart = np.where(played, more - mean[:, :, None], 0.0)
        error = np.sqrt((apart * apart).sum(axis=2) / np.maximum(count - 1, 1) / np.maximum(count, 1))
        unknown = (count == 1) & (np.arange(count.shape[1]) > 0)
        return mean, np.where(unknown, np.inf, error), count

    def take(self, most: float) -> "Looked":
        """Return it with the first candidate chosen that is best by so many standard errors.

        >>> cost = np.array([[[3.0, 3.0, np.nan], [1.0, 4.0, np.nan], [np.nan, np.nan, np.nan]]])
        >>> [int(Looked(np.zeros(1), np.array([[7, 8, 9]]), cost).take(sure).chosen[0]) for sure in (0.0, 1.0)]
        [8, 7]
        """
        mean, error, count = self.worth
        margin = most * error if most else np.zeros_like(error)  # 0 times an unknown error is no number
        best = np.where(count > 0, mean + margin, np.inf).argmin(axis=1)
        return self._replace(chosen=self.action[np.arange(len(best)), best])


Watcher = Callable[[IntArray, IntArray, Looked], None]  # (rows, decision, looked), before it is done


class Met(NamedTuple):
    """The futures [D, F] that decisions are tried against."""

    begin: IntArray  # where in the past each begins
    key: KeyArray  # of the draws of how long jobs run


@dataclass(frozen=True)
class Planner:
    """A policy that looks ahead."""

    base: CompiledRule | Asked
    outlook: Outlook
    reach: Reach = field(default_factory=Reach)

    def play(self, simulator: Simulator, key: KeyArray, watch: Watcher | None = None) -> Iterator[int]:
        """Decide until every episode is over; yield how many go on, after each lock step."""
        copies = _Copies(self.base, simulator.machines)

        def decide(turn: Turn) -> IntArray:
            looked = self._look(simulator, turn, key[turn.rows], copies)
            if watch is not None:
                watch(turn.rows, turn.decision, looked)
            return looked.chosen

        return play_turns(simulator, decide, key)

    def _look(self, simulator: Simulator, turn: Turn, key: KeyArray, copies: "_Copies") -> Looked:
        """Return what was tried in some episodes; key and decision say which futures are met."""
        reach, futures, rows = self.reach, self.reach.futures, turn.rows
        draw = uniform(np.repeat(key, futures), np.add.outer(turn.decision * futures, np.arange(futures)).ravel())
        draw = draw.reshape(-1, futures)
        met = Met(self.outlook.places(draw, reach.jobs), (draw * BITS).astype(np.uint64))
        action = np.full((len(rows), reach.candidates), -1, dtype=np.int64)
        cost = np.full((*action.shape, futures), np.nan)

        def look(s: State, _: Rules, some: IntArray, part: slice) -> int:
            if isinstance(self.base, Asked):
                liked = self._liked(self.base, turn.view.take(part), turn.draws[part])
                action[part, : liked.shape[1]] = liked
            self._try(s, some, Met(met.begin[part], met.key[part]), action[part], cost[part], copies)
            return 0

        at_once = max(1, COPIES // futures)
        if isinstance(self.base, Asked):
            at_once = max(1, ASKED // (futures * reach.candidates)) if self.base.alike else 1
        for first in range(0, len(rows), at_once):
            part = slice(first, first + at_once)
            simulator.hand_over(look, rows[part], part)
        return Looked(action[:, 0], action, cost).take(reach.sure)

    def _liked(self, base: Asked, view: Observation, draws: FloatArray) -> IntArray:
        return liked(view, base.policy(view, draws), base.likes(view), self.reach.candidates)

    def _try(self, s: State, rows: IntArray, met: Met, action: IntArray, cost: FloatArray, copies: "_Copies") -> None:
        """Write what candidates come to; a rule writes those that there are itself."""
        reach, coming = self.reach, self.outlook.coming
        waiting = s.waiting[rows] + s.behind[rows]
        each = action.shape[1] if isinstance(self.base, Asked) else 1  # copies of a future: a rule plays them in turn
        copies.make_room(each * met.begin.size, int((s.runs[rows] + waiting).max()) + reach.jobs, int(s.nodes.max()))
        tries = Tries(rows, *met, action, cost, copies.order, copies.score)
        limits = Limits(reach.jobs, reach.decisions)
        if isinstance(self.base, Asked):
            try_asking(copies.state, copies.rules, self.base.plays_on, s, coming, tries, limits)
        else:
            list_candidates(copies.state, copies.rules, copies.who, s, coming, tries)
            by = try_lists if copies.listed else try_moves
            by(copies.state, copies.rules, copies.who, s, coming, tries, limits)


class _Copies:
    """Copies of episodes, to be written over; they grow with what is to be held."""

    def __init__(self, base: CompiledRule | Asked, machines: Machines) -> None:
        self._rule = None if isinstance(base, Asked) else base
        self._machines, self._room = machines, (0, 0, 0)
        self.rules = Rules(machines.dispatch, machines.pause, np.inf, machines.stall)
        self.listed = self._rule is not None and machines.dispatch not in TOGETHER and RULES[self._rule.rule] in LISTED
        self.state: State
        self.who: Players
        self.order: IntArray
        self.score: FloatArray

    def make_room(self, episodes: int, jobs: int, widest: int) -> None:
        """Hold so many episodes, of so many jobs on so many machines each, or more."""
        need = episodes, jobs, jobs * widest
        if all(wants <= has for wants, has in zip(need, self._room, strict=True)):
            return
        self._room = (max(need[0], self._room[0]), max(2 * need[1], self._room[1]), max(2 * need[2], self._room[2]))
        self.state = buffer(*self._room, self._machines)
        if self._rule is not None:
            self.who = players([self._rule] * self._room[0], np.zeros(self._room[0], dtype=np.uint64))
        self.order, self.score = np.zeros_like(self.state.running), np.zeros_like(self.state.ends)
