"""Replay memory D of Algorithm 1: the latest decisions of the whole cluster, all groups of each together."""

from typing import NamedTuple

import numpy as np
import torch

from pipeline.core import BoolArray, FloatArray, IntArray
from pipeline.problems.groups.networks.features import Shape, States


class Transitions(NamedTuple):
    """N decisions, and what came of them."""

    state: States  # [N, G, .]
    share: FloatArray  # [N, G, R]  units that were given
    order: IntArray  # [N, G]
    reward: FloatArray  # [N, G]
    then: States  # [N, G, .]  one interval later; meaningless where it was over
    over: BoolArray  # [N]


class ReplayMemory:
    """A ring of cluster states; each but the newest of an episode has a next one, which is overwritten after it."""

    def __init__(self, size: int, groups: int, shape: Shape) -> None:
        self._features = np.zeros((size, groups, shape.features), dtype=np.float32)
        self._amounts = np.zeros((size, groups, shape.amounts), dtype=np.float32)
        self._share = np.zeros((size, groups, shape.resources), dtype=np.float32)
        self._order = np.zeros((size, groups), dtype=np.int8)
        self._reward = np.zeros((size, groups), dtype=np.float32)
        self._next = np.full(size, PENDING, dtype=np.int64)  # place of the next state, or one of the words below
        self._written = np.zeros(1, dtype=np.int64)

    def __len__(self) -> int:
        """Return how many decisions can be learned from."""
        return int((self._next != PENDING).sum())

    def add(self, state: States, share: IntArray, order: IntArray) -> IntArray:
        """Keep decisions in D states; return their places [D].

        Raises:
            ValueError: there are more of them than the memory holds.
        """
        count, size = len(state.features), len(self._next)
        if 2 * count > size:
            raise ValueError(f"{count} decisions at once; a memory of {size} cannot keep what comes of them")
        place = (self._written[0] + np.arange(count)) % size
        self._features[place], self._amounts[place] = state
        self._share[place], self._order[place], self._next[place] = share, order, PENDING
        self._written += count
        return np.asarray(place)

    def reward(self, place: IntArray, reward: FloatArray, over: BoolArray) -> None:
        """Keep what came of decisions: rewards [D, G], and which episodes [D] are over."""
        self._reward[place], self._next[place] = reward, np.where(over, OVER, PENDING)

    def follow(self, place: IntArray, then: IntArray) -> None:
        """Say which decision came after another, in the same episodes."""
        self._next[place] = then

    def sample(self, rng: np.random.Generator, count: int) -> Transitions:
        """Return `count` decisions drawn with equal chances."""
        known = np.flatnonzero(self._next != PENDING)
        some = known[rng.integers(0, len(known), count)]
        return self.take(some)

    def all(self) -> Transitions:
        """Return all decisions."""
        return self.take(np.flatnonzero(self._next != PENDING))

    def take(self, some: IntArray) -> Transitions:
        """Return some decisions by their places."""
        over = self._next[some] == OVER
        then = np.where(over, some, self._next[some])
        state, after = (States(self._features[at], self._amounts[at]) for at in (some, then))
        return Transitions(
            state, self._share[some], self._order[some].astype(np.int64), self._reward[some], after, over
        )

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return the state."""
        return {name: torch.from_numpy(getattr(self, f"_{name}")) for name in FIELDS}

    def load_state_dict(self, state: dict[str, torch.Tensor], /) -> None:
        """Take a state over."""
        for name in FIELDS:
            getattr(self, f"_{name}")[...] = state[name].numpy()


FIELDS = ("features", "amounts", "share", "order", "reward", "next", "written")
PENDING, OVER = -2, -1  # the next state is not known yet; the episode was over after it
