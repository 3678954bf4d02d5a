"""Roll-outs of `sets` and of heuristics inside one compiled kernel, some decisions of every episode at a time."""

from typing import NamedTuple

import numpy as np
from numba import get_num_threads

from pipeline.core import CompiledRule, IntArray, KeyArray
from pipeline.problems.pool.networks.compiled_sets import SetWeights
from pipeline.problems.pool.networks.relative import Relative, relative_buffer
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.rules import Players, players
from pipeline.problems.pool.training.decisions import ActionBuffer
from pipeline.problems.pool.training.set_play import NETWORK, RunState, play_some
from pipeline.simulation.rollout import to_end

AT_ONCE = 64  # decisions of an episode in one call of the kernel that keeps them
NEVER = 2**62  # a step that does not come
SOMEBODY = CompiledRule("sjf")


class Rollout(NamedTuple):
    """D decisions of B episodes."""

    observed: Relative
    action: IntArray  # [D]
    episode: IntArray  # [D]
    turn: IntArray  # [D]  place among the decisions of its episode
    now: IntArray  # [D]


class _Until(NamedTuple):
    """The episodes of a simulator that have not reached a step."""

    simulator: Batched
    step: int

    @property
    def rows(self) -> IntArray:
        rows = self.simulator.rows
        return rows[self.simulator.now[rows] < self.step]


class Roller:
    """What plays the episodes of a simulator: the same player goes on where it stopped."""

    def __init__(self, simulator: Batched, weights: SetWeights, key: KeyArray, greedy: bool = False) -> None:
        self._simulator, self._weights, self._greedy = simulator, weights, greedy
        self._who = players([SOMEBODY] * len(key), key)
        self._who.rule[:] = NETWORK
        self._turn = np.zeros(len(key), dtype=np.int64)

    def led_by(self, who: Players) -> "Roller":
        """Let heuristics decide instead of the network."""
        self._who = who
        return self

    def play(self, until: int = NEVER) -> None:
        """Play on up to a step, or to the end."""

        def advance(rows: IntArray) -> None:
            observed, done = relative_buffer(len(rows), self._simulator.cluster.slots), _action_buffer(len(rows))
            how = RunState(self._who.key, self._turn, until, self._greedy, NEVER, get_num_threads(), keep=False)
            count = np.zeros(len(rows), dtype=np.int64)
            self._simulator.hand_over(play_some, rows, self._weights, self._who, how, observed, done, count)

        for _ in to_end(_Until(self._simulator, until), advance):
            pass

    def keep(self, until: int = NEVER) -> Rollout:
        """Play on up to a step, or to the end, and return every decision; there may be none."""
        parts = [self._kept(np.empty(0, dtype=np.int64), until)]
        for _ in to_end(_Until(self._simulator, until), lambda rows: parts.append(self._kept(rows, until))):
            pass
        observed = Relative._make(
            np.concatenate(columns) for columns in zip(*(part.observed for part in parts), strict=True)
        )
        rest = (np.concatenate(columns) for columns in zip(*(part[1:] for part in parts), strict=True))
        return Rollout(observed, *rest)

    def _kept(self, rows: IntArray, until: int) -> Rollout:
        slots, count = self._simulator.cluster.slots, np.zeros(len(rows), dtype=np.int64)
        observed, done = relative_buffer(len(rows) * AT_ONCE, slots), _action_buffer(len(rows) * AT_ONCE)
        if len(rows):
            how = RunState(self._who.key, self._turn, until, self._greedy, AT_ONCE, get_num_threads(), keep=True)
            self._simulator.hand_over(play_some, rows, self._weights, self._who, how, observed, done, count)
        used = np.flatnonzero(np.arange(AT_ONCE) < count[:, None])
        return Rollout(observed.take(used), *(column[used] for column in done))


def _action_buffer(count: int) -> ActionBuffer:
    return ActionBuffer._make(np.empty((4, count), dtype=np.int64))
