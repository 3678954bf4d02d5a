"""The search of a planner for pooled clusters: candidates, futures, and their costs.

The planner knows an observation, as every policy does, and the training jobsets of its scenario. If all jobs are known
and the base is a network, then instead of several futures there are several ways to continue (`Ways`), and the least
cost counts. `try_asking` is for policies without compiled rollouts: networks over images, trees, external policies.
"""

import numpy as np
from numba import njit

from pipeline.core.types import BoolArray, CompiledRule, FloatArray, IntArray, Observation, Policy, keys, legal_actions
from pipeline.lookahead.planner import ActionValues, Base, Planner, SearchBudget, SearchResult, best_liked
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.kernels import _forced_move, carry_out
from pipeline.problems.pool.env.simulator.rules import players
from pipeline.problems.pool.env.simulator.state import Rules, State, arrived_before
from pipeline.problems.pool.env.simulator.trying import (
    Futures,
    Limits,
    Seen,
    Tried,
    _begin,
    _cost,
    _waits,
    _write_jobs,
    buffer,
    seen,
    try_actions,
)
from pipeline.problems.pool.lookahead.futures import ArrivalModel, Ways, draws_of, stirred
from pipeline.simulation.compiled import Span, threaded
from pipeline.simulation.rollout import Turn, play_turns


class Copies(Batched):
    """D decisions as episodes, each copied for every action and future, in that order; they end when no job is left."""

    def __init__(self, state: State, rules: Rules, cluster: Cluster) -> None:
        self._state, self._rules, self.cluster = state, rules, cluster

    def begin(self, view: Seen, known: FloatArray, futures: Futures, chosen: IntArray, limits: Limits) -> None:
        """Write all copies; padding (an action below 0) is never played."""
        s, self.shape = self._state, (*view.action.shape, chosen.shape[1])
        decision, _, _ = np.indices(self.shape).reshape(3, -1)
        self.last = np.zeros(len(decision), dtype=np.int64)
        _begin_all(s, self._rules, view, futures, chosen, limits, self.last)
        self._known, self._sums = known[decision], arrived_before(s.requested, s.demand)
        self._begun, self._end = s.to_come[: len(decision)].copy(), view.now[decision] + limits.ahead
        self.count = np.zeros(len(decision), dtype=np.int64)  # number of decisions with a choice
        self._rows = np.flatnonzero(np.repeat(view.action, chosen.shape[1]) >= 0)

    def step(self, rows: IntArray, actions: IntArray) -> None:
        """Carry out one decision in each of some copies, and the forced moves."""
        over = np.zeros(len(rows), dtype=bool)
        _advance_all(self._state, self._rules, rows, actions, self.last, self._end, over)
        self.count[rows] += 1
        self._rows = rows[~over]

    def observe(self, rows: IntArray) -> Observation:
        """Return the observations of some copies; sums over arrivals continue from those at the decision."""
        known = self._known[rows]
        come = known + self._sums[self._state.to_come[rows]] - self._sums[self._begun[rows]]
        return super().observe(rows)._replace(arrived=np.where(known[:, :1] > 0, come, known))


def try_asking(
    copies: Copies, view: Seen, known: FloatArray, policy: Policy, lasting: FloatArray | None, futures: Futures,
    chosen: IntArray, limits: Limits, tried: Tried,
) -> None:  # fmt: skip
    """Write the costs of each action if a policy in Python continues; there must be room for every copy.

    `lasting` is the policy's constant draw [F'] in each future; None: a new draw for every decision.
    """
    copies.begin(view, known, futures, chosen, limits)
    _, _, future = np.indices(copies.shape).reshape(3, -1)
    draw = np.repeat(np.arange(len(chosen)), copies.shape[1] * chosen.shape[1]) * chosen.shape[1] + future

    def decide(turn: Turn) -> IntArray:
        return policy(turn.view, turn.draws if lasting is None else lasting[future[turn.rows]])

    copies.step(copies.rows, np.repeat(view.action, chosen.shape[1])[copies.rows])
    for _ in play_turns(copies, decide, keys(0, draw, np.zeros_like(draw)), made=1):
        pass
    _add_up(copies._state, view, copies.last, limits, tried)
    spent = copies.count.reshape(copies.shape).sum(axis=1).cumsum(axis=1)
    kept = np.pad(spent, [(0, 0), (1, 0)])[:, :-1] < limits.decisions
    tried.futures[:] = kept.sum(axis=1)
    played = (view.action >= 0)[:, :, None] & kept[:, None, :]
    for part in tried[:3]:
        part[~played] = 0.0


@threaded(lambda s, rules, view, futures, chosen, limits, last: len(last))
def _begin_all(
    span: Span, s: State, rules: Rules, view: Seen, futures: Futures, chosen: IntArray, limits: Limits, last: IntArray
) -> None:
    most = chosen.shape[1]
    for b in range(*span):
        d = b // (view.action.shape[1] * most)
        last[b] = _write_jobs(s, b, view, d, futures, chosen[d, b % most], limits)
        _begin(s, rules, b, view, d, last[b])


@njit(cache=True)
def _advance(s: State, rules: Rules, b: int, action: int, last: int, end: int) -> bool:
    """Carry out an action and the forced moves; return whether the copy is over."""
    while action >= 0:
        carry_out(s, rules, b, action)
        if s.now[b] >= end or (s.to_come[b] == last and not _waits(s, b)):
            return True
        action = _forced_move(s, rules, b)
    return False


@threaded(lambda s, rules, rows, *_: len(rows))
def _advance_all(
    span: Span, s: State, rules: Rules, rows: IntArray, action: IntArray, last: IntArray, end: IntArray, over: BoolArray
) -> None:
    for i in range(*span):
        b = rows[i]
        over[i] = _advance(s, rules, b, action[i], last[b], end[b])


@threaded(lambda s, view, last, *_: len(last))
def _add_up(span: Span, s: State, view: Seen, last: IntArray, limits: Limits, tried: Tried) -> None:
    tries, most = view.action.shape[1], tried.waiting.shape[2]
    for b in range(*span):
        d = b // (tries * most)
        _cost(s, b, view.now[d], last[b], view.now[d] + limits.ahead, tried, d, b // most % tries, b % most)


AT_ONCE = 256  # decisions tried in parallel, limited by memory
COPIES = 4096  # of decisions, if a policy in Python continues
ENDLESS = np.iinfo(np.int64).max // 8  # steps: the planner has no step limit

Player = CompiledRule | Ways | Policy


class PoolPlanner(Planner):
    """A policy that looks ahead from an observation."""

    def asked(self, view: Observation, draws: FloatArray) -> SearchResult:
        """Return the search result of every episode."""
        rows = np.arange(len(draws))
        return self.look(Turn(None, rows, view, draws, np.zeros_like(rows), rows.astype(np.uint64)))

    def __call__(self, view: Observation, draws: FloatArray) -> IntArray:
        """Return an action [B] for every episode."""
        return self.asked(view, draws).chosen


class PoolSearch:
    """Look-ahead search on one cluster."""

    def __init__(self, base: Base[Player], cluster: Cluster, arrivals: ArrivalModel, budget: SearchBudget) -> None:
        """Prepare the copies in which actions are tried."""
        self.base, self.arrivals, self.budget = base, arrivals, budget
        end = -1 if cluster.arrivals_end is None else cluster.arrivals_end
        rules = Rules(cluster.place_ahead, ENDLESS, 0, False, False, cluster.stalled_after, end)
        self._limits = Limits(arrivals.from_now, budget.ahead, budget.decisions)
        tries = min(budget.candidates, cluster.slots + 1) * budget.futures
        asked = not isinstance(base.player, CompiledRule)
        self._at_once = max(1, COPIES // tries) if asked else AT_ONCE
        jobs = cluster.slots + cluster.backlog + int(np.diff(arrivals.futures.first).max(initial=0))
        self._copies = Copies(buffer(self._at_once * (tries if asked else 1), jobs, cluster), rules, cluster)
        self._rules = rules
        self.best_way = isinstance(base.player, Ways) and arrivals.known(cluster.slots)

    def at_once(self, turn: Turn) -> int:
        """Return how many decisions are tried in parallel."""
        return self._at_once

    def candidates(self, turn: Turn) -> IntArray:
        """Return the actions [D, C] to try: the base policy's choice, then those that it prefers.

        Without preferences: void, then jobs in the order of their slots.
        """
        view, likes = turn.view, self.base.likes
        own = self.base.policy(view, turn.draws)
        return candidates(view, own, self.budget.candidates, None if likes is None else likes(view))

    def values(self, turn: Turn, action: IntArray) -> ActionValues:
        """Return the values of actions [D, C] of up to `at_once` decisions."""
        view, most = turn.view, self.budget.futures
        waiting, jobs, work = np.zeros((3, *action.shape, most))
        tried = Tried(waiting, jobs, work, np.zeros(len(action), dtype=np.int64))
        likely = self.arrivals.likely(view.now.astype(np.int64), view.arrived[:, 0], view.load)
        self._try(view, action, self.arrivals.chosen(likely, most), tried)
        return self._values(tried, action >= 0)

    def best(self, values: ActionValues) -> IntArray:
        """Return the index [D] of the action to take."""
        return values.surely_better(self.budget.sure)

    def _try(self, view: Observation, action: IntArray, chosen: IntArray, tried: Tried) -> None:
        shown, known = seen(view, action), np.ascontiguousarray(view.arrived, dtype=np.float64)
        how, state, most = (self.arrivals.futures, chosen, self._limits, tried), self._copies._state, chosen.shape[1]
        match self.base.player:
            case CompiledRule() as rule:
                who = players([rule] * AT_ONCE, np.zeros(AT_ONCE, dtype=np.uint64))
                try_actions(state, self._rules, shown, who, *how)
            case Ways(liking):
                lasting = draws_of(most) if self.best_way else np.zeros(most)
                try_asking(self._copies, shown, known, stirred(liking), lasting, *how)
            case policy:
                try_asking(self._copies, shown, known, policy, None, *how)

    def _values(self, tried: Tried, there: BoolArray) -> ActionValues:
        """Return the costs, including those of the jobs left: the mean over futures, or the least over ways."""
        budget, count = self.budget, tried.futures[:, None]
        played, futures = np.maximum(count, 1), np.where(there, count, 0)
        waiting, jobs, work = (part.sum(axis=2) / played for part in tried[:3])
        rate = waiting.sum(axis=1) / np.maximum(there.sum(axis=1), 1) / budget.ahead
        cost = waiting + rate[:, None] * (budget.left_job * jobs + budget.left_work * work)
        left = budget.left_job * tried.jobs + budget.left_work * tried.work
        each, met = tried.waiting + rate[:, None, None] * left, np.arange(tried.jobs.shape[2]) < count[:, :, None]
        if self.best_way:  # all jobs are known: the cost is certain
            least = np.where(met, each, np.inf).min(axis=2)
            return ActionValues(np.where(there, least, np.inf), np.zeros(cost.shape), futures)
        apart = np.where(met, (each - each[:, :1]) - (cost - cost[:, :1])[:, :, None], 0.0)
        error = np.sqrt((apart**2).sum(axis=2) / np.maximum(played - 1, 1) / played)
        return ActionValues(np.where(there, cost, np.inf), error, futures)


def candidates(view: Observation, own: IntArray, most: int, liked: FloatArray | None = None) -> IntArray:
    """Return the actions [D, C] to try, the base policy's choice `own` first; -1 = no more.

    The others have the highest preferences `liked` [D, A] or, without these, are void and then jobs in slot order.
    Of several jobs with the same duration and demand, only the first is tried.
    """
    legal, slots = legal_actions(view), view.duration.shape[1]
    size = np.concatenate([view.duration[:, :, None], view.demand], axis=2)
    same = (size[:, :, None] == size[:, None]).all(axis=3) & legal[:, None, :slots]
    superfluous = ~legal
    superfluous[:, :slots] |= (same & np.tri(slots, k=-1, dtype=bool)).any(axis=2)
    order = np.broadcast_to(np.arange(slots + 1), legal.shape)
    first = np.where(order < slots, -order, 1.0)
    return best_liked(own, order, first if liked is None else liked, superfluous, most)
