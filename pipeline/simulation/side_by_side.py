"""Play several policies side by side: those with a compiled rule first, by themselves; the others in lock step."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from pipeline.core import CompiledRule, FloatArray, IntArray, KeyArray, Policy, keys
from pipeline.progress import ShareCallback
from pipeline.simulation.choosing import compiled_rule_of
from pipeline.simulation.results import MOST_JOBSETS
from pipeline.simulation.rollout import DECISIONS_AT_ONCE, Compiled, Episodes, Insider, play_compiled, play_together

# Episodes side by side: enough that a lock step costs next to nothing an episode; at 35 jobs in ten slots one takes
# 3 kB in the simulator and 1 kB in what policies see, so that all take 64 MB however many policies and jobsets there
# are. Of a long horizon, fewer (steps of all their horizons).
MOST_ABREAST = 16_384


Column = FloatArray | IntArray
Jobs = TypeVar("Jobs")  # of one episode
Who = TypeVar("Who")
Who_contra = TypeVar("Who_contra", contravariant=True)


class Placing(Episodes, Compiled[Who_contra], Protocol[Who_contra]):
    """Episodes whose policies place jobs, compiled ones by themselves."""

    @property
    def started(self) -> int:
        """Return how many jobs have been started: in lock step all episodes are over at nearly the same time."""


class InPlay(NamedTuple, Generic[Who]):
    """Some episodes in play."""

    simulator: Placing[Who]
    jobs: int  # in all of them
    end: Callable[[], Iterable[Column]]  # what has become of them: columns of jobs or episodes


def numbered(jobsets: Mapping[int, Sequence[Jobs]], seed: int) -> tuple[list[Jobs], IntArray, IntArray, KeyArray]:
    """Return all jobsets of all loads, and the load, number and random key [B] of each."""
    load = np.concatenate([np.full(len(group), load) for load, group in jobsets.items()])
    number = np.concatenate([np.arange(len(group)) for group in jobsets.values()])
    key = keys(seed, load * MOST_JOBSETS + number, np.zeros_like(number))
    return [jobs for group in jobsets.values() for jobs in group], load, number, key


def play_all(
    policies: Sequence[Policy | Insider],
    key: KeyArray,
    abreast: int,
    begin: Callable[[IntArray], InPlay[Who]],
    players: Callable[[Sequence[CompiledRule], KeyArray], Who],
    on_progress: ShareCallback,
    at_once: int = DECISIONS_AT_ONCE,
) -> list[tuple[Column, ...]]:
    """Let every policy play every episode; return the columns of what became of each policy's, in one piece.

    Args:
        policies: those with a compiled rule play first, by themselves.
        key: random key [B] of each episode, the same for all policies.
        abreast: how many may go side by side.
        begin: starts some episodes, each as often as it is named.
        players: says which rule decides in each episode.
        on_progress: is given the share that is done.
        at_once: decisions of compiled play between two looks at it.
    """
    rules = [compiled_rule_of(policy) for policy in policies]
    compiled, asked = ([k for k, rule in enumerate(rules) if (rule is None) == lacks] for lacks in (False, True))
    ends: dict[int, tuple[Column, ...]] = {}
    for some in (compiled, asked):
        over, pairs, parts = len(ends) * len(key), len(some) * len(key), []
        for first in range(0, pairs, abreast):
            whose, episode = np.divmod(np.arange(first, min(first + abreast, pairs)), len(key))
            going = begin(episode)
            if some is asked:
                left = play_together(going.simulator, [policies[k] for k in some], whose, key[episode])
            else:
                who = players([rule for k in whose if (rule := rules[some[k]])], key[episode])
                left = play_compiled(going.simulator, who, at_once)
            for _ in left:
                if (started := going.simulator.started / max(1, going.jobs)) < 1:  # the end is told once, if cut too
                    on_progress((over + len(whose) * started) / (len(policies) * len(key)))
            over += len(whose)
            on_progress(over / (len(policies) * len(key)))
            parts.append(going.end())
        if some:
            columns = [np.split(np.concatenate(column), len(some)) for column in zip(*parts, strict=True)]
            ends |= zip(some, zip(*columns, strict=True), strict=True)
    return [ends[k] for k in range(len(policies))]
