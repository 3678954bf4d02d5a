"""The plain definitions of the heuristics of `pool`, written to be read; the compiled rules must agree bit for bit.

`easy` is EASY backfilling (Lifka, JSSPP 1995) seen from the waiting jobs. Departure: the head job is the best by any
order and is chosen again in every decision. Where jobs may be placed ahead, a head job that can be placed is placed,
so that room is kept only for a head job that finds no place in the horizon.

`linear` adds up weighted features of a job, and of letting a step pass. Sums and logarithms are those of the compiled
rule, operation for operation.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from pipeline.core.types import (
    BoolArray,
    CompiledRule,
    FloatArray,
    IntArray,
    Observation,
    Policy,
    TimeArray,
    legal_actions,
)
from pipeline.problems.pool.env.teachers import FEATURES, JOB_FEATURES
from pipeline.simulation.rollout import Score, choose, fcfs, random, sjf

LEAST_SHARE = 1e-3  # of the cluster that a job counts for, so that its logarithm is there
PLENTY = np.iinfo(np.int64).max


def alignment(view: Observation) -> FloatArray:
    """Return the mean over resources of free share times demanded share, in [0, 1] (Tetris)."""
    free = view.free[:, 0, 0] / _capacity(view)
    return _mean(_shares(view) * free[:, None])


def mean_share(view: Observation) -> FloatArray:
    """Return the mean over resources of the share of the cluster that each job wants [B, M]."""
    return _mean(_shares(view))


def easy(order: Callable[[Observation], FloatArray]) -> Callable[[Observation], FloatArray]:
    """Return the order that starts no job now that would delay the first of all waiting jobs.

    Where the first finds no place, the others start only if they end before it can, or leave it room.
    """

    def score(view: Observation) -> FloatArray:
        wanted = order(view)
        head = np.where(view.duration > 0, wanted, -np.inf).argmax(axis=1)
        placeable = view.legal[np.arange(len(head)), head, 0]
        return np.where(placeable[:, None] | (view.fits_now[:, :, 0] & _leaves_room(view, head)), wanted, -np.inf)

    return score


def _leaves_room(view: Observation, head: IntArray) -> BoolArray:
    """Return which jobs [B, M], started now, do not delay a head job [B] that cannot be placed yet."""
    every, steps = np.arange(len(head)), view.free.shape[2]
    duration = view.duration[every, head][:, None]
    spare = view.free[:, 0].astype(np.int64) - view.demand[every, head][:, None]
    begin = _first_room(spare, duration)
    step = np.arange(steps)
    # A job with room now that still may not be placed never will be: nothing is kept for it.
    kept = (begin > 0) & (step >= begin) & (step < begin + duration)
    least = np.minimum.accumulate(np.where(kept[:, :, None], spare, PLENTY), axis=1)
    last = np.clip(view.duration, 1, steps) - 1
    return np.asarray((least[every[:, None], last] >= view.demand).all(axis=2))


def _first_room(spare: IntArray, duration: TimeArray) -> IntArray:
    """Return the first step [B, 1] from which nothing is short for a duration; beyond the horizon all is free."""
    short = (spare < 0).any(axis=2).cumsum(axis=1)
    before = np.concatenate([np.zeros((len(short), 1), dtype=short.dtype), short], axis=1)
    end = np.minimum(np.arange(before.shape[1]) + duration, short.shape[1])
    return np.asarray((np.take_along_axis(before, end, axis=1) == before).argmax(axis=1)[:, None])


def linear(weights: Sequence[float]) -> Callable[[Observation], FloatArray]:
    """Return the sum of weighted features; no job is wanted where that of void is above those of all that may start.

    Args:
        weights: of JOB_FEATURES, then of VOID_FEATURES.
    """
    expected, jobs = len(FEATURES), len(JOB_FEATURES)
    if len(weights) != expected:
        raise ValueError(f"expected {expected} weights, got {len(weights)}")

    def score(view: Observation) -> FloatArray:
        total = _weighted(_job_features(view), weights[:jobs])
        may = np.where(view.legal[:, :, 0], total, -np.inf)
        best = may.argmax(axis=1)
        void = _weighted(_void_features(view, best), weights[jobs:])
        rather = legal_actions(view)[:, -1] & (void > may[np.arange(len(best)), best])
        return np.where(rather[:, None], -np.inf, total)

    return score


def _job_features(view: Observation) -> list[FloatArray]:
    """Return JOB_FEATURES, each [B, M]; of empty slots anything, for they are not legal."""
    length, waited = np.maximum(view.duration, 1).astype(float), view.waited.astype(float)
    long = _logarithm(length)
    shortest = np.where(view.duration > 0, length, np.inf).min(axis=1, keepdims=True)
    left = (view.free[:, 0, 0][:, None] - view.demand) / _capacity(view)[:, None]
    return [
        -long,
        -_logarithm(np.maximum(mean_share(view), LEAST_SHARE)),
        alignment(view),
        _logarithm(1.0 + waited),
        _logarithm(1.0 + waited / length),
        _shares(view).max(axis=2),
        left.min(axis=2),
        _logarithm(np.where(np.isinf(shortest), 1.0, shortest)) - long,
    ]


def _void_features(view: Observation, best: IntArray) -> list[FloatArray]:
    """Return VOID_FEATURES, each [B], beside the best job [B] that may start."""
    waits = view.duration > 0
    count = waits.sum(axis=1)
    shorter = waits & (view.duration < view.duration[np.arange(len(best)), best][:, None])
    return [
        np.ones(len(best)),
        _logarithm(1.0 + (count + view.backlog)),
        shorter.sum(axis=1) / np.maximum(count, 1),
        _mean(view.free[:, 0, 0] / _capacity(view)),
        _logarithm(1.0 + view.now),
        _logarithm(1.0 + view.since_arrival),
        _logarithm(1.0 + np.where(np.isinf(view.to_end), 0.0, view.to_end)),
    ]


def _weighted(features: Sequence[FloatArray], weights: Sequence[float]) -> FloatArray:
    total = weights[0] * features[0]
    for weight, feature in zip(weights[1:], features[1:], strict=True):
        total = total + weight * feature
    return np.asarray(total)


def _capacity(view: Observation) -> FloatArray:
    return view.capacity[:, 0].astype(float)


def _shares(view: Observation) -> FloatArray:
    return np.asarray(view.demand / _capacity(view)[:, None])


def _mean(parts: FloatArray) -> FloatArray:
    """Return the mean over the last axis, summed from its first to its last as the compiled rule does."""
    return np.asarray(parts.cumsum(axis=-1)[..., -1] / parts.shape[-1])


def _logarithm(values: FloatArray) -> FloatArray:
    """Return the C library's logarithm, which compiled code calls too; numpy's own may differ in the last bit."""
    return np.asarray(np.vectorize(math.log, otypes=[float])(values))


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


def plain_score(rule: CompiledRule) -> Score:
    """Return the plain scores of a compiled rule."""
    steps = int(rule.knob)
    made: dict[str, Callable[[], Score]] = {
        "fcfs": lambda: fcfs,
        "sjf": lambda: sjf,
        "packer": lambda: packer,
        "tetris": lambda: tetris(rule.knob),
        "sjf_align": lambda: sjf_align,
        "hold": lambda: hold(steps),
        "saf": lambda: saf,
        "wspt": lambda: wspt,
        "easy": lambda: easy(sjf_align),
        "easy_fcfs": lambda: easy(fcfs),
        "linear": lambda: linear(rule.weights or ()),
        "hold_until": lambda: hold_until(*map(int, rule.knobs or ())),
        "hold_long": lambda: hold_long(*map(int, rule.knobs or ())),
    }
    return made[rule.rule]()


def plain_policy(rule: CompiledRule) -> Policy:
    """Return the policy that decides by the plain scores of a compiled rule."""
    if rule.rule == "random":
        return random
    score = plain_score(rule)
    return lambda view, draws: choose(score(view), view)
