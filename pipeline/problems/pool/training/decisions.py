"""What was seen and done in every decision of many episodes, and what an update reports."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from pipeline.core import BoolArray, FloatArray, IntArray, KeyArray, Policy, uniform
from pipeline.errors import UserError
from pipeline.learning.sampling import sample
from pipeline.problems.pool.networks.network import Judge
from pipeline.problems.pool.nouns import Seen
from pipeline.problems.pool.simulator.compiled.batch import Batched

Actor = Callable[[Batched, IntArray, Seen, FloatArray], IntArray]  # (simulator, episodes, seen, draws) -> actions


class Decisions(NamedTuple):
    """D decisions of B episodes; those of one episode are in the order in which they were taken."""

    seen: Seen  # of D episodes
    action: IntArray  # [D]
    episode: IntArray  # [D]
    turn: IntArray  # [D]  place among the decisions of its episode
    now: IntArray  # [D]  simulated step
    rewards: FloatArray  # [B, steps]  of each simulated step

    def take(self, rows: slice) -> "Decisions":
        """Return some of them, not copied."""
        action, episode, turn, now = (column[rows] for column in self[1:5])
        return Decisions(self.seen.take(rows), action, episode, turn, now, self.rewards)

    def close_up(self, count: IntArray) -> int:
        """Move up the decisions of episodes that each have as much room, of which `count` is in use; return the sum."""
        room = len(self.action) // len(count)
        if count.min() < room:
            for column in (*self.seen, *self[1:5]):
                _move_up(column.reshape(len(column), -1), count, room)
        return int(count.sum())


@njit(cache=True)
def _move_up(column: IntArray | BoolArray, count: IntArray, room: int) -> None:
    place = 0
    for i in range(len(count)):
        for k in range(i * room, i * room + count[i]):
            for c in range(column.shape[1]):
                column[place, c] = column[k, c]
            place += 1


class Book:
    """Room for decisions, which grows by a quarter and is used again by the next roll-out."""

    def __init__(self) -> None:
        self._kept: Decisions | None = None

    def pages(self, simulator: Batched, used: int, more: int) -> Decisions:
        """Return room for at least `used + more` decisions, the first `used` of them as they were."""
        kept, needed = self._kept, used + more
        if kept is None or needed > len(kept.action) or kept.seen.cells.shape[1] != simulator.room(0).cells.shape[1]:
            size = max(needed, used + used // 4, 1024)
            action, episode, step, now = np.empty((4, size), dtype=np.int32)
            fresh = Decisions(simulator.room(size), action, episode, step, now, np.empty((0, 0)))
            if kept is not None and used:
                for old, new in zip((*kept.seen, *kept[1:5]), (*fresh.seen, *fresh[1:5]), strict=True):
                    new[:used] = old[:used]
            self._kept = kept = fresh
        return kept

    def all(self, simulator: Batched, used: int) -> Decisions:
        """Return the first `used` decisions, which are all of a simulator's episodes.

        Raises:
            UserError: there are none.
        """
        if self._kept is None or not used:
            raise UserError("the jobsets leave no decision to learn from: train on higher loads")
        return self._kept.take(slice(0, used))._replace(rewards=simulator.rewards[:, : int(simulator.now.max())])


def record(simulator: Batched, actor: Actor, key: KeyArray, book: Book | None = None) -> Decisions:
    """Play to the end of every episode and keep every decision that was asked for.

    Args:
        simulator: at the beginning of its episodes, so that in each lock step all that still go decide.
        actor: decides.
        key: random key [B] of each episode.
        book: where decisions are kept; they are lost when it is used again.

    Raises:
        UserError: nothing was asked for.
    """
    book, used, turn = book or Book(), 0, 0
    rows = simulator.rows
    while len(rows):
        page, here = book.pages(simulator, used, len(rows)), slice(used, used + len(rows))
        seen = page.seen.take(here)
        simulator.look(rows, seen)
        actions = actor(simulator, rows, seen, uniform(key[rows], np.array(turn)))
        page.action[here], page.episode[here], page.turn[here] = actions, rows, turn
        page.now[here] = simulator.now[rows]
        simulator.step(rows, actions)
        used, turn, rows = used + len(rows), turn + 1, simulator.rows
    return book.all(simulator, used)


def by_policy(policy: Policy) -> Actor:
    """Let a policy decide, from whole observations."""
    return lambda simulator, rows, seen, draws: policy(simulator.observe(rows), draws)


def by_chance(judge: Judge[Seen], masked: bool) -> Actor:
    """Let a network decide, each action drawn by its probability."""
    return lambda simulator, rows, seen, draws: sample(judge(seen), seen.may, masked, draws)
