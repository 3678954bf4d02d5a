"""Heuristics, and the only loops that run policies to the end of every episode, for all problems.

Heuristics score the waiting jobs of an observation; `choose` handles legality, ties and void for all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from pipeline.core.types import (
    CompiledRule,
    FloatArray,
    IntArray,
    KeyArray,
    Observation,
    Policy,
    keys,
    legal_actions,
    uniform,
)
from pipeline.progress import ShareCallback
from pipeline.simulation.results import MOST_JOBSETS

DECISIONS_AT_ONCE = 1_000_000  # of compiled play between two progress reports: a few tenths of a second

# Episodes that run in parallel: enough that a lock step costs almost nothing per episode. With 35 jobs in ten slots an
# episode takes 3 kB in the simulator and 1 kB in observations, so all take 64 MB regardless of the number of policies
# and jobsets. Long horizons allow fewer: problems also limit the steps of all horizons together.
MOST_ABREAST = 16_384

Score = Callable[[Observation], FloatArray]
Watch = Callable[[IntArray, Observation, IntArray], None]  # (episodes, their observations, actions)
Column = FloatArray | IntArray
Jobs = TypeVar("Jobs")  # of one episode
Who = TypeVar("Who")  # the rule that decides in each episode
Who_contra = TypeVar("Who_contra", contravariant=True)


def choose(scores: FloatArray, view: Observation) -> IntArray:
    """Return the best-scored legal placement of each episode, or void where no job is wanted (score -inf)."""
    count, slots, machines = view.legal.shape
    each = scores if scores.ndim == 3 else scores[:, :, None]
    wanted = np.where(view.legal, each, -np.inf).reshape(count, slots * machines)
    best = wanted.argmax(axis=1)
    held_back = np.isneginf(wanted[np.arange(count), best])
    return np.asarray(np.where(held_back, slots * machines, best))


def fcfs(view: Observation) -> FloatArray:
    """Prefer the job that arrived first."""
    return view.waited.astype(float)


def sjf(view: Observation) -> FloatArray:
    """Prefer the shortest job."""
    return -view.duration.astype(float)


@dataclass(frozen=True)
class Heuristic:
    """A policy that needs no network."""

    decide: Policy
    rule: CompiledRule | None = None  # the same decisions, compiled
    score: Score | None = None  # orders jobs [B, M], or jobs on machines [B, M, K]; None: there is no order

    def __call__(self, view: Observation, draws: FloatArray) -> IntArray:
        """Return an action [B] for every episode."""
        return self.decide(view, draws)


def heuristic(score: Score, rule: CompiledRule | None = None, order: Score | None = None) -> Heuristic:
    """Return the policy that starts the best-scored job; `order` ranks all jobs where `score` scores only one."""
    return Heuristic(lambda view, draws: choose(score(view), view), rule, order or score)


def compiled_rule_of(policy: object) -> CompiledRule | None:
    """Return the compiled rule of a policy, if it has one."""
    return policy.rule if isinstance(policy, Heuristic) else None


def random(view: Observation, draws: FloatArray) -> IntArray:
    """Draw uniformly from the legal actions, including void."""
    legal = legal_actions(view)
    place = (draws * legal.sum(axis=1)).astype(np.int64)
    return np.asarray((legal.cumsum(axis=1) > place[:, None]).argmax(axis=1))


class Waiting(Protocol):
    """Episodes of any problem, some of which await a decision."""

    @property
    def rows(self) -> IntArray:
        """Return the episodes [B'] that await a decision."""


class Episodes(Waiting, Protocol):
    """The part of a simulator that a rollout needs if policies place jobs; reference simulators have it too."""

    def observe(self, rows: IntArray) -> Observation:
        """Return the observation of some episodes."""

    def step(self, rows: IntArray, actions: IntArray) -> object:
        """Carry out one decision in each of some episodes."""


class CompiledEpisodes(Episodes, Protocol[Who_contra]):
    """Episodes that compiled heuristics can play on their own."""

    @property
    def started(self) -> int:
        """Return how many jobs have started: in lock step all episodes end at nearly the same time."""

    def play(self, rows: IntArray, who: Who_contra, most: int) -> None:
        """Let compiled heuristics play some episodes to their end, or for up to `most` decisions each."""


class Turn(NamedTuple):
    """One decision in each episode that awaits one."""

    simulator: Episodes | None  # of the episodes; None: only the observation is available
    rows: IntArray  # [B']  episodes
    view: Observation  # of them
    draws: FloatArray  # [B']  uniform in [0, 1)
    decision: IntArray  # [B']  its number in its episode, from 0
    key: KeyArray  # [B']  random key of its episode

    def take(self, some: IntArray | slice) -> "Turn":
        """Return some of the decisions."""
        simulator, rows, view, draws, decision, key = self
        return Turn(simulator, rows[some], view.take(some), draws[some], decision[some], key[some])


@runtime_checkable
class Insider(Protocol):
    """A policy that needs the simulator, for example to look ahead."""

    def act(self, turn: Turn) -> IntArray:
        """Return the actions [B'] of a turn."""


def to_end(simulator: Waiting, advance: Callable[[IntArray], object]) -> Iterator[int]:
    """Advance the episodes that await a decision until there are none; yield their number after each step."""
    while len(rows := simulator.rows):
        advance(rows)
        yield len(simulator.rows)


def play_turns(simulator: Episodes, decide: Callable[[Turn], IntArray], key: KeyArray, made: int = 0) -> Iterator[int]:
    """Let `decide` return the actions [B'] of each turn, to the end; yield how many episodes are left.

    Args:
        simulator: at any point of its episodes.
        decide: called once for each lock step, before its actions are carried out.
        key: random key [B] of each episode; its n-th decision draws the same number whatever else is played.
        made: decisions that each episode has already taken.
    """
    decision = np.full(len(key), made, dtype=np.int64)

    def advance(rows: IntArray) -> None:
        number, mine = decision[rows], key[rows]
        simulator.step(
            rows, decide(Turn(simulator, rows, simulator.observe(rows), uniform(mine, number), number, mine))
        )
        decision[rows] += 1

    return to_end(simulator, advance)


def play(simulator: Episodes, policy: Policy, key: KeyArray, watch: Watch | None = None) -> None:
    """Let a policy decide until every episode is over; `watch` is called with every decision before it is carried out.

    Args: see `play_turns`.
    """

    def decide(turn: Turn) -> IntArray:
        actions = policy(turn.view, turn.draws)
        if watch is not None:
            watch(turn.rows, turn.view, actions)
        return actions

    for _ in play_turns(simulator, decide, key):
        pass


def play_together(
    simulator: Episodes, policies: Sequence[Policy | Insider], whose: IntArray, key: KeyArray
) -> Iterator[int]:
    """Let several policies decide, each in its own episodes; yield how many episodes are left after each lock step.

    Args:
        simulator: at any point of its episodes.
        policies: called once for each lock step, each with its episodes that are not over.
        whose: index [B] of the policy of each episode; ascending.
        key: see `play_turns`.
    """

    def decide(turn: Turn) -> IntArray:
        edges = np.searchsorted(whose[turn.rows], np.arange(len(policies) + 1))
        actions = []
        for k, policy in enumerate(policies):
            if edges[k] < edges[k + 1]:
                mine = turn.take(slice(*edges[k : k + 2]))
                actions.append(policy.act(mine) if isinstance(policy, Insider) else policy(mine.view, mine.draws))
        return np.concatenate(actions)

    return play_turns(simulator, decide, key)


def play_compiled(
    simulator: CompiledEpisodes[Who_contra], who: Who_contra, at_once: int = DECISIONS_AT_ONCE
) -> Iterator[int]:
    """Let compiled heuristics play to the end; yield how many episodes are left after every `at_once` decisions."""
    return to_end(simulator, lambda rows: simulator.play(rows, who, max(1, at_once // len(rows))))


class InPlay(NamedTuple, Generic[Who]):
    """Some episodes in play."""

    simulator: CompiledEpisodes[Who]
    jobs: int  # in all of them
    end: Callable[[], Iterable[Column]]  # their outcome: columns of jobs or episodes


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
    """Let every policy play every episode; return the concatenated columns of each policy's outcome.

    Args:
        policies: those with a compiled rule play first, on their own; the others in lock step.
        key: random key [B] of each episode, the same for all policies.
        abreast: the largest number of parallel episodes.
        begin: starts some episodes, which may be listed more than once.
        players: assigns a rule to each episode.
        on_progress: called with the share that is done.
        at_once: decisions of compiled play between two progress reports.
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
                if (started := going.simulator.started / max(1, going.jobs)) < 1:  # the end itself is reported once
                    on_progress((over + len(whose) * started) / (len(policies) * len(key)))
            over += len(whose)
            on_progress(over / (len(policies) * len(key)))
            parts.append(going.end())
        if some:
            columns = [np.split(np.concatenate(column), len(some)) for column in zip(*parts, strict=True)]
            ends |= zip(some, zip(*columns, strict=True), strict=True)
    return [ends[k] for k in range(len(policies))]
