"""Protocol of every compiled simulator: many episodes of one problem, played in parallel.

Between two decisions an episode collects reward and time passes; the differences of `gained` and `now` are the reward
and the elapsed time of a decision. Rows are reusable: `overwrite` replaces episodes with those of another simulator.
"""

from collections.abc import Callable, Collection
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from pipeline.core.types import BoolArray, FloatArray, IntArray, TimeArray

Seen_co = TypeVar("Seen_co", covariant=True)  # an observation of some episodes
Actions_contra = TypeVar("Actions_contra", contravariant=True)  # one decision in each of them
Players = TypeVar("Players")  # the compiled heuristic of each episode
Time = TypeVar("Time", bound=TimeArray)
Batch = TypeVar("Batch", bound=tuple[Any, ...])  # jobs of a problem: `first` [B + 1], then columns [J]


class Played(NamedTuple):
    """Concatenated jobs of some episodes, and their outcomes so far."""

    first: IntArray  # [B + 1]  as in the batches of every problem
    arrival: TimeArray  # [J]
    duration: TimeArray  # [J]
    start: FloatArray  # [J]      nan = not started
    finish: FloatArray  # [J]      nan = not finished
    end: TimeArray  # [B]      current time; if the episode is over, its last time

    @property
    def episode(self) -> IntArray:
        """Return the episode [J] that owns each job."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def only(self, kept: BoolArray) -> "Played":
        """Return this record for the jobs `kept` [J]."""
        first = np.append(0, np.cumsum(kept))[self.first]
        of_jobs = (self.arrival[kept], self.duration[kept], self.start[kept], self.finish[kept])
        return Played(first, *of_jobs, self.end)


class Simulator(Protocol[Seen_co, Actions_contra]):
    """Episodes of one problem in parallel; those in `rows` await a decision. For rules: `rollout.CompiledEpisodes`."""

    @property
    def rows(self) -> IntArray:
        """Return the episodes [B'] that await a decision."""

    @property
    def now(self) -> TimeArray:
        """Return the time [B] of every episode, in its problem's unit."""

    @property
    def gained(self) -> FloatArray:
        """Return the reward [B] of every episode since its beginning, by the simulator's objective."""

    def observe(self, rows: IntArray) -> Seen_co:
        """Return the observations of some episodes, as copies."""

    def step(self, rows: IntArray, actions: Actions_contra) -> object:
        """Carry out one decision in each of some episodes."""

    def ended(self, rows: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return which of some episodes are over, and which of these were cut, with jobs left undone."""

    def played(self, rows: IntArray) -> Played:
        """Return the jobs of some episodes, with their outcomes so far."""

    def fork(self, rows: IntArray) -> Self:
        """Return independent copies of some episodes; repetitions are allowed."""

    def overwrite(self, rows: IntArray, source: Self, which: IntArray) -> None:
        """Replace episodes with copies of another simulator's; each must have enough room (`roomy`)."""


class Kernels(NamedTuple):
    """Compiled functions of (state, rules, rows, others); `step` and `play` return how many episodes are over."""

    step: Callable[..., int]  # (actions)
    decide: Callable[..., int]  # (players, actions: output); returns 0
    play: Callable[..., int]  # (players, maximum number of decisions)


class CompiledSimulator(Generic[Players, Time]):
    """Common part of the simulators whose policies place one job at a time."""

    kernels: ClassVar[Kernels]
    _state: Any
    _rules: Any
    _rows: IntArray

    @property
    def rows(self) -> IntArray:
        """Return the episodes that await a decision."""
        return self._rows

    @property
    def now(self) -> Time:
        """Return the time [B] of every episode; if it is over, its last time."""
        now: Time = self._state.now
        return now

    def ended(self, rows: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return which of some episodes are over, and which of these were cut."""
        s, over = self._state, self._state.done[rows]
        return over, over & (s.finished[rows] < s.first[rows + 1] - s.first[rows])

    def step(self, rows: IntArray, actions: IntArray) -> None:
        """Carry out one decision in each of some episodes."""
        self.run_kernel(self.kernels.step, rows, actions)

    def decide(self, rows: IntArray, who: Players) -> IntArray:
        """Return the next actions of compiled heuristics; the decisions are counted, but not carried out."""
        actions = np.empty(len(rows), dtype=np.int64)
        self.kernels.decide(self._state, self._rules, rows, who, actions)
        return actions

    def play(self, rows: IntArray, who: Players, most: int) -> None:
        """Let compiled heuristics play some episodes to their end, or for up to `most` decisions each."""
        self.run_kernel(self.kernels.play, rows, who, most)

    def run_kernel(self, kernel: Callable[..., int], rows: IntArray, *others: object) -> None:
        """Run a kernel on some episodes: (state, rules, rows, others) -> how many of them are over."""
        if kernel(self._state, self._rules, rows, *others):
            self._rows = np.flatnonzero(~self._state.done)


class Layout(NamedTuple):
    """Layout of a simulator's state; every field that is not listed has one entry per episode."""

    of_jobs: Collection[str]  # fields with one entry per job
    numbers: Collection[str]  # fields that hold job numbers; below 0 = none
    fixed: Collection[str]  # fields that belong to no episode
    sums: Collection[str] = ()  # fields [J + 1] of sums over the preceding jobs


def roomy(jobs: Batch, room: int) -> Batch:
    """Return a batch whose episodes can be overwritten by any that have fewer than `room` jobs.

    Each episode is followed by one that is never played and owns the unused places: episode b becomes 2 * b.
    """
    first: IntArray = jobs[0]
    places = np.arange(room) + np.zeros((len(first) - 1, 1), dtype=np.int64)
    places = (first[:-1, None] + np.minimum(places, np.diff(first)[:, None] - 1)).ravel()
    begins = np.arange(len(first) - 1) * room
    bounds = np.append(np.stack([begins, begins + np.diff(first)], axis=1).ravel(), len(places))
    make: Callable[..., Batch] = type(jobs)
    return make(bounds, *(None if column is None else column[places] for column in jobs[1:]))


def spans(first: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return the jobs of some episodes end to end, and the bounds [rows + 1] of each episode among them.

    >>> spans(np.array([0, 2, 5]), np.array([1, 0]))
    (array([2, 3, 4, 0, 1]), array([0, 3, 5]))
    """
    count = first[rows + 1] - first[rows]
    bounds = np.append(0, np.cumsum(count))
    return np.arange(bounds[-1]) + np.repeat(first[rows] - bounds[:-1], count), bounds


def copy_episodes(to: Any, rows: IntArray, source: Any, which: IntArray, layout: Layout) -> None:
    """Overwrite the episodes `rows` of a state with copies of the episodes `which` of another one."""
    shift = to.first[rows] - source.first[which]
    jobs, bounds = spans(source.first, which)
    each = np.repeat(shift, np.diff(bounds))
    to.first[rows + 1] = to.first[rows] + np.diff(bounds)
    for name, kept, new in zip(to._fields, to, source, strict=True):
        if name == "first" or name in layout.fixed or not len(new):
            continue
        if name in layout.sums:
            kept[to.first[rows]], kept[jobs + each + 1] = new[source.first[which]], new[jobs + 1]
            continue
        taken, places, by = (jobs, jobs + each, each) if name in layout.of_jobs else (which, rows, shift)
        value = new[taken]
        if name in layout.numbers:
            value = np.where(value >= 0, value + by.reshape(-1, *[1] * (value.ndim - 1)), value)
        kept[places] = value
