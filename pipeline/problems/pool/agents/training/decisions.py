"""Decisions of many episodes (observations, actions, rewards), and the rollouts that record them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from pipeline.core.types import BoolArray, CompiledRule, FloatArray, IntArray, KeyArray, Policy, uniform
from pipeline.errors import UserError
from pipeline.learning.sampling import sample
from pipeline.problems.pool.agents.networks.network import Forward
from pipeline.problems.pool.env.nouns import CompactObservation
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.rules import players
from pipeline.simulation.rollout import to_end

Actor = Callable[
    [Batched, IntArray, CompactObservation, FloatArray], IntArray
]  # (simulator, episodes, observed, draws) -> actions


class Decisions(NamedTuple):
    """D decisions of B episodes, in order within each episode."""

    observed: CompactObservation  # [D]
    action: IntArray  # [D]
    episode: IntArray  # [D]
    turn: IntArray  # [D]  number of the decision in its episode, from 0
    now: IntArray  # [D]  simulated step
    rewards: FloatArray  # [B, steps]  of each simulated step

    def take(self, rows: slice) -> "Decisions":
        """Return a view of some decisions."""
        action, episode, turn, now = (column[rows] for column in self[1:5])
        return Decisions(self.observed.take(rows), action, episode, turn, now, self.rewards)

    def close_up(self, count: IntArray) -> int:
        """Close the gaps between episodes with equally many places, of which `count` [B] are used; return the sum."""
        places = len(self.action) // len(count)
        if count.min() < places:
            for column in (*self.observed, *self[1:5]):
                _move_up(column.reshape(len(column), -1), count, places)
        return int(count.sum())


@njit(cache=True)
def _move_up(column: IntArray | BoolArray, count: IntArray, places: int) -> None:
    to = 0
    for i in range(len(count)):
        for k in range(i * places, i * places + count[i]):
            for c in range(column.shape[1]):
                column[to, c] = column[k, c]
            to += 1


class ActionBuffer(NamedTuple):
    """The columns of Decisions that a kernel writes in addition to observations."""

    action: IntArray  # [D]
    episode: IntArray  # [D]
    turn: IntArray  # [D]
    now: IntArray  # [D]


class DecisionBuffer:
    """Arrays for decisions, which grow by a quarter and are reused by the next rollout."""

    def __init__(self) -> None:
        self._kept: Decisions | None = None

    def reserve(self, simulator: Batched, used: int, more: int) -> Decisions:
        """Return arrays for at least `used + more` decisions; the first `used` keep their values."""
        kept, needed = self._kept, used + more
        if (
            kept is None
            or needed > len(kept.action)
            or kept.observed.cells.shape[1] != simulator.compact_buffer(0).cells.shape[1]
        ):
            size = max(needed, used + used // 4, 1024)
            action, episode, step, now = np.empty((4, size), dtype=np.int32)
            fresh = Decisions(simulator.compact_buffer(size), action, episode, step, now, np.empty((0, 0)))
            if kept is not None and used:
                for old, new in zip((*kept.observed, *kept[1:5]), (*fresh.observed, *fresh[1:5]), strict=True):
                    new[:used] = old[:used]
            self._kept = kept = fresh
        return kept

    def filled(self, simulator: Batched, used: int) -> Decisions:
        """Return the first `used` decisions: those of all episodes of a simulator.

        Raises:
            UserError: there are no decisions.
        """
        if self._kept is None or not used:
            raise UserError("the jobsets leave no decision to learn from: train on higher loads")
        return self._kept.take(slice(0, used))._replace(rewards=simulator.rewards[:, : int(simulator.now.max())])


def record(simulator: Batched, actor: Actor, key: KeyArray, buffer: DecisionBuffer | None = None) -> Decisions:
    """Play every episode to its end and keep all decisions.

    Args:
        simulator: at the beginning of its episodes, so that every running episode decides in each lock step.
        actor: chooses the actions.
        key: random key [B] of each episode.
        buffer: holds the decisions until its next use.

    Raises:
        UserError: there was no decision.
    """
    buffer, used, turn = buffer or DecisionBuffer(), 0, 0

    def advance(rows: IntArray) -> None:
        nonlocal used, turn
        written, here = buffer.reserve(simulator, used, len(rows)), slice(used, used + len(rows))
        observed = written.observed.take(here)
        simulator.observe_compact(rows, observed)
        actions = actor(simulator, rows, observed, uniform(key[rows], np.array(turn)))
        written.action[here], written.episode[here], written.turn[here] = actions, rows, turn
        written.now[here] = simulator.now[rows]
        simulator.step(rows, actions)
        used, turn = used + len(rows), turn + 1

    for _ in to_end(simulator, advance):
        pass
    return buffer.filled(simulator, used)


def by_policy(policy: Policy) -> Actor:
    """Return an actor that calls a policy with complete observations."""
    return lambda simulator, rows, observed, draws: policy(simulator.observe(rows), draws)


def by_rule(rule: CompiledRule, key: KeyArray) -> Actor:
    """Return an actor that calls a compiled rule; `key` [B] seeds its draws."""
    who = players([rule] * len(key), key)
    return lambda simulator, rows, observed, draws: simulator.decide(rows, who)


def by_chance(forward: Forward[CompactObservation], masked: bool) -> Actor:
    """Return an actor that samples the actions of a network."""
    return lambda simulator, rows, observed, draws: sample(forward(observed), observed.may, masked, draws)
