"""Play policies on the same jobsets: all policies, loads and jobsets of a scenario side by side.

Heuristics with a compiled rule play to their end by themselves; the other policies go in lock step, all at once.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core import IntArray, KeyArray, Policy, keys
from pipeline.problems.pool.evaluation.metrics import Span, job_results, jobset_results
from pipeline.problems.pool.evaluation.stream_metrics import stream_results
from pipeline.problems.pool.nouns import Cluster, JobBatch, JobSet, Schedule, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.rules import players
from pipeline.progress import ShareCallback, no_progress
from pipeline.simulation.choosing import compiled_rule_of
from pipeline.simulation.results import MOST_JOBSETS, Results
from pipeline.simulation.rollout import play_compiled, play_together
from pipeline.simulation.side_by_side import MOST_ABREAST, InPlay, play_all

STEPS_ABREAST = 1 << 22


def score(
    policies: Mapping[str, Policy],
    jobsets: Mapping[int, Sequence[JobSet]],
    cluster: Cluster,
    step_limit: int,
    seed: int,
    masked: bool = True,
    on_progress: ShareCallback = no_progress,
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
        on_progress: told how far it is.
        measured: which jobs enter the tables; None: all of them.

    Raises:
        UserError: a jobset has no job that is measured.
    """
    game, load, number = game_of(jobsets, cluster, step_limit, seed, masked)
    ends = played(game, list(policies.values()), on_progress)
    about = {name: (name, load, number, game.jobs, end, step_limit) for name, end in zip(policies, ends, strict=True)}
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


def game_of(
    jobsets: Mapping[int, Sequence[JobSet]], cluster: Cluster, step_limit: int, seed: int, masked: bool = True
) -> tuple[Game, IntArray, IntArray]:
    """Return jobsets by load as a game, and the load and number of each episode; see `score`."""
    load = np.concatenate([np.full(len(group), load) for load, group in jobsets.items()])
    number = np.concatenate([np.arange(len(group)) for group in jobsets.values()])
    key = keys(seed, load * MOST_JOBSETS + number, np.zeros_like(number))
    jobs = batch([jobs for group in jobsets.values() for jobs in group])
    return Game(jobs, cluster, step_limit, masked, key), load, number


def played(game: Game, policies: Sequence[Policy], on_progress: ShareCallback) -> list[Schedule]:
    """Return what each policy made of the jobs."""

    def begin(some: Sequence[Policy], group: IntArray) -> InPlay:
        whose, episode = np.divmod(group, game.jobs.episodes)
        jobs = game.jobs.take(episode)
        simulator = Batched(jobs, game.cluster, game.step_limit, skip_forced=game.masked)

        def started() -> float:
            return simulator.started / max(1, len(jobs.arrival))

        rules = [rule for policy in some if (rule := compiled_rule_of(policy)) is not None]
        if rules:
            who = players([rules[k] for k in whose], game.key[episode])
            return InPlay(play_compiled(simulator, who), started, simulator.schedule)
        return InPlay(play_together(simulator, some, whose, game.key[episode]), started, simulator.schedule)

    found = play_all(policies, game.jobs.episodes, game.abreast, begin, on_progress)
    return [Schedule._make(columns) for columns in found]
