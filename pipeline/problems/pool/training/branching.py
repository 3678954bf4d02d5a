"""What every action of a decision would have brought: the state is copied once for each, and the network plays on.

All copies of a decision have the same jobs to come, so that they differ by their first action and by what follows from
it, and by nothing else. Those jobs are the jobset's own. That is no leak: the network is shown none of them, before or
after, and nothing is chosen by them. They are one draw of the future that it must expect, so that what an action
brought is, in the mean over decisions, what it brings. (A planner that acted by them would know the future.)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import get_num_threads

from pipeline.core import BoolArray, CompiledRule, FloatArray, IntArray, KeyArray, Observation
from pipeline.learning.doubt import chances, doubt, likeliest
from pipeline.problems.pool.networks.relative import Relative, relative_buffer
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.rules import players
from pipeline.problems.pool.training.decisions import ActionBuffer
from pipeline.problems.pool.training.rolling import NEVER, Roller
from pipeline.problems.pool.training.set_play import NETWORK, RunState, play_some
from pipeline.problems.pool.training.stream_windows import left

SOMEBODY = CompiledRule("sjf")  # a player must have a rule, which NETWORK replaces


@dataclass(frozen=True)
class Beyond:
    """How far copies are played, and what is left then."""

    steps: int = NEVER  # behind the decision that is taken last; NEVER: to their end
    costs: tuple[float, float] = (0.0, 0.0)  # of `left`, in steps of what a step costs on average
    times: FloatArray | None = None  # [B]  that of each episode; None: nothing is left


@dataclass(frozen=True)
class Branches:
    """D decisions, and what their actions would have brought."""

    observed: Relative
    tried: BoolArray  # [D, A]  actions that have a return: tried, or as good as one that was; two or more
    chance: FloatArray  # [D, A]  of each among those, by the network as it was; 0 of others
    returns: FloatArray  # [D, A]  rewards from the decision on; 0 of others
    before: FloatArray  # [D]  rewards of its episode until then
    episode: IntArray  # [D]
    weight: FloatArray  # [D]  decisions that it stands for: 1 / the chance that it was tried

    @classmethod
    def of(cls, parts: Sequence["Branches"]) -> "Branches":
        """Return the decisions of several, which must be of the same number of slots."""
        observed = Relative._make(
            np.concatenate(columns) for columns in zip(*(part.observed for part in parts), strict=True)
        )
        names = ("tried", "chance", "returns", "before", "episode", "weight")
        return cls(observed, *(np.concatenate([getattr(part, name) for part in parts]) for name in names))


class Walk:
    """Episodes that a network plays by chance, some decisions at a time."""

    def __init__(self, simulator: Batched, network: Sets, key: KeyArray) -> None:
        self.simulator, self._weights, self._key = simulator, network.compiled(), key
        self._turn, self._who = np.zeros(len(key), dtype=np.int64), players([SOMEBODY] * len(key), key)
        self._who.rule[:] = NETWORK

    def go_on(self, decisions: int, until: int = NEVER) -> IntArray:
        """Play so many decisions of each episode, none from a step on; return the episodes that have another."""
        rows = self._left(until)
        if decisions and len(rows):
            observed = relative_buffer(len(rows), self.simulator.cluster.slots)
            done = ActionBuffer._make(np.empty((4, len(rows)), dtype=np.int64))
            how = RunState(self._key, self._turn, until, False, decisions, get_num_threads(), keep=False)
            count = np.zeros(len(rows), dtype=np.int64)
            self.simulator.hand_over(play_some, rows, self._weights, self._who, how, observed, done, count)
        return self._left(until)

    def _left(self, until: int) -> IntArray:
        rows = self.simulator.rows
        return rows[self.simulator.now[rows] < until]


def branches(
    simulator: Batched, network: Sets, rows: IntArray, draws: FloatArray, unsure: float, most: int, beyond: Beyond
) -> Branches:
    """Return what the actions would bring that some episodes may take next.

    A decision is tried by the chance (1 - sum of its actions' squared chances) / unsure, and counts for so many more:
    where the network is sure, the gradient is next to nothing.

    Args:
        simulator: its episodes stay where they are.
        network: plays on, greedily.
        rows: the episodes.
        draws: [B'] of those, in [0, 1): which are tried.
        unsure: from which on a decision is always tried.
        most: actions that are tried of a decision.
        beyond: how far copies are played.
    """
    view = simulator.observe(rows)
    observed = network.encode(view)
    logits, like = network.frozen()(observed).astype(np.float64), alike(view, observed.may)
    tried = likeliest(logits, like, observed.may, most)
    chance = chances(logits, tried)
    kept = np.minimum(1.0, doubt(chance, like) / unsure)
    some = np.flatnonzero(draws < kept)
    tried, like = tried[some], like[some]
    decision, action = np.nonzero(tried & (like == np.arange(like.shape[1])))
    table = np.zeros(tried.shape)
    table[decision, action] = _brought(simulator, network, rows[some], decision, action, beyond)
    returns = np.where(tried, np.take_along_axis(table, like, axis=1), 0.0)
    before = simulator.rewards[rows[some]].sum(axis=1)
    return Branches(observed.take(some), tried, chance[some], returns, before, rows[some], 1.0 / kept[some])


def alike(view: Observation, may: BoolArray) -> IntArray:
    """Return for every action [D, A] the first that is as good: a job of the same size and demand that may be started.

    Of illegal actions it means nothing.
    """
    slots = view.duration.shape[1]
    size = np.concatenate([view.duration[:, :, None], view.demand], axis=2)
    same = (size[:, :, None] == size[:, None]).all(axis=3) & may[:, None, :slots]
    return np.concatenate([same.argmax(axis=2), np.full((len(may), 1), slots)], axis=1)


def _brought(
    simulator: Batched, network: Sets, rows: IntArray, decision: IntArray, action: IntArray, beyond: Beyond
) -> FloatArray:
    """Return the rewards [C] from an action on, and what is left, of C actions of decisions in some episodes."""
    if not len(decision):
        return np.empty(0)
    copies, begun = simulator.fork(rows[decision]), simulator.now[rows]
    end = NEVER if beyond.steps == NEVER else int(begun.max()) + beyond.steps
    copies.step(np.arange(len(decision)), action)
    nobody = np.zeros(len(decision), dtype=np.uint64)  # greedy play draws nothing
    Roller(copies, network.compiled(), nobody, greedy=True).play(end)
    rewards = copies.rewards[:, : min(end, int(copies.now.max()))]
    brought = np.where(np.arange(rewards.shape[1]) >= begun[decision, None], rewards, 0.0).sum(axis=1)
    if beyond.times is None:
        return np.asarray(brought)
    mean = np.bincount(decision, weights=brought) / np.bincount(decision)
    rate = beyond.times[rows] * mean / (end - begun)
    return np.asarray(
        brought + rate[decision] * left(copies.jobs, copies.schedule().start, copies.cluster, end, beyond.costs)
    )
