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
from pipeline.problems.pool.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined, uniform

FCFS, RANDOM, SJF, PACKER, TETRIS, SJF_ALIGN, HOLD, SAF, WSPT, EASY, EASY_FCFS, LINEAR, HOLD_UNTIL = range(13)
NO_WEIGHTS = (0.0,) * WEIGHTS

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
}


class Players(NamedTuple):
    """Who decides in each episode."""

    rule: IntArray  # [B]
    knob: FloatArray  # [B]
    until: FloatArray  # [B]  of `hold_until`: the step from which nothing is held back
    key: KeyArray  # [B]  of its draws
    decision: IntArray  # [B]  how many it has made
    weights: FloatArray  # [B, WEIGHTS]  of the linear rule's features


def players(rules: Sequence[CompiledRule], key: KeyArray) -> Players:
    """Return who decides, before the first decision; one rule and key [B] an episode."""
    word = np.array([RULES[each.rule] for each in rules], dtype=np.int64)
    knob = np.array([each.knobs[0] if each.knobs else each.knob for each in rules], dtype=np.float64)
    for each in rules:
        if each.weights is not None and len(each.weights) != WEIGHTS:
            raise ValueError(f"{each.rule}: expected {WEIGHTS} weights, got {len(each.weights)}")
    weights = np.array([each.weights or NO_WEIGHTS for each in rules], dtype=np.float64).reshape(-1, WEIGHTS)
    until = np.array([each.knobs[1] if each.knobs else 0.0 for each in rules], dtype=np.float64)
    return Players(word, knob, until, np.ascontiguousarray(key), np.zeros(len(rules), dtype=np.int64), weights)


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
    holds = rule == HOLD and _short_waits(s, b, knob)
    holds = holds or (rule == HOLD_UNTIL and s.now[b] < until and may_pass(s, rules, b))
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
