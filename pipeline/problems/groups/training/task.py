"""What a controller's learner is given, and how decisions get into its replay memory."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.config import DqnRecipe, Replay
from pipeline.core import IntArray, KeyArray, keys
from pipeline.problems.groups.networks.features import states
from pipeline.problems.groups.nouns import Configurations, Jobs, SharedCluster, batch
from pipeline.problems.groups.simulator.compiled.batch import Groups
from pipeline.problems.groups.simulator.rewards import WAITING, Transition
from pipeline.problems.groups.training.replay_memory import ReplayMemory

MOST_JOBSETS = 100_000  # of an update; keeps the random keys of updates apart


class Task(NamedTuple):
    """A cluster to control."""

    cluster: SharedCluster
    configurations: Configurations
    objective: str  # a word of WAITING
    recipe: DqnRecipe
    generator: Replay | None  # how the replay memory is filled before anything is tried out
    seed: int
    loads: Sequence[int]  # to train on, in percent
    train: Mapping[int, Sequence[Jobs]]  # by load, as `generate` wrote them
    validation: Mapping[int, Sequence[Jobs]]
    fresh: Callable[[int, int], Jobs]  # (load, number) -> a training jobset that `generate` did not write

    def begin(self, jobsets: Sequence[Jobs]) -> Groups:
        """Return a simulator of some jobsets, with the costs of the objective."""
        jobs = batch(jobsets)
        return Groups(jobs, self.cluster, WAITING[self.objective](jobs))

    def draw(self, update: int, count: int) -> tuple[list[Jobs], KeyArray]:
        """Return `count` new jobsets for an update, the loads in turn, and the random key of each."""
        loads = self.loads
        jobsets = [self.fresh(loads[k % len(loads)], update * count + k) for k in range(count)]
        numbers = update * MOST_JOBSETS + np.arange(count)
        return jobsets, keys(self.seed, numbers, np.ones(count, dtype=np.int64))


class Recorder:
    """Writes the decisions of episodes, one interval after the other, into a replay memory."""

    def __init__(self, memory: ReplayMemory, cluster: SharedCluster, episodes: int) -> None:
        self._memory, self._cluster = memory, cluster
        self._last: IntArray = np.full(episodes, -1, dtype=np.int64)

    def note(self, transition: Transition) -> None:
        """Keep one interval of the episodes that were going."""
        place = self._memory.add(states(transition.view, self._cluster), *transition.setting)
        before = self._last[transition.rows]
        followed = before >= 0
        self._memory.follow(before[followed], place[followed])
        self._memory.reward(place, transition.reward, transition.over)
        self._last[transition.rows] = place
