"""Play policies on the same jobsets: all policies, loads and jobsets of a scenario side by side.

Heuristics with a compiled twin play to their end by themselves; the other policies go in lock step, all at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.core import Cluster, FloatArray, IntArray, JobBatch, JobSet, KeyArray, Policy, Schedule, batch, keys
from pipeline.evaluation.metrics import Span, job_results, jobset_results
from pipeline.evaluation.stream_metrics import stream_results
from pipeline.policies.heuristics import twin_of
from pipeline.simulator.batched import Batched
from pipeline.simulator.rollout import play_compiled, play_together
from pipeline.simulator.twins import players

MOST_JOBSETS = 1_000_000  # of one load; keeps the keys of (load, jobset) apart

# Episodes side by side: enough that a lock step costs next to nothing an episode; at 35 jobs in ten slots one takes
# 3 kB in the simulator and 1 kB in what policies see, so that all take 64 MB however many policies and jobsets there
# are. Of a long horizon, fewer (steps of all their horizons).
MOST_ABREAST = 16_384
STEPS_ABREAST = 1 << 22

Column = FloatArray | IntArray
Heard = Callable[[float], None]  # told the share of the episodes that are over

# Column of the jobset table that an objective is judged by, and the sign that makes less better.
JUDGED_BY = {
    "slowdown": ("mean_slowdown", 1),
    "bounded_slowdown": ("mean_bounded_slowdown", 1),
    "completion_time": ("completion_time", 1),
    "makespan": ("makespan", 1),
    "utilisation": ("utilisation", -1),
    "delay": ("mean_wait", 1),
}


class Results(NamedTuple):
    """What became of every job, and of every jobset."""

    jobs: pd.DataFrame
    jobsets: pd.DataFrame
    others: Mapping[str, pd.DataFrame] = {}  # tables that only some dynamics have, by name

    @property
    def by_load(self) -> dict[int, float]:
        """Return the mean slowdown at each load: the mean over jobsets of the jobset's mean."""
        return self.mean_by_load("mean_slowdown")

    def mean_by_load(self, column: str) -> dict[int, float]:
        """Return the mean over jobsets of a column of their table, at each load."""
        means = self.jobsets.groupby("load")[column].mean()
        return {int(load): float(mean) for load, mean in zip(means.index, means, strict=True)}

    @property
    def curves(self) -> dict[str, dict[int, float]]:
        """Return what is drawn over loads of these: mean slowdown, and of controllers mean waiting time."""
        drawn = {"slowdown": self.by_load}
        return drawn | {"delay": self.mean_by_load("mean_wait")} if "jain_wait" in self.jobsets else drawn

    @property
    def mean(self) -> float:
        """Return the mean slowdown over loads."""
        return float(np.mean(list(self.by_load.values())))


def tables_of(results: Mapping[str, Results]) -> dict[str, pd.DataFrame]:
    """Return the tables that only some dynamics have, of all policies in one, by name."""
    names = dict.fromkeys(name for done in results.values() for name in done.others)
    return {name: pd.concat([done.others[name] for done in results.values()], ignore_index=True) for name in names}


def unheard(share: float) -> None:
    """Tell nobody."""


def score(
    policies: Mapping[str, Policy],
    jobsets: Mapping[int, Sequence[JobSet]],
    cluster: Cluster,
    step_limit: int,
    seed: int,
    masked: bool = True,
    heard: Heard = unheard,
    measured: Span | None = None,
) -> dict[str, Results]:
    """Return the results of policies, by name, on jobsets by load.

    Args:
        policies: by their name in the tables; they keep to the legal actions if `masked`, and moves without a choice
            are then not asked of them.
        jobsets: by load, in percent.
        cluster: where they are scheduled.
        step_limit: where an episode is cut, its unfinished jobs counted.
        seed: of the policies' draws, if they make any.
        masked: see `policies`.
        heard: told how far it is.
        measured: which jobs enter the tables; None: all of them.

    Raises:
        UserError: a jobset has no job that is measured.
    """
    load = np.concatenate([np.full(len(group), load) for load, group in jobsets.items()])
    number = np.concatenate([np.arange(len(group)) for group in jobsets.values()])
    jobs = batch([jobs for group in jobsets.values() for jobs in group])
    game = Game(jobs, cluster, step_limit, masked, keys(seed, load * MOST_JOBSETS + number, np.zeros_like(number)))
    ends = played(game, list(policies.values()), heard)
    about = {name: (name, load, number, jobs, end, step_limit) for name, end in zip(policies, ends, strict=True)}
    if measured is not None:
        return {name: Results(*stream_results(*one, measured)) for name, one in about.items()}
    return {name: Results(job_results(*one), jobset_results(*one)) for name, one in about.items()}


class Game(NamedTuple):
    """What every policy plays."""

    jobs: JobBatch
    cluster: Cluster
    step_limit: int
    masked: bool
    key: KeyArray  # [B]

    @property
    def abreast(self) -> int:
        """Return how many episodes may go side by side."""
        return max(1, min(MOST_ABREAST, STEPS_ABREAST // self.cluster.horizon))


def played(game: Game, policies: Sequence[Policy], heard: Heard) -> list[Schedule]:
    """Return what each policy made of the jobs."""

    def begin(some: Sequence[Policy], group: IntArray) -> Going:
        whose, episode = np.divmod(group, game.jobs.episodes)
        simulator = Batched(game.jobs.take(episode), game.cluster, game.step_limit, skip_forced=game.masked)
        twins = [twin for policy in some if (twin := twin_of(policy)) is not None]
        if twins:
            who = players([twins[k] for k in whose], game.key[episode])
            return Going(play_compiled(simulator, who), simulator.schedule)
        return Going(play_together(simulator, some, whose, game.key[episode]), simulator.schedule)

    found = play_all(policies, game.jobs.episodes, game.abreast, begin, heard)
    return [Schedule._make(columns) for columns in found]


class Going(NamedTuple):
    """Some episodes in play."""

    left: Iterator[int]  # plays them, and tells now and then how many go on
    end: Callable[[], Iterable[Column]]  # what has become of them: columns of jobs or episodes


Begin = Callable[[Sequence[Policy], IntArray], Going]


def play_all(
    policies: Sequence[Policy], episodes: int, abreast: int, begin: Begin, heard: Heard
) -> list[tuple[Column, ...]]:
    """Let every policy play every episode; return the columns of what became of each policy's, in one piece.

    Args:
        policies: those with a compiled twin play first, by themselves.
        episodes: of each policy.
        abreast: how many may go side by side.
        begin: starts some pairs of policy and episode, told by their number, policy by policy; the policies that it is
            given have all a twin, or none has.
        heard: told how far it is.
    """
    order = sorted(range(len(policies)), key=lambda k: twin_of(policies[k]) is None)
    compiled = sum(twin_of(policy) is not None for policy in policies)
    ends: dict[int, tuple[Column, ...]] = {}
    for some in (order[:compiled], order[compiled:]):
        over, pairs, parts = len(ends) * episodes, len(some) * episodes, []
        for first in range(0, pairs, abreast):
            group = np.arange(first, min(first + abreast, pairs))
            going = begin([policies[k] for k in some], group)
            for left in going.left:
                heard((over + len(group) - left) / (len(policies) * episodes))
            over += len(group)
            parts.append(going.end())
        if some:
            columns = [np.split(np.concatenate(column), len(some)) for column in zip(*parts, strict=True)]
            ends |= zip(some, zip(*columns, strict=True), strict=True)
    return [ends[k] for k in range(len(policies))]


def judge(results: Results, objective: str) -> float:
    """Return how good results are by an objective; less is better.

    The mean over loads of the mean over jobsets, as in every comparison.
    """
    column, sign = JUDGED_BY[objective]
    return sign * float(results.jobsets.groupby("load")[column].mean().mean())
