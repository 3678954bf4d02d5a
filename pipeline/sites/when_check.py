"""Calibration of simulated futures by earlier questions, and its check on later ones.

A question is a job that waits at a random moment. Its position is the quantile of its actual start among the simulated
ones; beyond them it continues on a logarithmic scale. The ends of an interval are at the positions that similar earlier
questions had, because a site does things that no replay models. Each moment counts once, however many jobs wait.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeGuard

import numpy as np

from pipeline.core.types import BoolArray, FloatArray
from pipeline.errors import UserError
from pipeline.sites.queue import HOUR_S
from pipeline.sites.when import WEEK_S, Moment, Past, futures, moment, plan

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)  # ends of the 80 % and 50 % intervals, and the median
FUTURES, MOMENTS = 64, 150
FEWEST_MOMENTS = 20  # with waiting jobs
NEAREST, FEWEST = 300, 100  # questions that calibrate an interval; with fewer than FEWEST it is not calibrated
SCALE_S = 4 * HOUR_S  # starts further apart than this differ by ratio


class Questions(NamedTuple):
    """Jobs that wait at some moments; Q questions."""

    future: FloatArray  # [E, Q]  s from the moment on, in ascending order
    plan: FloatArray  # [Q]  s, as if all jobs took their limits
    like: FloatArray  # [Q, 3]  mean of the futures, wait so far and limit, as logarithms
    actual: FloatArray  # [Q]  s
    now: FloatArray  # [Q]  the moment
    weight: FloatArray  # [Q]  1 / number of jobs that wait at the moment


class Score(NamedTuple):
    """Coverage of intervals, and median absolute errors; every moment weighs the same."""

    questions: int
    moments: int
    cover80: float
    cover50: float
    error_s: float
    plan_error_s: float  # of planning by limits


def ask(at: Moment, seed: int) -> Questions:
    """Return the questions of a moment; the random numbers depend on the seed and the moment."""
    queue, jobs = at.past.queue, at.waiting
    found = futures(at, FUTURES, np.random.default_rng([seed, int(at.now)]))
    like = np.column_stack([found.mean(axis=0), at.now - queue.submit[jobs], queue.limit[jobs]])
    every = np.ones(len(jobs))
    return Questions(
        future=found,
        plan=plan(at),
        like=np.log1p(like / HOUR_S),
        actual=at.past.start[jobs] - at.now,
        now=at.now * every,
        weight=every / len(jobs),
    )


def known_by(asked: Questions, since: float, until: float) -> Questions:
    """Return the questions of a span of time as known at its end: jobs that still wait then count as started then."""
    known = some_of(asked, (asked.now >= since) & (asked.now < until))
    return known._replace(actual=np.minimum(known.actual, until - known.now))


def sample(
    past: Past, span: tuple[float, float], moments: int, seed: int, threads: int,
    advance: Callable[[int], object] = lambda _: None,
) -> Questions | None:  # fmt: skip
    """Return the questions of random moments in a span of time; None if no job waits at any."""
    times = np.sort(np.random.default_rng([seed, moments]).uniform(*span, moments))
    found = [at for at in (moment(past, float(time)) for time in times) if len(at.waiting)]
    with ThreadPoolExecutor(threads) as workers:
        asked = []
        for one in workers.map(lambda at: ask(at, seed), found):
            asked.append(one)
            advance(len(asked))
    return joined(asked) if asked else None


def positions(future: FloatArray, actual: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the positions [Q] of actual starts among simulated ones; below 0 or above 1 outside of them.

    >>> positions(np.array([[0.0], [10.0]]), np.array([5.0]), np.random.default_rng(1)).tolist()
    [0.5]
    """
    low, high = _log(future[0]), _log(future[-1])
    below, upto = (future < actual).sum(axis=0), (future <= actual).sum(axis=0)
    within = (below + rng.uniform(size=len(actual)) * (upto - below)) / len(future)
    outside = _log(actual)
    ends = [outside - low, 1 + outside - high]
    return np.asarray(np.select([actual < future[0], actual > future[-1]], ends, within))


def at_positions(future: FloatArray, position: FloatArray) -> FloatArray:
    """Return the starts [K, Q] at positions [K, Q]; the inverse of `positions`."""
    inside = np.stack([np.quantile(future[:, q], np.clip(position[:, q], 0, 1)) for q in range(future.shape[1])], 1)
    beyond = position - np.clip(position, 0, 1)
    return np.asarray(np.maximum((inside + SCALE_S) * np.exp(beyond) - SCALE_S, 0.0))


def intervals(known: Questions | None, asked: Questions) -> FloatArray:
    """Return the starts [5, Q] at QUANTILES, calibrated where enough earlier questions are known."""
    if not is_calibrated(known):
        return np.asarray(np.quantile(asked.future, QUANTILES, axis=0))
    had = positions(known.future, known.actual, np.random.default_rng(0))
    found = np.empty((len(QUANTILES), len(asked.actual)))
    for q, like in enumerate(asked.like):
        near = np.argsort(((known.like - like) ** 2).sum(axis=1), kind="stable")[:NEAREST]
        found[:, q] = weighted_quantiles(had[near], known.weight[near], QUANTILES)
    return at_positions(asked.future, found)


def is_calibrated(known: Questions | None) -> TypeGuard[Questions]:
    """Return whether there are enough earlier questions."""
    return known is not None and len(known.actual) >= FEWEST and len(np.unique(known.now)) >= FEWEST_MOMENTS


def weighted_quantiles(values: FloatArray, weight: FloatArray, levels: Sequence[float]) -> FloatArray:
    """Return the smallest values with at least these shares of the weight up to them.

    >>> weighted_quantiles(np.array([3.0, 1.0, 2.0]), np.array([2.0, 1.0, 1.0]), (0.25, 0.5, 0.75)).tolist()
    [1.0, 2.0, 3.0]
    """
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    return np.asarray(values[order][np.minimum(np.searchsorted(share, levels), len(values) - 1)])


def check(
    past: Past, first: float, second: float, moments: int, seed: int, threads: int,
    advance: Callable[[int], object] = lambda _: None,
) -> dict[str, Score]:  # fmt: skip
    """Return scores of intervals for the later jobs of a log, calibrated on earlier ones, once or every week.

    Args:
        past: the log.
        first: share of the jobs at which calibration begins.
        second: share at which it ends, and the check begins.
        moments: number of moments of the check.
        seed: seed of moments and futures.
        threads: number of moments at once.
        advance: called with the number of moments that are done.

    Raises:
        UserError: too few jobs wait.
    """
    submit = past.queue.submit
    began, split = (float(submit[int(share * len(submit))]) for share in (first, second))
    before = sample(past, (began, split), MOMENTS, seed, threads, advance)
    after = sample(past, (split, float(submit[-1])), moments, seed + 1, threads, advance)
    if after is None or not is_calibrated(before):
        needed = f"{FEWEST} waiting jobs at {FEWEST_MOMENTS} moments"
        raise UserError(f"expected at least {needed} before the checked period, and one in it; found fewer")
    every = joined([before, after])
    weekly = np.empty((len(QUANTILES), len(after.now)))
    for week in np.arange(split, after.now.max() + 1, WEEK_S):
        some = (after.now >= week) & (after.now < week + WEEK_S)
        if some.any():
            weekly[:, some] = intervals(known_by(every, week - (split - began), week), some_of(after, some))
    once = intervals(known_by(before, began, split), after)
    return {"once": score(once, after), "weekly": score(weekly, after)}


def score(found: FloatArray, asked: Questions) -> Score:
    """Return the score of intervals [5, Q]."""
    actual, share = asked.actual, asked.weight / asked.weight.sum()
    covers = [float(share[(found[k] <= actual) & (actual <= found[-1 - k])].sum()) for k in (0, 1)]
    errors = [weighted_quantiles(np.abs(one - actual), share, [0.5])[0] for one in (found[2], asked.plan)]
    return Score(len(actual), len(np.unique(asked.now)), *covers, *map(float, errors))


def some_of(asked: Questions, some: BoolArray) -> Questions:
    """Return some questions."""
    return Questions(asked.future[:, some], *(column[some] for column in asked[1:]))


def joined(asked: Sequence[Questions]) -> Questions:
    """Join several sets of questions."""
    future, *columns = zip(*asked, strict=True)
    return Questions(np.concatenate(future, axis=1), *(np.concatenate(column) for column in columns))


def _log(starts: FloatArray) -> FloatArray:
    return np.asarray(np.log(starts + SCALE_S))
