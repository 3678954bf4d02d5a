"""Play policies in a simulator to the end of every episode."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

import numpy as np

from pipeline.core import IntArray, KeyArray, Observation, Policy, uniform

DECISIONS_AT_ONCE = 1_000_000  # of compiled play between two looks at it: a few tenths of a second

Watch = Callable[[IntArray, Observation, IntArray], None]  # (episodes, what they saw, what was done)

Who_contra = TypeVar("Who_contra", contravariant=True)  # who decides in each episode


class Episodes(Protocol):
    """Episodes that wait for decisions, of any problem that places jobs; those in `rows` are still going."""

    @property
    def rows(self) -> IntArray:
        """Return the episodes [B'] that await a decision."""

    def observe(self, rows: IntArray) -> Observation:
        """Return what the policy sees in some episodes."""

    def step(self, rows: IntArray, actions: IntArray) -> None:
        """Carry out one decision in each of some episodes."""


class Compiled(Protocol[Who_contra]):
    """Episodes that compiled heuristics can play by themselves."""

    @property
    def rows(self) -> IntArray:
        """Return the episodes [B'] that await a decision."""

    def play(self, rows: IntArray, who: Who_contra, most: int) -> None:
        """Let compiled heuristics play some episodes to their end, or for at most so many decisions each."""


def play(simulator: Episodes, policy: Policy, key: KeyArray, watch: Watch | None = None) -> None:
    """Let a policy decide until every episode is over.

    Args:
        simulator: at any point of its episodes.
        policy: asked once a lock step for all episodes still going.
        key: random key [B] of each episode; its n-th decision draws the same number in any company.
        watch: called with every decision, before it is carried out.
    """
    decision = np.zeros(len(key), dtype=np.int64)
    rows = simulator.rows
    while len(rows):
        view = simulator.observe(rows)
        actions = policy(view, uniform(key[rows], decision[rows]))
        if watch is not None:
            watch(rows, view, actions)
        simulator.step(rows, actions)
        decision[rows] += 1
        rows = simulator.rows


def play_together(simulator: Episodes, policies: Sequence[Policy], whose: IntArray, key: KeyArray) -> Iterator[int]:
    """Let several policies decide, each in its own episodes; yield how many episodes go on, after each lock step.

    Args:
        simulator: at any point of its episodes.
        policies: asked once a lock step, each for those of its episodes that are still going.
        whose: policy [B] of each episode, by its place; never falling.
        key: see `play`.
    """
    decision = np.zeros(len(key), dtype=np.int64)
    rows = simulator.rows
    while len(rows):
        view, draws = simulator.observe(rows), uniform(key[rows], decision[rows])
        edges = np.searchsorted(whose[rows], np.arange(len(policies) + 1))
        asked = [(policy, slice(*edges[k : k + 2])) for k, policy in enumerate(policies) if edges[k] < edges[k + 1]]
        simulator.step(rows, np.concatenate([policy(view.take(mine), draws[mine]) for policy, mine in asked]))
        decision[rows] += 1
        rows = simulator.rows
        yield len(rows)


def play_compiled(simulator: Compiled[Who_contra], who: Who_contra, at_once: int = DECISIONS_AT_ONCE) -> Iterator[int]:
    """Let compiled heuristics play to the end; yield how many episodes go on, after so many decisions."""
    while len(rows := simulator.rows):
        simulator.play(rows, who, max(1, at_once // len(rows)))
        yield len(simulator.rows)
