"""Let controllers control the same jobsets, and tell what became of jobs, of groups, and in some jobsets of intervals.

What a decision was worth is told in one measure for all: waiting time saved against the configuration before. What a
learned controller expected is told in its own, beside what then came of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.core import FloatArray, IntArray, KeyArray, uniform
from pipeline.problems.groups.evaluation.foresight import Act
from pipeline.problems.groups.evaluation.metrics import group_results, job_results, jobset_results
from pipeline.problems.groups.nouns import Controller, Jobs, Observation, Setting, SharedCluster, batch
from pipeline.problems.groups.simulator.compiled.batch import Groups
from pipeline.problems.groups.simulator.rewards import WAITING, Transition, transitions
from pipeline.progress import ShareCallback, no_progress
from pipeline.simulation.results import Results
from pipeline.simulation.rollout import numbered

SHOWN = 3  # jobsets of each load whose jobs and intervals are written one by one: all would be millions of rows


class Expectation(NamedTuple):
    """What a learned controller expects of its decisions, and in which measure."""

    value: Callable[[Observation], FloatArray]  # [B, G]  of what it sets
    objective: str  # a word of WAITING
    against: str  # a word of AGAINST
    gamma: float


class Player(NamedTuple):
    """A controller as it is scored."""

    act: Act
    expectation: Expectation | None = None  # of rules, none


def controlled(controller: Controller) -> Act:
    """Return a controller that only looks at what it is shown."""
    return lambda groups, rows, view, draws: Setting._make(controller(view, draws))


class Game(NamedTuple):
    """What every controller plays: B jobsets."""

    load: IntArray  # [B]
    number: IntArray  # [B]  of the jobset
    episodes: Sequence[Jobs]
    cluster: SharedCluster
    key: KeyArray  # [B]

    def some(self, rows: IntArray) -> "Game":
        """Return the game with some of the jobsets."""
        episodes = [self.episodes[b] for b in rows]
        return Game(self.load[rows], self.number[rows], episodes, self.cluster, self.key[rows])


def score(
    policies: Mapping[str, Player | Controller],
    jobsets: Mapping[int, Sequence[Jobs]],
    cluster: SharedCluster,
    seed: int,
    on_progress: ShareCallback = no_progress,
) -> dict[str, Results]:
    """Return the results of controllers, by name, on jobsets by load."""
    episodes, load, number, key = numbered(jobsets, seed)
    game = Game(load, number, episodes, cluster, key)
    found = {}
    for k, (name, player) in enumerate(policies.items()):
        known = player if isinstance(player, Player) else Player(controlled(player))
        found[name] = _scored(name, known, game)
        on_progress((k + 1) / len(policies))
    return found


def _scored(name: str, player: Player, game: Game) -> Results:
    jobs = batch(game.episodes)
    groups = Groups(jobs, game.cluster, WAITING["delay"](jobs))
    reward, intervals = np.zeros(len(game.load)), np.zeros(len(game.load))
    rows_of_intervals = []
    for turn, transition in enumerate(_played(player, groups, game, "present")):
        reward[transition.rows] += transition.reward.sum(axis=1)
        intervals[transition.rows] += 1
        rows_of_intervals.append(_rows(name, game, turn, transition))
    served = groups.served()
    about = (name, game.load, game.number, jobs, served, game.cluster)
    kept = pd.concat(rows_of_intervals, ignore_index=True)
    if player.expectation is not None:
        kept = _calibrated(kept, player, player.expectation, game)
    every = job_results(*about)
    return Results(
        every[every["jobset"] < SHOWN].reset_index(drop=True),
        jobset_results(*about, reward / np.maximum(intervals, 1)),
        {"groups": group_results(*about), "intervals": kept},
    )


def _played(player: Player, groups: Groups, game: Game, against: str) -> Iterator[Transition]:
    turn = np.zeros(len(game.key), dtype=np.int64)

    def acts(rows: IntArray, view: Observation) -> Setting:
        draws = uniform(game.key[rows], turn[rows])
        turn[rows] += 1
        return player.act(groups, rows, view, draws)

    return transitions(groups, acts, against)


def _rows(name: str, game: Game, turn: int, transition: Transition) -> pd.DataFrame:
    """Return one interval of the jobsets that are written, a row a group."""
    here = np.flatnonzero(game.number[transition.rows] < SHOWN)
    rows, number = transition.rows[here], game.cluster.groups
    share, used = (amount[here] / game.cluster.capacity for amount in (transition.setting.share, transition.view.used))
    columns = {
        "policy": name,
        "load": np.repeat(game.load[rows], number),
        "jobset": np.repeat(game.number[rows], number),
        "interval": turn,
        "group": np.tile(np.arange(number), len(rows)),
        "share": share.max(axis=-1).ravel(),
        "used": used.max(axis=-1).ravel(),
        "waiting": transition.view.waiting[here].sum(axis=-1).ravel(),
        "cost": transition.cost[here].ravel(),
        "reward": transition.reward[here].ravel(),
        "q": np.nan,
        "realised": np.nan,
    }
    return pd.DataFrame(columns)


def _calibrated(kept: pd.DataFrame, player: Player, expectation: Expectation, game: Game) -> pd.DataFrame:
    """Return the rows with what was expected of each decision, and the discounted rewards that came of it."""
    few = game.some(np.flatnonzero(game.number < SHOWN))
    jobs = batch(few.episodes)
    groups = Groups(jobs, few.cluster, WAITING[expectation.objective](jobs))
    played = list(_played(player, groups, few, expectation.against))
    expected = [expectation.value(transition.view) for transition in played]
    later, realised = np.zeros((len(few.load), few.cluster.groups)), []
    for transition in reversed(played):
        later[transition.rows] = transition.reward + expectation.gamma * later[transition.rows]
        realised.append(later[transition.rows].ravel())
    realised.reverse()
    return kept.assign(
        q=np.concatenate([one.ravel() for one in expected]).astype(float), realised=np.concatenate(realised)
    )
