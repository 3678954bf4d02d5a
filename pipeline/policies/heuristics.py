"""Heuristics: each scores the waiting jobs of an observation; `choose` settles legality, ties and void once.

Scores are [B, M]: what a job is worth to start, highest first; -inf holds it back. Ties go to the lowest slot. The
rules are DeepRM's comparables (section 4.1) with the semantics of its published code, plus two that are stronger:
`sjf_align` and `hold`.
"""

from collections.abc import Callable

import numpy as np

from pipeline.config import Clone, Params, there_are
from pipeline.core import FloatArray, IntArray, Observation, Policy, legal_actions
from pipeline.errors import UserError

Score = Callable[[Observation], FloatArray]

EVEN = 0.5  # Tetris untuned: alignment and shortness count alike
LONG_STEPS = 10  # a long job of DeepRM's workload runs at least this long


def choose(scores: FloatArray, view: Observation) -> IntArray:
    """Return the best-scored legal placement of each episode, or void where no job is wanted."""
    legal = view.legal.any(axis=2)
    wanted = np.where(legal, scores, -np.inf)
    best = wanted.argmax(axis=1)
    machine = view.legal[np.arange(len(best)), best].argmax(axis=1)
    machines = view.legal.shape[2]
    void = legal.shape[1] * machines
    held_back = np.isneginf(wanted[np.arange(len(best)), best])
    return np.asarray(np.where(held_back, void, best * machines + machine))


def fcfs(view: Observation) -> FloatArray:
    """Prefer the job that arrived first."""
    return view.waited.astype(float)


def sjf(view: Observation) -> FloatArray:
    """Prefer the shortest job."""
    return -view.duration.astype(float)


def packer(view: Observation) -> FloatArray:
    """Prefer the job best aligned with the units free now (their dot product; DeepRM's code)."""
    return _dot(view).astype(float)


def alignment(view: Observation) -> FloatArray:
    """Return the mean over resources of free share times demanded share, in [0, 1] (Tetris)."""
    capacity = view.capacity[:, 0].astype(float)
    free = view.free[:, 0, 0] / capacity
    return np.asarray((view.demand / capacity[:, None] * free[:, None]).mean(axis=2))


def tetris(weight: float) -> Score:
    """Return a mix of alignment (weight) and shortness, 1 / duration, both in [0, 1]."""

    def score(view: Observation) -> FloatArray:
        shortness = 1.0 / np.maximum(view.duration, 1)
        return np.asarray(weight * alignment(view) + (1.0 - weight) * shortness)

    return score


def sjf_align(view: Observation) -> FloatArray:
    """Prefer the shortest job; among equals the best aligned one."""
    return sjf(view) + 0.5 * alignment(view)


def hold(long_steps: int) -> Score:
    """Return `sjf_align` that starts no long job while a shorter one waits in a slot.

    Args:
        long_steps: a job is long from this duration on.
    """

    def score(view: Observation) -> FloatArray:
        long = view.duration >= long_steps
        short_waits = np.asarray(((view.duration > 0) & ~long).any(axis=1))
        return np.where(long & short_waits[:, None], -np.inf, sjf_align(view))

    return score


def heuristic(score: Score) -> Policy:
    """Return the policy that starts the best-scored job."""

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        return choose(score(view), view)

    return policy


def random(view: Observation, draws: FloatArray) -> IntArray:
    """Draw uniformly among the legal actions, void among them."""
    legal = legal_actions(view)
    place = (draws * legal.sum(axis=1)).astype(np.int64)
    return np.asarray((legal.cumsum(axis=1) > place[:, None]).argmax(axis=1))


def _dot(view: Observation) -> IntArray:
    free, demand = view.free[:, 0, 0].astype(np.int64), view.demand.astype(np.int64)
    return np.asarray((demand * free[:, None]).sum(axis=2))


def check_names(params: Params) -> None:
    """Check that no agent takes the name of another policy of the comparison.

    Raises:
        UserError: it does.
    """
    taken = {*HEURISTICS, *(f"{agent}_pretrained" for agent in params.agents)}
    for name in params.agents:
        if name in taken:
            raise UserError(f"params.yaml: agents.{name}: '{name}' is the name of another policy; choose another")


def check_teachers(params: Params) -> None:
    """Check that every agent learns from a heuristic that there is.

    Raises:
        UserError: there is no such heuristic.
    """
    for name, agent in params.agents.items():
        if isinstance(agent.pretrain, Clone) and agent.pretrain.teacher not in HEURISTICS:
            raise UserError(
                f"params.yaml: agents.{name}.pretrain.teacher: unknown '{agent.pretrain.teacher}'; "
                f"{there_are(HEURISTICS, agent.pretrain.teacher)}"
            )


# Heuristics without a knob, by their params.yaml word.
HEURISTICS: dict[str, Policy] = {
    "fcfs": heuristic(fcfs),
    "random": random,
    "sjf": heuristic(sjf),
    "packer": heuristic(packer),
    "tetris": heuristic(tetris(EVEN)),
    "sjf_align": heuristic(sjf_align),
    "hold": heuristic(hold(LONG_STEPS)),
}
