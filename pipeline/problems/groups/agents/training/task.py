"""The learner's task, and the replay memory of its decisions."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import torch

from pipeline.core.config import DqnRecipe, EvolutionRecipe, Replay
from pipeline.core.types import BoolArray, FloatArray, IntArray, KeyArray, keys
from pipeline.problems.groups.agents.networks.features import Shape, States, states
from pipeline.problems.groups.env.nouns import Configurations, Jobs, SharedCluster, batch
from pipeline.problems.groups.env.simulator.batch import GroupsSimulator
from pipeline.problems.groups.env.simulator.rewards import WAITING, Transition

FIELDS = ("features", "amounts", "share", "order", "reward", "next", "written")
PENDING, OVER = -2, -1  # next state: not yet known; none, as the episode was over
MOST_JOBSETS = 100_000  # per update; keeps the random keys of updates apart

Kind = TypeVar("Kind", DqnRecipe, EvolutionRecipe)


class Transitions(NamedTuple):
    """N decisions with their rewards and next states."""

    state: States  # [N, G, .]
    share: FloatArray  # [N, G, R]  units that were given
    order: IntArray  # [N, G]
    reward: FloatArray  # [N, G]
    then: States  # [N, G, .]  one interval later; meaningless where `over`
    over: BoolArray  # [N]     was the episode over?


class ReplayMemory:
    """Ring buffer of cluster states; each links to the next one of its episode, which is overwritten later."""

    def __init__(self, size: int, groups: int, shape: Shape) -> None:
        self._features = np.zeros((size, groups, shape.features), dtype=np.float32)
        self._amounts = np.zeros((size, groups, shape.amounts), dtype=np.float32)
        self._share = np.zeros((size, groups, shape.resources), dtype=np.float32)
        self._order = np.zeros((size, groups), dtype=np.int8)
        self._reward = np.zeros((size, groups), dtype=np.float32)
        self._next = np.full(size, PENDING, dtype=np.int64)  # place of the next state, PENDING or OVER
        self._written = np.zeros(1, dtype=np.int64)

    def __len__(self) -> int:
        """Return the number of decisions with a known next state."""
        return int((self._next != PENDING).sum())

    def add(self, state: States, share: IntArray, order: IntArray) -> IntArray:
        """Store decisions in D states; return their indices [D].

        Raises:
            ValueError: the memory is too small for the decisions.
        """
        count, size = len(state.features), len(self._next)
        if 2 * count > size:
            raise ValueError(f"{count} decisions at once; a memory of {size} cannot keep their next states")
        place = (self._written[0] + np.arange(count)) % size
        self._features[place], self._amounts[place] = state
        self._share[place], self._order[place], self._next[place] = share, order, PENDING
        self._written += count
        return np.asarray(place)

    def reward(self, place: IntArray, reward: FloatArray, over: BoolArray) -> None:
        """Store the rewards [D, G] of decisions, and which episodes [D] are over."""
        self._reward[place], self._next[place] = reward, np.where(over, OVER, PENDING)

    def follow(self, place: IntArray, then: IntArray) -> None:
        """Link decisions to the next ones in the same episodes."""
        self._next[place] = then

    def sample(self, rng: np.random.Generator, count: int) -> Transitions:
        """Return `count` decisions drawn uniformly."""
        known = np.flatnonzero(self._next != PENDING)
        return self.take(known[rng.integers(0, len(known), count)])

    def all(self) -> Transitions:
        """Return all decisions."""
        return self.take(np.flatnonzero(self._next != PENDING))

    def take(self, some: IntArray) -> Transitions:
        """Return some decisions by their indices."""
        over = self._next[some] == OVER
        then = np.where(over, some, self._next[some])
        state, after = (States(self._features[at], self._amounts[at]) for at in (some, then))
        order = self._order[some].astype(np.int64)
        return Transitions(state, self._share[some], order, self._reward[some], after, over)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return the state."""
        return {name: torch.from_numpy(getattr(self, f"_{name}")) for name in FIELDS}

    def load_state_dict(self, state: dict[str, torch.Tensor], /) -> None:
        """Restore a state."""
        for name in FIELDS:
            getattr(self, f"_{name}")[...] = state[name].numpy()


class Task(NamedTuple):
    """A cluster to control."""

    cluster: SharedCluster
    configurations: Configurations
    objective: str  # a key of WAITING
    recipe: DqnRecipe | EvolutionRecipe
    generator: Replay | None  # settings of pre-training on replayed jobsets
    seed: int
    loads: Sequence[int]  # to train on, in percent
    train: Mapping[int, Sequence[Jobs]]  # by load, as `generate` wrote them
    validation: Mapping[int, Sequence[Jobs]]
    fresh: Callable[[int, int], Jobs]  # (load, number) -> a training jobset that `generate` did not write

    def recipe_for(self, kind: type[Kind]) -> Kind:
        """Return the recipe; raise TypeError if it is of another kind."""
        if not isinstance(self.recipe, kind):
            raise TypeError(f"expected a {kind.__name__}, got a {type(self.recipe).__name__}")
        return self.recipe

    def begin(self, jobsets: Sequence[Jobs]) -> GroupsSimulator:
        """Return a simulator of some jobsets, with the costs of the objective."""
        jobs = batch(jobsets)
        return GroupsSimulator(jobs, self.cluster, WAITING[self.objective](jobs))

    def replayed(self, config: Replay) -> list[Jobs]:
        """Return the training jobsets to replay, cycling through the loads."""
        loads = config.loads
        return [self.train[loads[k % len(loads)]][k // len(loads)] for k in range(config.jobsets)]

    def draw(self, update: int, count: int) -> tuple[list[Jobs], KeyArray]:
        """Return `count` new jobsets for an update, cycling through the loads, and the random key of each."""
        loads = self.loads
        jobsets = [self.fresh(loads[k % len(loads)], update * count + k) for k in range(count)]
        numbers = update * MOST_JOBSETS + np.arange(count)
        return jobsets, keys(self.seed, numbers, np.ones(count, dtype=np.int64))


class Recorder:
    """Writes the decisions of episodes into a replay memory, interval by interval."""

    def __init__(self, memory: ReplayMemory, cluster: SharedCluster, episodes: int) -> None:
        self._memory, self._cluster = memory, cluster
        self._last: IntArray = np.full(episodes, -1, dtype=np.int64)

    def note(self, transition: Transition) -> None:
        """Store one interval of the current episodes."""
        place = self._memory.add(states(transition.view, self._cluster), *transition.setting)
        before = self._last[transition.rows]
        followed = before >= 0
        self._memory.follow(before[followed], place[followed])
        self._memory.reward(place, transition.reward, transition.over)
        self._last[transition.rows] = place
