"""Task: the input of every learning algorithm."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pipeline.core.config import EvolutionRecipe, Recipe
from pipeline.core.config.pool.learning import StreamPieces
from pipeline.problems.pool.env.nouns import Cluster, JobSet

Draw = Callable[[int], Sequence[JobSet]]  # update -> its jobsets
Piece = Callable[[str, int, int, int], JobSet]  # (split, load, number, steps) -> the beginning of a stream


class Task(NamedTuple):
    """A scheduling problem to learn, and a recipe."""

    cluster: Cluster
    step_limit: int  # where an episode is cut
    objective: str  # name of the reward of each step, a key of REWARDS
    recipe: Recipe | EvolutionRecipe
    seed: int
    loads: Sequence[int]  # to train on, in percent
    train: Mapping[int, Sequence[JobSet]]  # by load, as `generate` wrote them
    validation: Mapping[int, Sequence[JobSet]]
    fresh: Callable[[int, int], JobSet]  # (load, number) -> a training jobset that `generate` did not write
    stream: Piece
    streams: StreamPieces | None = None  # learned in addition to short runs

    @property
    def gradient(self) -> Recipe:
        """The recipe of an agent that learns by policy gradient."""
        assert isinstance(self.recipe, Recipe)
        return self.recipe


def fresh(task: Task, count: int) -> Draw:
    """Return a function that draws `count` new jobsets for every update, cycling through the loads."""
    loads = task.loads
    return lambda update: [task.fresh(loads[k % len(loads)], k) for k in range(update * count, (update + 1) * count)]


def fixed(task: Task, count: int) -> Draw:
    """Return a function that returns the same `count` stored training jobsets in every update."""
    chosen = in_turn(task.train, task.loads, count)
    return lambda update: chosen


def in_turn(written: Mapping[int, Sequence[JobSet]], loads: Sequence[int], count: int) -> list[JobSet]:
    """Return `count` stored jobsets, cycling through the loads; fewer where a log has fewer windows.

    >>> in_turn({10: ["a", "b"], 20: ["c"]}, [10, 20], count=4)  # any rows will do
    ['a', 'c', 'b']
    """
    places = [(loads[k % len(loads)], k // len(loads)) for k in range(count)]
    return [written[load][place] for load, place in places if place < len(written[load])]


JOBSETS: dict[str, Callable[[Task, int], Draw]] = {"fresh": fresh, "fixed": fixed}
