"""The heuristics of `scores`, compiled: each decides on the simulator's own state, many episodes at once.

The scores, ties and draws are those of the plain definitions, operation for operation, so that the schedules are the
same bit for bit; a test holds them to it. A batch may hold any mix: every episode has its rule, knob and key.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from pipeline.core import CompiledRule, FloatArray, IntArray, KeyArray
from pipeline.problems.pool.simulator.compiled.kernels import go_on, may_pass
from pipeline.problems.pool.simulator.compiled.linear_rule import (
    WEIGHTS,
    alignment,
    first_room,
    leaves_room,
    linear,
    mean_share,
)
from pipeline.problems.pool.simulator.compiled.score_rule import COUNT, describe, moment, worth
from pipeline.problems.pool.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined, uniform

FCFS, RANDOM, SJF, PACKER, TETRIS, SJF_ALIGN, HOLD, SAF, WSPT, EASY, EASY_FCFS, LINEAR = range(12)
HOLD_UNTIL, HOLD_LONG, SCORES = range(12, 15)

# Rules by the word that a policy names its compiled rule by.
RULES = {
    "fcfs": FCFS,
    "random": RANDOM,
    "sjf": SJF,
    "packer": PACKER,
    "tetris": TETRIS,
    "sjf_align": SJF_ALIGN,
    "hold": HOLD,
    "saf": SAF,
    "wspt": WSPT,
    "easy": EASY,
    "easy_fcfs": EASY_FCFS,
    "linear": LINEAR,
    "hold_until": HOLD_UNTIL,
    "hold_long": HOLD_LONG,
    "scores": SCORES,
}


class Players(NamedTuple):
    """Who decides in each episode."""

    rule: IntArray  # [B]
    knob: FloatArray  # [B]
    until: FloatArray  # [B]  of `hold_until` and `hold_long`: the step from which they stop holding long jobs
    key: KeyArray  # [B]  of its draws
    decision: IntArray  # [B]  how many it has made
    weights: FloatArray  # [B, W]  of the features of the linear rule, or of scores
    features: FloatArray  # [B, COUNT]  where scores are added up; no columns if no rule here has scores


def players(rules: Sequence[CompiledRule], key: KeyArray) -> Players:
    """Return who decides, before the first decision; one rule and key [B] an episode."""
    word = np.array([RULES[each.rule] for each in rules], dtype=np.int64)
    knob = np.array([each.knobs[0] if each.knobs else each.knob for each in rules], dtype=np.float64)
    weights = weight_table([each.weights or () for each in rules])
    for each, mine in zip(rules, word, strict=True):
        count = len(each.weights or ())
        if mine == LINEAR and count != WEIGHTS:
            raise ValueError(f"{each.rule}: expected {WEIGHTS} weights, got {count}")
        if mine == SCORES and count != COUNT + each.knob * (COUNT + 1):
            raise ValueError(f"{each.rule}: expected {COUNT} weights and {COUNT + 1} of each unit, got {count}")
    features = np.zeros((len(rules), COUNT if (word == SCORES).any() else 0))
    until = np.array([each.knobs[1] if each.knobs else 0.0 for each in rules], dtype=np.float64)
    return Players(
        word, knob, until, np.ascontiguousarray(key), np.zeros(len(rules), dtype=np.int64), weights, features
    )


def weight_table(weights: Sequence[Sequence[float]]) -> FloatArray:
    """Return weights as rows of one length, at least one, each filled up with 0."""
    table = np.zeros((len(weights), max([1, *map(len, weights)])))
    for row, each in zip(table, weights, strict=True):
        row[: len(each)] = each
    return table


@inlined
def _random(s: State, rules: Rules, b: int, draw: float) -> int:
    """Return one of the legal actions, void among them where it is."""
    void = may_pass(s, rules, b)
    place = int(draw * (s.placeable[b] + void))
    for m in range(s.slot_job.shape[1]):
        if s.legal[b, m]:
            if place == 0:
                return m
            place -= 1
    return int(s.slot_job.shape[1])


@inlined
def _packed(s: State, b: int, m: int) -> float:
    units = 0
    for r in range(s.capacity.shape[0]):
        units += int(s.slot_demand[b, m, r]) * int(s.free[b, s.head[b], r])
    return float(units)


@inlined
def _score(s: State, b: int, m: int, rule: int, knob: float) -> float:
    duration = float(s.slot_duration[b, m])
    if rule == SJF:
        return -duration
    if rule in (FCFS, EASY_FCFS):
        return float(s.now[b] - s.arrival[s.slot_job[b, m]])
    if rule == PACKER:
        return _packed(s, b, m)
    if rule == TETRIS:
        return knob * alignment(s, b, m) + (1.0 - knob) * (1.0 / duration)
    if rule in (SAF, WSPT):
        area = duration * mean_share(s, b, m)
        return -area if rule == SAF else -(duration * area)
    return -duration + 0.5 * alignment(s, b, m)


@inlined
def _short_waits(s: State, b: int, long_steps: float) -> bool:
    shortest = long_steps
    for m in range(s.slot_job.shape[1]):
        if s.slot_duration[b, m] > 0:
            shortest = min(shortest, float(s.slot_duration[b, m]))
    return shortest < long_steps


@inlined
def _all_long(s: State, b: int, long_steps: float) -> bool:
    """Return whether every slot holds a long job."""
    shortest = np.inf
    for m in range(s.slot_job.shape[1]):
        shortest = min(shortest, float(s.slot_duration[b, m]))
    return shortest >= long_steps


@inlined
def _scored(s: State, rules: Rules, b: int, who: Players) -> int:
    """Return the job of the best score, or void where that is below 0 and void is legal."""
    end = np.inf if rules.arrivals_end < 0 else float(max(rules.arrivals_end - s.now[b], 0))
    x = moment(s, b, end)
    chosen, best = int(s.slot_job.shape[1]), -np.inf
    for m in range(s.slot_job.shape[1]):
        if s.legal[b, m]:
            describe(s, b, m, x, who.features)
            score = worth(who.features, who.weights, b, int(who.knob[b]))
            if score > best:
                chosen, best = m, score
    if best < 0.0 and may_pass(s, rules, b):
        return int(s.slot_job.shape[1])
    return chosen


@inlined
def _easy(s: State, b: int, rule: int) -> int:
    """Return the head job, or the best job that fits now and does not delay it."""
    void = int(s.slot_job.shape[1])
    head, best = 0, -np.inf
    for m in range(void):
        if s.slot_duration[b, m] > 0:
            score = _score(s, b, m, rule, 0.0)
            if score > best:
                head, best = m, score
    if s.legal[b, head]:
        return head
    begin = first_room(s, b, head)
    chosen, best = void, -np.inf
    for m in range(void):
        if s.fits_now[b, m] and leaves_room(s, b, m, head, begin):
            score = _score(s, b, m, rule, 0.0)
            if score > best:
                chosen, best = m, score
    return chosen


@inlined
def _best(s: State, rules: Rules, b: int, rule: int, knob: float, until: float) -> int:
    """Return the best-scored job that may be placed and is not held back."""
    void = int(s.slot_job.shape[1])
    early = s.now[b] < until
    holds = (rule == HOLD or (rule == HOLD_LONG and not early)) and _short_waits(s, b, knob)
    holds = holds or (rule == HOLD_UNTIL and early and may_pass(s, rules, b))
    holds = holds or (rule == HOLD_LONG and early and not _all_long(s, b, knob) and may_pass(s, rules, b))
    chosen, best = void, -np.inf
    for m in range(void):
        if s.legal[b, m] and not (holds and s.slot_duration[b, m] >= knob):
            score = _score(s, b, m, rule, knob)
            if score > best:
                chosen, best = m, score
    return chosen


@inlined
def decide(s: State, rules: Rules, b: int, who: Players) -> int:
    """Return the next action of an episode, and count it."""
    rule, decision = who.rule[b], who.decision[b]
    who.decision[b] = decision + 1
    if rule == RANDOM:
        return _random(s, rules, b, uniform(who.key[b], decision))
    if s.placeable[b] == 0:
        return int(s.slot_job.shape[1])
    if rule in (EASY, EASY_FCFS):
        return _easy(s, b, rule)
    if rule == LINEAR:
        return linear(s, rules, b, who.weights)
    if rule == SCORES:
        return _scored(s, rules, b, who)
    return _best(s, rules, b, rule, who.knob[b], who.until[b])


@njit(cache=True, parallel=True)
def decide_rows(s: State, rules: Rules, rows: IntArray, who: Players, actions: IntArray) -> None:
    """Write the next action of some episodes."""
    for i in prange(rows.shape[0]):
        actions[i] = decide(s, rules, rows[i], who)


@njit(cache=True, parallel=True)
def play_rows(s: State, rules: Rules, rows: IntArray, who: Players, most: int) -> int:
    """Play some episodes to their end, or for at most so many decisions each; return how many are over."""
    over = 0
    for i in prange(rows.shape[0]):
        b = rows[i]
        for _ in range(most):
            if s.done[b]:
                break
            go_on(s, rules, b, decide(s, rules, b, who))
        over += s.done[b]
    return over
