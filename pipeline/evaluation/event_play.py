"""Play policies on the same jobsets of an event-driven scenario: all policies, loads and jobsets side by side.

Heuristics with a compiled twin play to their end by themselves; the other policies go in lock step, all at once.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core import IntArray, KeyArray, Policy, keys
from pipeline.evaluation.event_metrics import event_job_results, event_jobset_results
from pipeline.evaluation.play import MOST_ABREAST, MOST_JOBSETS, Going, Heard, Results, play_all, unheard
from pipeline.machines import Jobs, Machines, Placed, end_to_end
from pipeline.policies.heuristics import twin_of
from pipeline.simulator.events.batch import Events
from pipeline.simulator.events.rules import players
from pipeline.simulator.rollout import play_compiled, play_together

NUMBERS_ABREAST = 1 << 24  # that the simulator, and what policies see, hold of all episodes side by side: 128 MiB


def event_score(
    policies: Mapping[str, Policy],
    jobsets: Mapping[int, Sequence[Jobs]],
    machines: Machines,
    seed: int,
    heard: Heard = unheard,
) -> dict[str, Results]:
    """Return the results of policies, by name, on jobsets by load.

    Args:
        policies: by their name in the tables.
        jobsets: by load, in percent.
        machines: where they are scheduled.
        seed: of the policies' draws, if they make any.
        heard: told how far it is.
    """
    load = np.concatenate([np.full(len(group), load) for load, group in jobsets.items()])
    number = np.concatenate([np.arange(len(group)) for group in jobsets.values()])
    episodes = [jobs for group in jobsets.values() for jobs in group]
    game = EventGame(episodes, machines, keys(seed, load * MOST_JOBSETS + number, np.zeros_like(number)))
    ends, jobs = event_played(game, list(policies.values()), heard), end_to_end(episodes)
    return {
        name: Results(
            event_job_results(name, load, number, jobs, end, machines),
            event_jobset_results(name, load, number, jobs, end, machines),
        )
        for name, end in zip(policies, ends, strict=True)
    }


class EventGame(NamedTuple):
    """What every policy plays."""

    episodes: Sequence[Jobs]
    machines: Machines
    key: KeyArray  # [B]

    @property
    def abreast(self) -> int:
        """Return how many episodes may go side by side."""
        number, resources = self.machines.capacity.shape
        pairs, longest = self.machines.slots * number, max(len(jobs.arrival) for jobs in self.episodes)
        each = 3 * pairs + 4 * number * resources + 20 * longest
        return max(1, min(MOST_ABREAST, int(NUMBERS_ABREAST // each)))


def event_played(game: EventGame, policies: Sequence[Policy], heard: Heard) -> list[Placed]:
    """Return what each policy made of the jobs."""

    def begin(some: Sequence[Policy], group: IntArray) -> Going:
        whose, episode = np.divmod(group, len(game.episodes))
        jobs = end_to_end([game.episodes[b] for b in episode])
        simulator = Events(jobs, game.machines, np.zeros(len(jobs.arrival)))  # nobody learns: presence costs nothing
        twins = [twin for policy in some if (twin := twin_of(policy)) is not None]
        if twins:
            who = players([twins[k] for k in whose], game.key[episode])
            return Going(play_compiled(simulator, who), simulator.placed)
        return Going(play_together(simulator, some, whose, game.key[episode]), simulator.placed)

    found = play_all(policies, len(game.episodes), game.abreast, begin, heard)
    return [Placed._make(columns) for columns in found]
