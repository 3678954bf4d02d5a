"""Play policies on the same jobsets of many machines: all policies, loads and jobsets in parallel.

Compiled heuristics play without interruption; the other policies decide in lock step, all at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core.types import IntArray, KeyArray, Policy
from pipeline.problems.machines.env.evaluation.metrics import results
from pipeline.problems.machines.env.nouns import Jobs, Machines, Placed, end_to_end
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.env.simulator.rules import Players, players
from pipeline.progress import ShareCallback, no_progress
from pipeline.simulation.results import Results
from pipeline.simulation.rollout import (
    DECISIONS_AT_ONCE,
    MOST_ABREAST,
    InPlay,
    Insider,
    compiled_rule_of,
    numbered,
    play_all,
    play_compiled,
    play_together,
)

NUMBERS_ABREAST = 1 << 24  # in simulator and observations of all parallel episodes: 128 MiB


def score(
    policies: Mapping[str, Policy | Insider],
    jobsets: Mapping[int, Sequence[Jobs]],
    machines: Machines,
    seed: int,
    on_progress: ShareCallback = no_progress,
) -> dict[str, Results]:
    """Return the results of policies, by name, on jobsets by load."""
    game, load, number = game_of(jobsets, machines, seed)
    ends, jobs = played(game, list(policies.values()), on_progress), end_to_end(game.episodes)
    named = zip(policies, ends, strict=True)
    return {name: results(name, load, number, jobs, end, machines) for name, end in named}


class Game(NamedTuple):
    """Episodes for policies to play."""

    episodes: Sequence[Jobs]
    machines: Machines
    key: KeyArray  # [B]
    at_once: int = DECISIONS_AT_ONCE  # of compiled play between two progress reports

    @property
    def abreast(self) -> int:
        """Return how many episodes may be played in parallel."""
        number, resources = self.machines.capacity.shape
        pairs, longest = self.machines.slots * number, max(len(jobs.arrival) for jobs in self.episodes)
        each = 3 * pairs + 4 * number * resources + 20 * longest
        return max(1, min(MOST_ABREAST, int(NUMBERS_ABREAST // each)))


def game_of(jobsets: Mapping[int, Sequence[Jobs]], machines: Machines, seed: int) -> tuple[Game, IntArray, IntArray]:
    """Return jobsets by load as a game, and the load and number of each episode; see `score`."""
    episodes, load, number, key = numbered(jobsets, seed)
    return Game(episodes, machines, key), load, number


def played(game: Game, policies: Sequence[Policy | Insider], on_progress: ShareCallback) -> list[Placed]:
    """Return the placements of each policy."""

    def begin(episode: IntArray) -> InPlay[Players]:
        jobs = end_to_end([game.episodes[b] for b in episode])
        simulator = Simulator(jobs, game.machines, np.zeros(len(jobs.arrival)))  # rewards are not used
        return InPlay(simulator, len(jobs.arrival), simulator.placed)

    found = play_all(policies, game.key, game.abreast, begin, players, on_progress, game.at_once)
    return [Placed._make(columns) for columns in found]


def play_on(
    simulator: Simulator, policy: Policy | Insider, key: KeyArray, at_once: int = DECISIONS_AT_ONCE
) -> Iterator[int]:
    """Play a policy to the end, compiled if possible; yield the number of unfinished episodes from time to time.

    Args:
        simulator: at any point of its episodes.
        policy: decides in all of them.
        key: random key [B] of each episode.
        at_once: decisions of compiled play between two progress reports.
    """
    rule = compiled_rule_of(policy)
    if rule is None:
        return play_together(simulator, [policy], np.zeros(len(key), dtype=np.int64), key)
    return play_compiled(simulator, players([rule] * len(key), key), at_once)
