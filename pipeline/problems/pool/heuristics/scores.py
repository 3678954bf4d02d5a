"""Heuristics: each scores the waiting jobs of an observation; `choose` settles legality, ties and void once.

Most have a compiled rule (`compiled`) that plays whole episodes by itself; one without is asked move by move.
Scores are [B, M] or, where machines differ, [B, M, K]: what a job is worth to start, highest first; -inf holds it back.
Ties go to the lowest slot, then to the lowest machine. The rules here are DeepRM's comparables (section 4.1) with the
semantics of its published code, plus stronger ones: `sjf_align`, `hold`, and those made of `rules`.
"""

from collections.abc import Sequence

import numpy as np

from pipeline.config import Clone, Imitate, Params, PoolAgent
from pipeline.config.checks import check_plan_names
from pipeline.config.records import check_known
from pipeline.core import CompiledRule, FloatArray, Observation, Policy, legal_actions
from pipeline.errors import UserError
from pipeline.problems.pool.heuristics.rules import alignment, easy, linear, mean_share
from pipeline.problems.pool.heuristics.teachers import COMPILED, DEEPRM_STEPS, EVEN, LONG_STEPS, PATIENT, TEACHERS
from pipeline.simulation.choosing import Heuristic, Score, fcfs, heuristic, random, sjf


def packer(view: Observation) -> FloatArray:
    """Prefer the job best aligned with the units free now (their dot product; DeepRM's code)."""
    free, demand = view.free[:, 0, 0].astype(np.int64), view.demand.astype(np.int64)
    return np.asarray((demand * free[:, None]).sum(axis=2).astype(float))


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
    """Return `sjf_align` that starts no job of `long_steps` or more while a shorter one waits in a slot."""

    def score(view: Observation) -> FloatArray:
        long = view.duration >= long_steps
        short_waits = np.asarray(((view.duration > 0) & ~long).any(axis=1))
        return np.where(long & short_waits[:, None], -np.inf, sjf_align(view))

    return score


def hold_until(long_steps: int, until: int) -> Score:
    """Return `sjf_align` that starts no job of `long_steps` or more before a step, unless void is not legal."""

    def score(view: Observation) -> FloatArray:
        holds = (view.now < until) & legal_actions(view)[:, -1]
        return np.where((view.duration >= long_steps) & holds[:, None], -np.inf, sjf_align(view))

    return score


def hold_long(long_steps: int, until: int) -> Score:
    """Return `hold` that before a step starts a job of `long_steps` or more only where all slots hold such jobs.

    Until then short jobs are still to come, and one long job blocks the cluster for more of them than wait now.
    """
    later = hold(long_steps)

    def score(view: Observation) -> FloatArray:
        long = view.duration >= long_steps
        holds = legal_actions(view)[:, -1] & ~long.all(axis=1)
        early = np.where(long & holds[:, None], -np.inf, sjf_align(view))
        return np.where((view.now < until)[:, None], early, later(view))

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


def with_long(long_steps: float, until: float) -> Heuristic:
    """Return `hold_long` with the duration from which a job is long, and the step until which it is held back."""
    spans = int(long_steps), int(until)
    return heuristic(hold_long(*spans), CompiledRule("hold_long", knobs=spans))


def with_weights(weights: Sequence[float]) -> Heuristic:
    """Return the linear rule with weights of its features."""
    return heuristic(linear(weights), CompiledRule("linear", weights=tuple(weights)))


def check_names(params: Params) -> None:
    """Check that no agent takes the name of another policy of the comparison.

    Raises:
        UserError: it does.
    """
    taken = {*HEURISTICS, *(f"{agent}{end}" for agent in params.agents for end in ("_pretrained", "_tree"))}
    for name in params.agents:
        if name in taken:
            raise UserError(f"params.yaml: agents.{name}: '{name}' is the name of another policy; choose another")


def check_plans(params: Params) -> None:
    """Check that every policy that looks ahead has a base that there is, and a name of its own.

    Raises:
        UserError: it has not.
    """
    agents = params.agents_with(PoolAgent)
    bases = {**dict.fromkeys(HEURISTICS), **dict.fromkeys(agents)}
    ends = ("", "_pretrained", "_tree")
    taken = {*HEURISTICS, *(f"{agent}{end}" for agent in params.agents for end in ends)}
    check_plan_names(params, "pool", bases, taken)


def check_teachers(params: Params) -> None:
    """Check that every agent learns from teachers that there are.

    Raises:
        UserError: there is no such teacher.
    """
    for name, agent in params.agents.items():
        asked = agent.pretrain
        if isinstance(asked, Clone):
            check_known("params.yaml", f"agents.{name}.pretrain.teacher", asked.teacher, TEACHERS)
        for teacher in asked.teachers if isinstance(asked, Imitate) else ():
            check_known("params.yaml", f"agents.{name}.pretrain.teachers", teacher, COMPILED)


# Heuristics as they are without tuning, by their params.yaml word.
HEURISTICS: dict[str, Policy] = {
    "fcfs": heuristic(fcfs, COMPILED["fcfs"]),
    "random": Heuristic(random, COMPILED["random"]),
    "sjf": heuristic(sjf, COMPILED["sjf"]),
    "packer": heuristic(packer, COMPILED["packer"]),
    "tetris": with_weight(EVEN),
    "sjf_align": heuristic(sjf_align, COMPILED["sjf_align"]),
    "hold": with_patience(LONG_STEPS),
    "saf": heuristic(saf, COMPILED["saf"]),
    "wspt": heuristic(wspt, COMPILED["wspt"]),
    "easy": heuristic(easy(sjf_align), COMPILED["easy"]),
    "easy_fcfs": heuristic(easy(fcfs), COMPILED["easy_fcfs"]),
    "linear": with_weights(PATIENT),
    "hold_until": with_span(LONG_STEPS, DEEPRM_STEPS),
    "hold_long": with_long(LONG_STEPS, DEEPRM_STEPS),
}
