"""The episodes of one or many environments, as rows of one simulator.

Every environment has two rows: one is played, the other holds its next episode. When an environment needs an episode
that is not ready, all missing ones are drawn at once, so that hundreds of environments share the cost of a reset.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numba
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding

from deeprm.games import Game, Jobs, Observations
from pipeline.core.types import SPLITS, BoolArray, FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.simulation.results import outcome_of

JOBSETS = 1000  # training jobsets of each load
KEPT = 4_000_000  # jobs of drawn jobsets that are kept in memory
AHEAD = 16  # random numbers that an environment draws at once if there are several environments
OPTIONS = ("load", "jobset", "split")
FEW = 256  # environments; with fewer, waking a second thread takes longer than it saves


@contextmanager
def few_threads(count: int) -> Iterator[None]:
    """Use one thread for few environments."""
    before = numba.get_num_threads()
    numba.set_num_threads(1 if count < FEW else before)
    try:
        yield
    finally:
        numba.set_num_threads(before)


class Taken(NamedTuple):
    """Effects of one decision in each of n environments."""

    reward: FloatArray  # [n]
    elapsed: FloatArray  # [n]  simulated time
    over: BoolArray  # [n]
    cut: BoolArray  # [n]  over because of the limit of simulated time


class Episodes:
    """The present and the next episode of n environments, each with its own random numbers."""

    def __init__(self, game: Game, count: int, load: int | None = None, illegal: str = "void") -> None:
        if illegal not in ("void", "raise"):
            raise UserError(f"illegal: expected void or raise, got '{illegal}'")
        self.game, self.count, self.load = game, count, load
        if load is not None:
            self._check_load(load)
        self._raises = illegal == "raise"
        self.random = [seeding.np_random()[0] for _ in range(count)]
        self.illegal = np.zeros(count, dtype=np.int64)  # illegal actions in the present episode
        self.mask = np.ones((count, 0), dtype=np.bool_)
        self._side = np.zeros(count, dtype=np.int64)  # the row that is played, 0 or 1
        self._ready = np.zeros(count, dtype=np.bool_)  # does the other row hold the next episode?
        self._numbers: list[list[int]] = [[] for _ in range(count)]  # drawn for the next episodes, the next one last
        self._known: dict[tuple[int, int], tuple[Jobs, int]] = {}  # jobsets by load and number, with the places needed
        self._room = 0
        self.simulator: Any  # of the game's problem, made for the first episodes

    def seed(self, environment: int, seed: int) -> None:
        """Restart an environment's random numbers."""
        self.random[environment] = seeding.np_random(seed)[0]
        self._numbers[environment], self._ready[environment] = [], False

    def begin(self, which: IntArray, options: Mapping[str, Any] | None = None) -> None:
        """Begin the next episode in some environments; options apply only to these episodes."""
        if options:
            self._prepare(which, options)
        elif not self._ready[which].all():
            self._prepare(np.flatnonzero(~self._ready), {})
        self._side[which] = 1 - self._side[which]
        self._ready[which] = False
        self.illegal[which] = 0
        for environment in which:
            self._numbers[environment].pop()

    @property
    def rows(self) -> IntArray:
        """Return the row [n] of the simulator that each environment plays."""
        return 2 * (np.arange(self.count) + self.count * self._side)

    def observe(self) -> Observations:
        """Return the observations of all environments, and update the mask."""
        seen, self.mask = self._look(self.rows)
        return seen

    def observe_again(self, seen: Observations, which: IntArray) -> None:
        """Overwrite the observations of some environments, and update their mask."""
        some, legal = self._look(self.rows[which])
        self.mask = self.mask.copy()  # the caller has the old one
        self.mask[which] = legal
        for name, value in some.items():
            seen[name][which] = value

    def _look(self, rows: IntArray) -> tuple[Observations, BoolArray]:
        with few_threads(self.count):
            return self.game.look(self.simulator, rows)

    def step(self, which: IntArray, actions: IntArray) -> Taken:
        """Apply one action in each of some environments; ValueError if it is outside of the space, or refused."""
        rows, actions = self.rows[which], self._legal(which, np.asarray(actions, dtype=np.int64))
        simulator = self.simulator
        gained, now = simulator.gained[rows], simulator.now[rows].astype(np.float64)
        with few_threads(self.count):
            simulator.step(rows, self.game.decode(actions))
        over, cut = simulator.ended(rows)
        return Taken(simulator.gained[rows] - gained, simulator.now[rows] - now, over, cut)

    def metrics(self, which: IntArray) -> dict[str, FloatArray]:
        """Return metrics of the jobs in some environments, each [n]."""
        played, measured = self.simulator.played(self.rows[which]), self.game.measured
        if measured is not None:
            played = played.only((played.arrival >= measured[0]) & (played.arrival < measured[1]))
        found = outcome_of(played, played.start, played.finish, played.end.astype(np.float64))
        jobs, first = np.diff(played.first).astype(np.float64), played.first[:-1]
        means = {"slowdown": found.slowdown, "bounded_slowdown": found.bounded_slowdown, "wait": found.wait}
        return {
            "jobs": jobs,
            "unfinished": np.add.reduceat(found.unfinished, first, dtype=np.float64),
            "end": played.end.astype(np.float64),
            **{f"mean_{name}": np.add.reduceat(value, first) / jobs for name, value in means.items()},
        }

    def _legal(self, which: IntArray, actions: IntArray) -> IntArray:
        """Replace illegal actions by void, and count them."""
        space = self.game.action_space
        most = space.n if isinstance(space, spaces.Discrete) else space.nvec
        wrong = ((actions < 0) | (actions >= most)).reshape(len(which), -1).any(axis=1)
        if wrong.any():
            raise ValueError(f"action {actions[wrong][0]} is outside of {space}")
        if actions.ndim > 1:
            return actions
        illegal = ~self.mask[which, actions]
        if not illegal.any():
            return actions
        if self._raises:
            allowed = np.flatnonzero(self.mask[which[illegal][0]]).tolist()
            raise ValueError(f"action {actions[illegal][0]} is illegal; the mask allows {allowed}")
        self.illegal[which] += illegal
        return np.where(illegal, self.mask.shape[1] - 1, actions)

    def _prepare(self, which: IntArray, options: Mapping[str, Any]) -> None:
        """Write the next episode of some environments into the rows that are not played."""
        loads: Sequence[int] = self.game.loads if self.load is None else (self.load,)
        drawn = [self._draw(environment) for environment in which.tolist()]
        chosen = [(loads[number % len(loads)], number // len(loads)) for number in drawn]
        found = [self._requested(*one, options) if options else self._training(*one) for one in chosen]
        longest = max(room for _, room in found)
        rows = 2 * (which + self.count * (1 - self._side[which]))
        with few_threads(self.count):
            if longest >= self._room:
                self._make_room(found[0][0], longest + longest // 4 + 16)
            self.simulator.overwrite(rows, self.game.simulator([jobs for jobs, _ in found]), np.arange(len(which)))
        self._ready[which] = True

    def _make_room(self, jobs: Jobs, room: int) -> None:
        """Make a simulator with room for longer episodes, and copy the present ones into it."""
        larger, rows = self.game.simulator([jobs] * (2 * self.count), room), 2 * np.arange(2 * self.count)
        if self._room:
            larger.overwrite(rows, self.simulator, rows)
        else:
            larger.overwrite(rows, self.game.simulator([jobs]), np.zeros(len(rows), dtype=np.int64))
        self.simulator, self._room = larger, room

    def _draw(self, environment: int) -> int:
        """Draw the number of an environment's next episode; with many environments, several at once."""
        numbers = self._numbers[environment]
        if not numbers:
            ahead = self.random[environment].integers(2**62, size=AHEAD if self.count > 1 else 1)
            numbers.extend(ahead[::-1].tolist())
        return numbers[-1]

    def _training(self, load: int, number: int) -> tuple[Jobs, int]:
        """Return a training jobset, and the places that it needs."""
        key = load, number % JOBSETS
        if key not in self._known:
            if len(self._known) * self._room > KEPT:
                self._known.clear()
            jobs = self.game.source.fresh(*key)
            self._known[key] = jobs, _places(jobs)
        return self._known[key]

    def _requested(self, load: int, number: int, options: Mapping[str, Any]) -> tuple[Jobs, int]:
        """Return the jobset that the options name; missing options are drawn, wrong ones raise UserError."""
        for key in options:
            if key not in OPTIONS:
                raise UserError(f"options: expected keys {', '.join(OPTIONS)}, got '{key}'")
        split, load = options.get("split", "train"), options.get("load", load)
        if split not in SPLITS:
            raise UserError(f"options: split: expected one of {', '.join(SPLITS)}, got '{split}'")
        self._check_load(load)
        several = JOBSETS if split == "train" else len(self.game.split(split)[load])
        chosen = options.get("jobset", number % several)
        if not 0 <= chosen < several:
            raise UserError(f"options: jobset: expected 0 to {several - 1} of split {split}, got {chosen}")
        if split == "train":
            return self._training(load, chosen)
        jobs = self.game.split(split)[load][chosen]
        return jobs, _places(jobs)

    def _check_load(self, load: int) -> None:
        if load not in self.game.loads:
            raise UserError(f"load: expected one of {', '.join(map(str, self.game.loads))}, got {load}")


def _places(jobs: Jobs) -> int:
    """Return the places that an episode needs: its jobs, or the machines that they hold."""
    nodes = getattr(jobs, "nodes", None)
    return max(len(jobs.arrival), 0 if nodes is None else int(nodes.sum()))
