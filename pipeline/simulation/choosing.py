"""Heuristics score the waiting jobs of an observation; `choose` settles legality, ties and void once."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipeline.core import CompiledRule, FloatArray, IntArray, Observation, Policy, legal_actions

Score = Callable[[Observation], FloatArray]


def choose(scores: FloatArray, view: Observation) -> IntArray:
    """Return the best-scored legal placement of each episode, or void where no job is wanted."""
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
    rule: CompiledRule | None = None  # decides alike, compiled
    score: Score | None = None  # by which it orders jobs [B, M], or jobs on machines [B, M, K]; None: by none

    def __call__(self, view: Observation, draws: FloatArray) -> IntArray:
        """Return an action [B] for every episode."""
        return self.decide(view, draws)


def heuristic(score: Score, rule: CompiledRule | None = None, order: Score | None = None) -> Heuristic:
    """Return the policy that starts the best-scored job; `order` scores all jobs, where `score` is of one at a time."""
    return Heuristic(lambda view, draws: choose(score(view), view), rule, order or score)


def compiled_rule_of(policy: object) -> CompiledRule | None:
    """Return the compiled rule of a policy, if it has one."""
    return policy.rule if isinstance(policy, Heuristic) else None


def random(view: Observation, draws: FloatArray) -> IntArray:
    """Draw uniformly among the legal actions, void among them."""
    legal = legal_actions(view)
    place = (draws * legal.sum(axis=1)).astype(np.int64)
    return np.asarray((legal.cumsum(axis=1) > place[:, None]).argmax(axis=1))
