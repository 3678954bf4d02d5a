"""What the planner is told of pooled clusters: the actions to try, their futures, and who plays on from them.

Where all jobs are known and a network is the base, it plays on in several ways instead of futures, and the least cost
counts (`ways`). The planner knows what every policy knows, an observation, and what anybody can know of the scenario,
its training jobsets.
"""

import numpy as np

from pipeline.core import BoolArray, CompiledRule, FloatArray, IntArray, Observation, Policy, legal_actions
from pipeline.lookahead.planner import ActionValues, Base, Planner, SearchBudget, SearchResult, best_liked
from pipeline.problems.pool.lookahead.asking import Copies, try_asking
from pipeline.problems.pool.lookahead.futures import ArrivalModel
from pipeline.problems.pool.lookahead.set_trying import SetPlayer, try_with_network
from pipeline.problems.pool.lookahead.ways import Ways, draws_of, stirred
from pipeline.problems.pool.networks.relative import relative_buffer
from pipeline.problems.pool.nouns import Cluster
from pipeline.problems.pool.simulator.compiled.rules import players
from pipeline.problems.pool.simulator.compiled.state import Rules
from pipeline.problems.pool.simulator.compiled.trying import Limits, Tried, buffer, seen, try_actions
from pipeline.simulation.rollout import Turn

AT_ONCE = 256  # decisions that are taken side by side: the bound of the memory
COPIES = 4096  # of decisions, side by side, where a policy is asked
ENDLESS = np.iinfo(np.int64).max // 8  # steps; an episode's limit is none of the planner's

Player = CompiledRule | SetPlayer | Ways | Policy


class PoolPlanner(Planner):
    """A policy that looks ahead: what it sees is all that it needs."""

    def asked(self, view: Observation, draws: FloatArray) -> SearchResult:
        """Return what was tried in every episode, and the actions to take."""
        rows = np.arange(len(draws))
        return self.look(Turn(None, rows, view, draws, np.zeros_like(rows), rows.astype(np.uint64)))

    def __call__(self, view: Observation, draws: FloatArray) -> IntArray:
        """Return an action [B] for every episode."""
        return self.asked(view, draws).chosen


class PoolSearch:
    """The search of one cluster."""

    def __init__(self, base: Base[Player], cluster: Cluster, arrivals: ArrivalModel, budget: SearchBudget) -> None:
        """Prepare the copies that actions are tried on."""
        self.base, self.arrivals, self.budget = base, arrivals, budget
        end = -1 if cluster.arrivals_end is None else cluster.arrivals_end
        rules = Rules(cluster.place_ahead, ENDLESS, 0, False, False, cluster.stalled_after, end)
        self._limits = Limits(arrivals.from_now, budget.ahead, budget.decisions)
        tries, compiled = min(budget.candidates, cluster.slots + 1) * budget.futures, CompiledRule | SetPlayer
        asked = not isinstance(base.player, compiled)
        self._at_once = max(1, COPIES // tries) if asked else AT_ONCE
        jobs = cluster.slots + cluster.backlog + int(np.diff(arrivals.futures.first).max(initial=0))
        self._copies = Copies(buffer(self._at_once * (tries if asked else 1), jobs, cluster), rules, cluster)
        self._rules, self._observed = rules, relative_buffer(AT_ONCE, cluster.slots)
        self.best_way = isinstance(base.player, Ways) and arrivals.known(cluster.slots)

    def at_once(self, turn: Turn) -> int:
        """Return how many decisions are tried side by side."""
        return self._at_once

    def candidates(self, turn: Turn) -> IntArray:
        """Return the actions [D, C] to try: behind the base's own void and the first jobs, or the best liked."""
        view, likes = turn.view, self.base.likes
        own = self.base.policy(view, turn.draws)
        return candidates(view, own, self.budget.candidates, None if likes is None else likes(view))

    def values(self, turn: Turn, action: IntArray) -> ActionValues:
        """Return what actions [D, C] come to, of no more decisions than are tried at once."""
        view, most = turn.view, self.budget.futures
        waiting, jobs, work = np.zeros((3, *action.shape, most))
        tried = Tried(waiting, jobs, work, np.zeros(len(action), dtype=np.int64))
        likely = self.arrivals.likely(view.now.astype(np.int64), view.arrived[:, 0])
        self._try(view, action, self.arrivals.chosen(likely, most), tried)
        return self._values(tried, action >= 0)

    def best(self, values: ActionValues) -> IntArray:
        """Return the place [D] of the action to take."""
        return values.surely_better(self.budget.sure)

    def _try(self, view: Observation, action: IntArray, chosen: IntArray, tried: Tried) -> None:
        shown, known = seen(view, action), np.ascontiguousarray(view.arrived, dtype=np.float64)
        how, state, most = (self.arrivals.futures, chosen, self._limits, tried), self._copies._state, chosen.shape[1]
        match self.base.player:
            case CompiledRule() as rule:
                who = players([rule] * AT_ONCE, np.zeros(AT_ONCE, dtype=np.uint64))
                try_actions(state, self._rules, shown, who, *how)
            case SetPlayer(weights, holds_from):
                held = np.array(holds_from)
                try_with_network(state, self._rules, shown, known, weights, held, self._observed, *how)
            case Ways(liking):
                lasting = draws_of(most) if self.best_way else np.zeros(most)
                try_asking(self._copies, shown, known, stirred(liking), lasting, *how)
            case policy:
                try_asking(self._copies, shown, known, policy, None, *how)

    def _values(self, tried: Tried, there: BoolArray) -> ActionValues:
        """Return what the jobs cost, with what those left cost beyond: mean over futures, or least of all ways."""
        budget, count = self.budget, tried.futures[:, None]
        played, futures = np.maximum(count, 1), np.where(there, count, 0)
        waiting, jobs, work = (part.sum(axis=2) / played for part in tried[:3])
        rate = waiting.sum(axis=1) / np.maximum(there.sum(axis=1), 1) / budget.ahead
        cost = waiting + rate[:, None] * (budget.left_job * jobs + budget.left_work * work)
        left = budget.left_job * tried.jobs + budget.left_work * tried.work
        each, met = tried.waiting + rate[:, None, None] * left, np.arange(tried.jobs.shape[2]) < count[:, :, None]
        if self.best_way:  # found by playing what is known: nothing of it is unsure
            least = np.where(met, each, np.inf).min(axis=2)
            return ActionValues(np.where(there, least, np.inf), np.zeros(cost.shape), futures)
        apart = np.where(met, (each - each[:, :1]) - (cost - cost[:, :1])[:, :, None], 0.0)
        error = np.sqrt((apart**2).sum(axis=2) / np.maximum(played - 1, 1) / played)
        return ActionValues(np.where(there, cost, np.inf), error, futures)


def candidates(view: Observation, own: IntArray, most: int, liked: FloatArray | None = None) -> IntArray:
    """Return the actions [D, C] to try, the base's own first; -1 = no more.

    Behind it stand void and the first jobs; where it is told what is liked [D, A], the best liked. Of jobs of the same
    size and demand one is enough: the first.
    """
    legal, slots = legal_actions(view), view.duration.shape[1]
    size = np.concatenate([view.duration[:, :, None], view.demand], axis=2)
    same = (size[:, :, None] == size[:, None]).all(axis=3) & legal[:, None, :slots]
    superfluous = ~legal
    superfluous[:, :slots] |= (same & np.tri(slots, k=-1, dtype=bool)).any(axis=2)
    order = np.broadcast_to(np.arange(slots + 1), legal.shape)
    first = np.where(order < slots, -order, 1.0)
    return best_liked(own, order, first if liked is None else liked, superfluous, most)
