"""Play policies in a simulator to the end of every episode: the only loops that do, of all problems."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from pipeline.core import FloatArray, IntArray, KeyArray, Observation, Policy, uniform

DECISIONS_AT_ONCE = 1_000_000  # of compiled play between two looks at it: a few tenths of a second

Watch = Callable[[IntArray, Observation, IntArray], None]  # (episodes, what they saw, what was done)

Who_contra = TypeVar("Who_contra", contravariant=True)  # who decides in each episode


class Waiting(Protocol):
    """Episodes of any problem, of which some await a decision."""

    @property
    def rows(self) -> IntArray:
        """Return the episodes [B'] that await a decision."""


class Episodes(Waiting, Protocol):
    """What a roll-out takes of a simulator whose policies place jobs; also reference simulators have that."""

    def observe(self, rows: IntArray) -> Observation:
        """Return what the policy sees in some episodes."""

    def step(self, rows: IntArray, actions: IntArray) -> object:
        """Carry out one decision in each of some episodes."""


class Compiled(Waiting, Protocol[Who_contra]):
    """Episodes that compiled heuristics can play by themselves."""

    def play(self, rows: IntArray, who: Who_contra, most: int) -> None:
        """Let compiled heuristics play some episodes to their end, or for at most so many decisions each."""

    def decide(self, rows: IntArray, who: Who_contra) -> IntArray:
        """Return what compiled heuristics do next in some episodes; the decisions are counted, but not carried out."""


class Turn(NamedTuple):
    """One decision in each episode that awaits one."""

    simulator: Episodes | None  # that plays them; None: there is nothing but what is seen
    rows: IntArray  # [B']  episodes
    view: Observation  # of them
    draws: FloatArray  # [B']  uniform in [0, 1)
    decision: IntArray  # [B']  its place among those of its episode
    key: KeyArray  # [B']  random key of its episode

    def take(self, some: IntArray | slice) -> "Turn":
        """Return some of the decisions."""
        simulator, rows, view, draws, decision, key = self
        return Turn(simulator, rows[some], view.take(some), draws[some], decision[some], key[some])


@runtime_checkable
class Insider(Protocol):
    """A policy that must have the simulator, as one does that looks ahead."""

    def act(self, turn: Turn) -> IntArray:
        """Return the actions [B'] of a turn."""


def decided(policy: Policy | Insider, turn: Turn) -> IntArray:
    """Return the actions [B'] of a policy of either kind."""
    return policy.act(turn) if isinstance(policy, Insider) else policy(turn.view, turn.draws)


def to_end(simulator: Waiting, advance: Callable[[IntArray], object]) -> Iterator[int]:
    """Advance the episodes that await a decision until there are none; yield how many there are, after each time."""
    while len(rows := simulator.rows):
        advance(rows)
        yield len(simulator.rows)


def play_turns(simulator: Episodes, decide: Callable[[Turn], IntArray], key: KeyArray, made: int = 0) -> Iterator[int]:
    """Let `decide` return the actions [B'] of each turn, to the end; yield how many episodes are left.

    Args:
        simulator: at any point of its episodes.
        decide: called once for each lock step, before its actions are carried out.
        key: random key [B] of each episode; its n-th decision draws the same number in any company.
        made: decisions that each episode has behind it.
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
    """Let a policy decide until every episode is over; `watch` is called with every decision, before it is carried out.

    Args as of `play_turns`.
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
    """Let several policies decide, each in its own episodes; yield how many episodes are left, after each lock step.

    Args:
        simulator: at any point of its episodes.
        policies: asked once for each lock step, each for those of its episodes that are still going.
        whose: policy [B] of each episode, by its place; never falling.
        key: see `play_turns`.
    """

    def decide(turn: Turn) -> IntArray:
        edges = np.searchsorted(whose[turn.rows], np.arange(len(policies) + 1))
        asked = [(policy, slice(*edges[k : k + 2])) for k, policy in enumerate(policies) if edges[k] < edges[k + 1]]
        return np.concatenate([decided(policy, turn.take(mine)) for policy, mine in asked])

    return play_turns(simulator, decide, key)


def play_compiled(simulator: Compiled[Who_contra], who: Who_contra, at_once: int = DECISIONS_AT_ONCE) -> Iterator[int]:
    """Let compiled heuristics play to the end; yield how many episodes are left, after so many decisions."""
    return to_end(simulator, lambda rows: simulator.play(rows, who, max(1, at_once // len(rows))))
