"""The search of the planner on many machines: candidates, sampled futures, and their costs.

A decision chooses the job that starts next or, where dispatch blocks, the job at the head of the queue. The base then
continues until all waiting jobs and all arrivals of the future have started; the mean bounded slowdown counts. The
planner knows the submitted jobs, their estimates, the machines and starts of running jobs, and complete past jobs.
"""

from typing import NamedTuple

import numpy as np

from pipeline.core.types import CompiledRule, FloatArray, IntArray, KeyArray, Observation, Policy, uniform
from pipeline.lookahead.planner import ActionValues, Base, SearchBudget, best_liked
from pipeline.problems.machines.env.nouns import TOGETHER, Machines
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.env.simulator.rules import RULES, Players, players
from pipeline.problems.machines.env.simulator.state import Rules, State
from pipeline.problems.machines.lookahead.futures import ArrivalModel, PastJobs, buffer
from pipeline.problems.machines.lookahead.trials import (
    LISTED,
    Trials,
    begin_all,
    list_candidates,
    try_rule,
    write_costs,
)
from pipeline.simulation.rollout import Turn, play

COPIES = 512  # in parallel, limited by memory, if a rule plays the candidates of a copy in turn
POLICY_COPIES = 2048  # the same for a policy in Python, where every candidate has its own copy
BITS = 2.0**53  # of a draw


class PolicyPlayer(NamedTuple):
    """A policy in Python that continues in copies."""

    policy: Policy  # uses no random draws
    consistent: bool = False  # is its output for a state independent of the rest of the batch, to the last bit?


class MachinesSearch:
    """The search for one base; the key and number of each decision determine its futures."""

    def __init__(self, base: Base[CompiledRule | PolicyPlayer], arrivals: ArrivalModel, budget: SearchBudget) -> None:
        self.base, self.arrivals, self.budget = base, arrivals, budget
        self._copies: Copies | None = None

    def at_once(self, turn: Turn) -> int:
        """Return how many decisions are tried in parallel; one if the policy's output depends on its batch."""
        player, budget = self.base.player, self.budget
        if isinstance(player, CompiledRule):
            return max(1, COPIES // budget.futures)
        return max(1, POLICY_COPIES // (budget.futures * budget.candidates)) if player.consistent else 1

    def candidates(self, turn: Turn) -> IntArray:
        """Return the actions [D, C] to try: the base's own, then the next choices of a rule or network."""
        step = self.at_once(turn)
        parts = [turn.take(slice(first, first + step)) for first in range(0, len(turn.rows), step)]
        return np.concatenate([self._candidates(part) for part in parts])

    def _candidates(self, turn: Turn) -> IntArray:
        if self.base.likes is not None:
            own = self.base.policy(turn.view, turn.draws)
            return liked(turn.view, own, self.base.likes(turn.view), self.budget.candidates)
        action = np.empty((len(turn.rows), self.budget.candidates), dtype=np.int64)
        simulator, copies = self._copies_of(turn)
        key = self._futures(turn)[1][:, 0].copy()

        def look(s: State, _: Rules, rows: IntArray) -> int:
            copies.make_room(len(rows), s, rows, 0)
            list_candidates(copies._state, copies._rules, copies.who, s, rows, self.arrivals.past, key, action)
            return 0

        simulator.run_kernel(look, turn.rows)
        return action

    def values(self, turn: Turn, action: IntArray) -> ActionValues:
        """Return the costs of candidates [D, C] less that of the first; untried ones have cost 0, of 0 futures.

        The error of a mean over one future is unknown: infinite, except for the first candidate.
        """
        cost = self.costs(turn, action)
        played = ~np.isnan(cost)
        count = played.sum(axis=2)
        more = np.where(played, cost - cost[:, :1], 0.0)
        mean = more.sum(axis=2) / np.maximum(count, 1)
        apart = np.where(played, more - mean[:, :, None], 0.0)
        error = np.sqrt((apart * apart).sum(axis=2) / np.maximum(count - 1, 1) / np.maximum(count, 1))
        unknown = (count == 1) & (np.arange(count.shape[1]) > 0)
        return ActionValues(mean, np.where(unknown, np.inf, error), count)

    def best(self, values: ActionValues) -> IntArray:
        """Return the index [D] of the candidate to take."""
        return values.best_bound(self.budget.sure)

    def costs(self, turn: Turn, action: IntArray) -> FloatArray:
        """Return the sums [D, C, F] of bounded slowdowns of candidates; nan where one was not played."""
        budget, past, player = self.budget, self.arrivals.past, self.base.player
        cost = np.full((*action.shape, budget.futures), np.nan)
        tries = Trials(turn.rows, *self._futures(turn), action, cost, budget.ahead, budget.decisions)
        simulator, copies = self._copies_of(turn)

        def look(s: State, _: Rules, rows: IntArray) -> int:
            copies.make_room(tries.begin.size if isinstance(player, CompiledRule) else cost.size, s, rows, budget.ahead)
            if isinstance(player, CompiledRule):
                try_rule(copies._state, copies._rules, copies.who, s, past, tries, copies.order, copies.score)
            else:
                copies.play_policy(player.policy, s, past, tries)
            return 0

        simulator.run_kernel(look, turn.rows)
        return cost

    def _copies_of(self, turn: Turn) -> "tuple[Simulator, Copies]":
        """Return the simulator of a turn, and copies of its machines."""
        assert isinstance(turn.simulator, Simulator)
        if self._copies is None or self._copies.machines is not turn.simulator.machines:
            self._copies = Copies(turn.simulator.machines, self.base.player)
        return turn.simulator, self._copies

    def _futures(self, turn: Turn) -> tuple[IntArray, KeyArray]:
        """Return where in the past the futures [D, F] begin, and the keys of their run times."""
        count = self.budget.futures
        draw = uniform(np.repeat(turn.key, count), np.add.outer(turn.decision * count, np.arange(count)).ravel())
        draw = draw.reshape(-1, count)
        return self.arrivals.places(draw, self.budget.ahead), (draw * BITS).astype(np.uint64)


class Copies(Simulator):
    """Copies of episodes, to be overwritten; their memory grows as needed."""

    def __init__(self, machines: Machines, player: CompiledRule | PolicyPlayer) -> None:
        self.machines, self._room = machines, (0, 0, 0)
        self._rule = player if isinstance(player, CompiledRule) else None
        self._rules = Rules(machines.dispatch, machines.pause, np.inf, machines.stall)
        self._listed = self._rule is not None and machines.dispatch not in TOGETHER and RULES[self._rule.rule] in LISTED
        self.who: Players
        self.order: IntArray  # [J] if the rule plays a list, else empty; buffer for its list
        self.score: FloatArray

    def make_room(self, episodes: int, s: State, rows: IntArray, arrivals: int) -> None:
        """Make room for `episodes` copies of any of the given episodes, each with a number of arrivals."""
        jobs = int((s.runs[rows] + s.waiting[rows] + s.backlog[rows]).max()) + arrivals
        need = episodes, jobs, jobs * int(s.nodes.max())
        if all(wants <= has for wants, has in zip(need, self._room, strict=True)):
            if self._rule is not None:
                self.who.decision[:] = 0  # so that the draws of a rule do not depend on earlier decisions
            return
        self._room = (max(need[0], self._room[0]), max(2 * need[1], self._room[1]), max(2 * need[2], self._room[2]))
        self._state = buffer(*self._room, self.machines)
        if self._rule is not None:
            self.who = players([self._rule] * self._room[0], np.zeros(self._room[0], dtype=np.uint64))
        jobs = len(self._state.ends) if self._listed else 0
        self.order, self.score = np.zeros(jobs, dtype=np.int64), np.zeros(jobs)

    def play_policy(self, policy: Policy, s: State, past: PastJobs, tries: Trials) -> None:
        """Write the cost of each candidate, playing all copies in lock step."""
        last = np.zeros(tries.cost.size, dtype=np.int64)
        self._state.done[:] = True
        begin_all(self._state, s, past, tries, last)
        self._rows = rows = np.flatnonzero(last)
        self.step(rows, np.repeat(tries.action, tries.cost.shape[2], axis=0).reshape(-1)[rows])
        play(self, policy, np.zeros(len(self.now), dtype=np.uint64))
        write_costs(self._state, s, tries, last)


def liked(view: Observation, own: IntArray, likes: FloatArray, most: int) -> IntArray:
    """Return the candidates [D, C] of decisions, the policy's own action first; -1 = no more.

    Void and the other jobs follow, the most preferred first, each job on the machine where it is preferred most. Of
    several jobs that look the same, only one is a candidate.
    """
    count, slots, machines = view.legal.shape
    each = likes[:, :-1].reshape(count, slots, machines)
    action = np.concatenate(
        [each.argmax(axis=2) + np.arange(slots) * machines, np.full((count, 1), slots * machines)], 1
    )
    value = np.concatenate([each.max(axis=2), likes[:, -1:]], axis=1)
    rows, mine = np.arange(count), np.minimum(own // machines, slots)
    action[rows, mine], value[rows, mine] = own, np.inf
    looks = np.concatenate([view.duration[:, :, None], view.nodes[:, :, None], view.demand, view.legal], axis=2)
    same = (looks[:, :, None] == looks[:, None]).all(axis=3)
    before = (value[:, None, :slots] > value[:, :slots, None]) | (
        (value[:, None, :slots] == value[:, :slots, None]) & np.tri(slots, k=-1, dtype=bool)
    )
    superfluous = np.pad((same & before).any(axis=2), [(0, 0), (0, 1)])
    return best_liked(mine, action, value, superfluous, most)
