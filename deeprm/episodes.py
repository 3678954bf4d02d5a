"""The episodes of one or many environments, as rows of one simulator.

Every environment has two rows: one is played, the other waits with its next episode. When an environment needs one that
is not ready, all that are not ready are drawn at once, so that the cost of a reset is shared by hundreds.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium.utils import seeding

from deeprm.games import Game, Jobs, Observations
from pipeline.core import BoolArray, FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.simulation.outcomes import jobset_means, outcome_of

JOBSETS = 1000  # training jobsets of each load that are drawn from
KEPT = 4_000_000  # jobs of drawn jobsets that are kept in memory
SPLITS = ("train", "validation", "test")
OPTIONS = ("load", "jobset", "split")


class Taken(NamedTuple):
    """What one decision in each of n environments led to."""

    reward: FloatArray  # [n]
    elapsed: FloatArray  # [n]  simulated time
    over: BoolArray  # [n]
    cut: BoolArray  # [n]     of those that are over: by the limit of simulated time


class Episodes:
    """The present and the next episode of each of n environments, which draw from random numbers of their own."""

    def __init__(self, game: Game, count: int, load: int | None = None, illegal: str = "void") -> None:
        if illegal not in ("void", "raise"):
            raise UserError(f"illegal: expected void or raise, got '{illegal}'")
        self.game, self.count, self.load = game, count, load
        if load is not None:
            self._check_load(load)
        self._raises = illegal == "raise"
        self.random = [seeding.np_random()[0] for _ in range(count)]
        self.illegal = np.zeros(count, dtype=np.int64)  # actions of this episode
        self.mask = np.ones((count, 0), dtype=np.bool_)
        self._side = np.zeros(count, dtype=np.int64)  # which row is played
        self._ready = np.zeros(count, dtype=np.bool_)  # does the other hold the next episode?
        self._drawn: list[int | None] = [None] * count  # the number that the next episode was drawn by
        self._known: dict[tuple[str, int, int], Jobs] = {}
        self._room = 0

    def seed(self, environment: int, seed: int) -> None:
        """Begin an environment's random numbers again."""
        self.random[environment] = seeding.np_random(seed)[0]
        self._drawn[environment], self._ready[environment] = None, False

    def begin(self, which: IntArray, options: Mapping[str, Any] | None = None) -> None:
        """Go to the next episode in some environments; options hold for these episodes only."""
        if options:
            self._stage(which, options)
        elif not self._ready[which].all():
            self._stage(np.flatnonzero(~self._ready), {})
        self._side[which] = 1 - self._side[which]
        self._ready[which] = False
        self.illegal[which] = 0
        for environment in which:
            self._drawn[environment] = None

    @property
    def rows(self) -> IntArray:
        """Return the row [n] of the simulator that each environment plays."""
        return 2 * (np.arange(self.count) + self.count * self._side)

    def observe(self) -> Observations:
        """Return what is seen in all environments, and note what is legal."""
        seen, self.mask = self.game.look(self.simulator, self.rows)
        return seen

    def step(self, which: IntArray, actions: IntArray) -> Taken:
        """Carry out one action in each of some environments.

        Raises:
            ValueError: an action is out of the action space; or illegal, where that raises.
        """
        rows, actions = self.rows[which], self._legal(which, np.asarray(actions, dtype=np.int64))
        simulator = self.simulator
        gained, now = simulator.gained[rows], simulator.now[rows].astype(np.float64)
        simulator.step(rows, self.game.decode(actions))
        over, cut = simulator.ended(rows)
        return Taken(simulator.gained[rows] - gained, simulator.now[rows] - now, over, cut)

    def metrics(self, which: IntArray) -> dict[str, FloatArray]:
        """Return what became of the jobs in some environments, each number [n]."""
        played = self.simulator.played(self.rows[which])
        found = outcome_of(played, played.start, played.finish, played.end)
        means = {name: getattr(found, name) for name in ("slowdown", "bounded_slowdown", "wait")}
        return {
            "jobs": np.diff(played.first).astype(np.float64),
            "unfinished": np.add.reduceat(found.unfinished, played.first[:-1], dtype=np.float64),
            "end": played.end.astype(np.float64),
            **{f"mean_{name}": jobset_means(played, value) for name, value in means.items()},
        }

    def _legal(self, which: IntArray, actions: IntArray) -> IntArray:
        """Return the actions, void in place of illegal ones, which are counted."""
        space = self.game.action_space
        most = getattr(space, "n", None) or getattr(space, "nvec", None)
        wrong = ((actions < 0) | (actions >= most)).reshape(len(which), -1).any(axis=1)
        if wrong.any():
            raise ValueError(f"action {actions[wrong][0]} is outside of {space}")
        if actions.ndim > 1:
            return actions
        illegal = ~self.mask[which, actions]
        if not illegal.any():
            return actions
        if self._raises:
            raise ValueError(f"action {actions[illegal][0]} is illegal; the mask allows {self._allowed(which[illegal])}")
        self.illegal[which] += illegal
        return np.where(illegal, self.mask.shape[1] - 1, actions)

    def _allowed(self, which: IntArray) -> list[int]:
        return [int(action) for action in np.flatnonzero(self.mask[which[0]])]

    def _stage(self, which: IntArray, options: Mapping[str, Any]) -> None:
        """Write the next episode of some environments into the rows that are not played."""
        jobsets = [self._next(int(environment), options) for environment in which]
        longest = max(places(jobs) for jobs in jobsets)
        if longest >= self._room:
            self._make_room(jobsets[0], longest + longest // 4 + 16)
        source = self.game.simulator(jobsets)
        rows = 2 * (which + self.count * (1 - self._side[which]))
        self.simulator.overwrite(rows, source, np.arange(len(which)))
        self._ready[which] = True

    def _make_room(self, jobs: Jobs, room: int) -> None:
        """Make a simulator whose episodes have room for more jobs; it goes on with those that are being played."""
        larger, rows = self.game.simulator([jobs] * (2 * self.count), room), 2 * np.arange(2 * self.count)
        if self._room:
            larger.overwrite(rows, self.simulator, rows)
        else:
            larger.overwrite(rows, self.game.simulator([jobs]), np.zeros(len(rows), dtype=np.int64))
        self.simulator, self._room = larger, room

    def _next(self, environment: int, options: Mapping[str, Any]) -> Jobs:
        """Return the jobset of an environment's next episode."""
        for key in options:
            if key not in OPTIONS:
                raise UserError(f"options: expected keys {', '.join(OPTIONS)}, got '{key}'")
        drawn = self._drawn[environment]
        if drawn is None:
            drawn = self._drawn[environment] = int(self.random[environment].integers(2**62))
        loads: Sequence[int] = self.game.loads if self.load is None else (self.load,)
        load = options.get("load", loads[drawn % len(loads)])
        self._check_load(load)
        return self._jobset(options.get("split", "train"), load, options.get("jobset", drawn // len(loads)), options)

    def _jobset(self, split: str, load: int, number: int, options: Mapping[str, Any]) -> Jobs:
        if split not in SPLITS:
            raise UserError(f"options: split: expected one of {', '.join(SPLITS)}, got '{split}'")
        several = range(JOBSETS) if split == "train" else self.game.split(split)[load]
        if "jobset" in options and not 0 <= number < len(several):
            raise UserError(f"options: jobset: expected 0 to {len(several) - 1} of split {split}, got {number}")
        number %= len(several)
        if split != "train":
            return self.game.split(split)[load][number]
        key = (split, load, number)
        if key not in self._known:
            if len(self._known) * self._room > KEPT:
                self._known.clear()
            self._known[key] = self.game.source.fresh(load, number)
        return self._known[key]

    def _check_load(self, load: int) -> None:
        if load not in self.game.loads:
            raise UserError(f"load: expected one of {', '.join(map(str, self.game.loads))}, got {load}")


def places(jobs: Jobs) -> int:
    """Return the places that an episode needs: of its jobs, or of the machines that they hold."""
    nodes = getattr(jobs, "nodes", None)
    return max(len(jobs.arrival), 0 if nodes is None else int(nodes.sum()))
