"""Record decisions: who plays, what an agent and SJF would do there, and what the tree would see."""

from typing import NamedTuple

import numpy as np

from pipeline.core import FloatArray, IntArray, Observation, Policy
from pipeline.explaining.decisions import joined, taken
from pipeline.problems.pool.evaluation.play import Game
from pipeline.problems.pool.explaining.tree import TreeFeatures, tree_features
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.simulation.choosing import choose, sjf
from pipeline.simulation.rollout import play

NEVER = -1  # no job is to come


class AgentDecisions(NamedTuple):
    """D decisions in which a job could have started; actions are slots, and M is void."""

    episode: IntArray  # [D]  of the game
    features: TreeFeatures
    agent: IntArray  # [D]  what the agent does
    sjf: IntArray  # [D]  what SJF would do
    until_arrival: IntArray  # [D]  steps until the next job came; NEVER

    @property
    def slots(self) -> int:
        """Return M, which is void, too."""
        return int(self.features.may_start.shape[1])

    def duration(self, action: IntArray) -> FloatArray:
        """Return the duration [D] of the jobs that actions start; 0 of void."""
        return self._of(action, 0)

    def demand(self, action: IntArray) -> FloatArray:
        """Return the largest share [D] that the jobs demand that actions start; 0 of void."""
        return self._of(action, 2)

    def _of(self, action: IntArray, column: int) -> FloatArray:
        slot = np.minimum(action, self.slots - 1)
        return np.asarray(np.where(action < self.slots, self.features.job[np.arange(len(action)), slot, column], 0.0))


def record(game: Game, agent: Policy, player: Policy | None = None) -> AgentDecisions:
    """Return the decisions of a game.

    Args:
        game: what is played; masked as its player is.
        agent: whose actions are recorded; it acts on the same draws.
        player: decides where play goes; None: the agent.
    """
    simulator = Batched(game.jobs, game.cluster, game.step_limit, skip_forced=game.masked)
    said: list[IntArray] = []
    parts: list[AgentDecisions] = []

    def both(view: Observation, draws: FloatArray) -> IntArray:
        actions = agent(view, draws)
        said.append(actions)
        return actions if player is None else player(view, draws)

    def watch(rows: IntArray, view: Observation, _: IntArray) -> None:
        parts.append(_noted(game, rows, view, said.pop()))

    play(simulator, both, game.key, watch)
    return joined(parts)


def _noted(game: Game, rows: IntArray, view: Observation, actions: IntArray) -> AgentDecisions:
    """Return the decisions in which a job could start; what is not legal lets a step pass, as void does."""
    features = tree_features(view)
    slots = features.may_start.shape[1]
    legal = np.concatenate([features.may_start, np.ones((len(rows), 1), dtype=bool)], axis=1)
    done = np.where(legal[np.arange(len(rows)), actions], actions, slots)
    kept = features.may_start.any(axis=1)
    small = TreeFeatures(
        features.job.astype(np.float32), features.rest.astype(np.float32), features.may_start, features.may_wait
    )
    noted = AgentDecisions(rows, small, done, choose(sjf(view), view), _until_arrival(game, rows, view))
    return taken(noted, np.asarray(kept))


def _until_arrival(game: Game, rows: IntArray, view: Observation) -> IntArray:
    """Return the steps [B] until the next job comes; NEVER after the last."""
    jobs = game.jobs
    apart = int(max(jobs.arrival.max(), view.now.max())) + 1
    due = np.searchsorted(jobs.episode * apart + jobs.arrival, rows * apart + view.now, side="right")
    there = due < jobs.first[rows + 1]
    comes = jobs.arrival[np.minimum(due, len(jobs.arrival) - 1)]
    return np.asarray(np.where(there, comes - view.now, NEVER))
