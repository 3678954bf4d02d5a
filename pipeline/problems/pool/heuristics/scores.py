"""Heuristics: each scores the waiting jobs of an observation; `choose` settles legality, ties and void once.

Most have a compiled rule (`compiled`) that plays whole episodes by itself; one without is asked move by move.
Scores are [B, M] or, where machines differ, [B, M, K]: what a job is worth to start, highest first; -inf holds it back.
Ties go to the lowest slot, then to the lowest machine. The rules here are DeepRM's comparables (section 4.1) with the
semantics of its published code, plus stronger ones: `sjf_align`, `hold`, and those made of `rules`.
"""

import math
from collections.abc import Sequence

import numpy as np

from pipeline.config import Clone, Imitate, Params, PretrainConfig, there_are
from pipeline.core import CompiledRule, FloatArray, IntArray, Observation, Policy, legal_actions
from pipeline.errors import UserError
from pipeline.problems.pool.heuristics.rules import alignment, easy, linear, linear_weights, mean_share
from pipeline.simulation.choosing import Heuristic, Score, compiled_rule_of, fcfs, heuristic, random, sjf

EVEN = 0.5  # Tetris untuned: alignment and shortness count alike
DEEPRM_STEPS = 50  # in which DeepRM's jobs arrive
LONG_STEPS = 10  # a long job of DeepRM's workload runs at least this long
# The linear rule untuned: shortest first, and nothing of LONG_STEPS and more while one much shorter waits.
PATIENT = linear_weights(short=1.0, shortest=1.0, always=-math.log(LONG_STEPS) - 1.0)


def packer(view: Observation) -> FloatArray:
    """Prefer the job best aligned with the units free now (their dot product; DeepRM's code)."""
    return _dot(view).astype(float)


def tetris(weight: float) -> Score:
    """Return a mix of alignment (weight) and shortness, 1 / duration, both in [0, 1]."""

    def score(view: Observation) -> FloatArray:
        shortness = 1.0 / np.maximum(view.duration, 1)
        return np.asarray(weight * alignment(view) + (1.0 - weight) * shortness)

    return score


def sjf_align(view: Observation) -> FloatArray:
    """Prefer the shortest job; among equals the best aligned one."""
    return sjf(view) + 0.5 * alignment(view)


def saf(view: Observation) -> FloatArray:
    """Prefer the smallest area: duration times the mean over resources of the demanded share."""
    return -(view.duration.astype(float) * mean_share(view))


def wspt(view: Observation) -> FloatArray:
    """Prefer the largest weight to area, the weight of a job's slowdown being 1 / duration."""
    duration = view.duration.astype(float)
    return -(duration * (duration * mean_share(view)))


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


def hold_until(long_steps: int, until: int) -> Score:
    """Return `sjf_align` that starts no long job before a step, unless void is not legal.

    Args:
        long_steps: a job is long from this duration on.
        until: the step.
    """

    def score(view: Observation) -> FloatArray:
        holds = (view.now < until) & legal_actions(view)[:, -1]
        return np.where((view.duration >= long_steps) & holds[:, None], -np.inf, sjf_align(view))

    return score


def with_weight(weight: float) -> Heuristic:
    """Return Tetris with a weight of alignment."""
    return heuristic(tetris(weight), CompiledRule("tetris", weight))


def with_patience(long_steps: float) -> Heuristic:
    """Return `hold` with the duration from which a job is long, in whole steps."""
    return heuristic(hold(int(long_steps)), CompiledRule("hold", int(long_steps)))


def with_span(long_steps: float, until: float) -> Heuristic:
    """Return `hold_until` with the duration from which a job is long, and the step until which it is held back."""
    spans = int(long_steps), int(until)
    return heuristic(hold_until(*spans), CompiledRule("hold_until", knobs=spans))


def with_weights(weights: Sequence[float]) -> Heuristic:
    """Return the linear rule with weights of its features."""
    return heuristic(linear(weights), CompiledRule("linear", weights=tuple(weights)))


def _dot(view: Observation) -> IntArray:
    free, demand = view.free[:, 0, 0].astype(np.int64), view.demand.astype(np.int64)
    return np.asarray((demand * free[:, None]).sum(axis=2))


def check_names(params: Params) -> None:
    """Check that no agent takes the name of another policy of the comparison.

    Raises:
        UserError: it does.
    """
    taken = {*HEURISTICS, *(f"{agent}{end}" for agent in params.agents for end in ("_pretrained", "_tree"))}
    for name in params.agents:
        if name in taken:
            raise UserError(f"params.yaml: agents.{name}: '{name}' is the name of another policy; choose another")


def check_teachers(params: Params) -> None:
    """Check that every agent learns from heuristics that there are; those whose play is compiled, from compiled ones.

    Raises:
        UserError: there is no such heuristic.
    """
    for name, agent in params.agents.items():
        several = isinstance(agent.pretrain, Imitate)
        place = f"params.yaml: agents.{name}.pretrain.{'teachers' if several else 'teacher'}"
        for teacher in _teachers(agent.pretrain):
            if teacher not in HEURISTICS:
                raise UserError(f"{place}: unknown '{teacher}'; {there_are(HEURISTICS, teacher)}")
            if several and compiled_rule_of(HEURISTICS[teacher]) is None:
                raise UserError(f"{place}: expected heuristics that have a compiled rule, got '{teacher}'")


def _teachers(pretrain: PretrainConfig) -> tuple[str, ...]:
    if isinstance(pretrain, Imitate):
        return pretrain.teachers
    return (pretrain.teacher,) if isinstance(pretrain, Clone) else ()


# Heuristics as they are without tuning, by their params.yaml word.
HEURISTICS: dict[str, Policy] = {
    "fcfs": heuristic(fcfs, CompiledRule("fcfs")),
    "random": Heuristic(random, CompiledRule("random")),
    "sjf": heuristic(sjf, CompiledRule("sjf")),
    "packer": heuristic(packer, CompiledRule("packer")),
    "tetris": with_weight(EVEN),
    "sjf_align": heuristic(sjf_align, CompiledRule("sjf_align")),
    "hold": with_patience(LONG_STEPS),
    "saf": heuristic(saf, CompiledRule("saf")),
    "wspt": heuristic(wspt, CompiledRule("wspt")),
    "easy": heuristic(easy(sjf_align), CompiledRule("easy")),
    "easy_fcfs": heuristic(easy(fcfs), CompiledRule("easy_fcfs")),
    "linear": with_weights(PATIENT),
    "hold_until": with_span(LONG_STEPS, DEEPRM_STEPS),
}
