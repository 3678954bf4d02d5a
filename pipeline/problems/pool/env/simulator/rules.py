"""Compiled heuristics: each decides on the simulator's state, or scores observations, many episodes at once.

Scores, ties and draws are those of the plain definitions (`tests/oracles/pool_heuristics.py`), bit for bit. Every
episode of a batch has its own rule, knob and key.

`easy` is EASY backfilling (Lifka, JSSPP 1995). Departure: the head job is the best in the rule's own order, and is
chosen again in every decision. Where jobs may be placed ahead, a head job that can be placed is placed, so that room is
reserved only for a head job that finds no place in the horizon.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core.types import BoolArray, CompiledRule, FloatArray, IntArray, KeyArray, Observation, legal_actions
from pipeline.problems.pool.env.simulator.kernels import advance_episode, may_pass
from pipeline.problems.pool.env.simulator.linear_rule import (
    WEIGHTS,
    alignment,
    first_room,
    job_value,
    leaves_room,
    linear,
    mean_share,
    shortest_job,
)
from pipeline.problems.pool.env.simulator.score_rule import COUNT, describe, moment, worth
from pipeline.problems.pool.env.simulator.state import Rules, State, observed_state
from pipeline.simulation.compiled import Span, inlined, threaded, uniform

WORDS = (
    "fcfs", "random", "sjf", "packer", "tetris", "sjf_align", "hold", "saf", "wspt", "easy", "easy_fcfs", "linear",
    "hold_until", "hold_long", "scores",
)  # fmt: skip
RULES = {word: number for number, word in enumerate(WORDS)}  # by the name in `CompiledRule`
FCFS, RANDOM, SJF, PACKER, TETRIS, SJF_ALIGN, HOLD, SAF, WSPT, EASY, EASY_FCFS, LINEAR = range(12)
HOLD_UNTIL, HOLD_LONG, SCORES = range(12, 15)


class Players(NamedTuple):
    """The rule of each episode."""

    rule: IntArray  # [B]
    knob: FloatArray  # [B]
    until: FloatArray  # [B]  of `hold_until` and `hold_long`: the step from which long jobs are no longer held back
    key: KeyArray  # [B]  of random draws
    decision: IntArray  # [B]  number of decisions so far
    weights: FloatArray  # [B, W]  weights of the features of the rules `linear` and `scores`
    features: FloatArray  # [B, COUNT]  buffer; no columns if no rule is `scores`


def players(rules: Sequence[CompiledRule], key: KeyArray) -> Players:
    """Return the players before the first decision, from one rule and key for each episode [B]."""
    word = np.array([RULES[each.rule] for each in rules], dtype=np.int64)
    knobs = np.array([each.knobs or (each.knob, 0.0) for each in rules], dtype=np.float64).reshape(-1, 2)
    weights = np.zeros((len(rules), max([1, *(len(each.weights or ()) for each in rules)])))
    for row, each in enumerate(rules):
        count = len(each.weights or ())
        if word[row] == LINEAR and count != WEIGHTS:
            raise ValueError(f"{each.rule}: expected {WEIGHTS} weights, got {count}")
        if word[row] == SCORES and count != COUNT + each.knob * (COUNT + 1):
            raise ValueError(f"{each.rule}: expected {COUNT} weights and {COUNT + 1} of each unit, got {count}")
        weights[row, :count] = each.weights or ()
    features = np.zeros((len(rules), COUNT if (word == SCORES).any() else 0))
    knob, until = np.ascontiguousarray(knobs.T)
    return Players(
        word, knob, until, np.ascontiguousarray(key), np.zeros(len(rules), dtype=np.int64), weights, features
    )


@inlined
def _score(s: State, b: int, m: int, rule: int, knob: float) -> float:
    """Return the score of the job of a slot, by a rule that considers one job at a time."""
    duration = float(s.slot_duration[b, m])
    if rule == SJF:
        return -duration
    if rule in (FCFS, EASY_FCFS):
        return float(s.now[b] - s.arrival[s.slot_job[b, m]])
    if rule == PACKER:  # DeepRM's code: the dot product with the units free now
        units = 0
        for r in range(s.capacity.shape[0]):
            units += int(s.slot_demand[b, m, r]) * int(s.free[b, s.head[b], r])
        return float(units)
    if rule == TETRIS:
        return knob * alignment(s, b, m) + (1.0 - knob) * (1.0 / duration)
    if rule in (SAF, WSPT):  # smallest area; largest weight / area, where the weight is 1 / duration
        area = duration * mean_share(s, b, m)
        return -area if rule == SAF else -(duration * area)
    return -duration + 0.5 * alignment(s, b, m)  # SJF; of equals, the best aligned


class Held(NamedTuple):
    """The jobs of an episode that a rule holds back."""

    least: float  # steps: jobs that run at least this long are held back
    head: int  # slot of the job that no other may delay; -1 = none
    begin: int  # first step with room for it


@inlined
def _blocked_head(s: State, b: int, rule: int) -> int:
    """Return the slot of the best job if it cannot be placed yet, else -1."""
    head, best = -1, -np.inf
    for m in range(s.slot_job.shape[1]):
        if s.slot_duration[b, m] > 0:
            score = _score(s, b, m, rule, 0.0)
            if score > best:
                head, best = m, score
    return -1 if head < 0 or s.legal[b, head] else head


@inlined
def _held(s: State, b: int, who: Players, passes: bool) -> Held:
    """Return the jobs that are held back; `passes`: is void legal?"""
    rule, knob, early = who.rule[b], who.knob[b], s.now[b] < who.until[b]
    least, head, begin = np.inf, -1, 0
    if rule == HOLD or (rule == HOLD_LONG and not early):  # while a short job waits in a slot
        least = knob if shortest_job(s, b) < knob else np.inf
    elif rule == HOLD_UNTIL and early and passes:
        least = knob
    elif rule == HOLD_LONG and passes:  # before that step, short jobs are still to come
        for m in range(s.slot_job.shape[1]):
            if s.slot_duration[b, m] < knob:  # not all slots hold long jobs
                least = knob
    elif rule in (EASY, EASY_FCFS):
        head = _blocked_head(s, b, rule)
        begin = first_room(s, b, head) if head >= 0 else 0
    return Held(least, head, begin)


@inlined
def _held_score(s: State, b: int, m: int, who: Players, held: Held) -> float:
    """Return the score of the job of a slot; -inf if it is held back."""
    if s.slot_duration[b, m] >= held.least:
        return -np.inf
    if held.head >= 0 and not (s.fits_now[b, m] and leaves_room(s, b, m, held.head, held.begin)):
        return -np.inf
    return _score(s, b, m, who.rule[b], who.knob[b])


@inlined
def _by_scores(s: State, b: int, who: Players, end: float, passes: bool) -> int:
    """Return the job with the best score of the rule `scores`, or void if that score is below 0 and void is legal."""
    x = moment(s, b, end)
    chosen, best = int(s.slot_job.shape[1]), -np.inf
    for m in range(s.slot_job.shape[1]):
        if s.legal[b, m]:
            describe(s, b, m, x, who.features)
            score = worth(who.features, who.weights, b, int(who.knob[b]))
            if score > best:
                chosen, best = m, score
    return int(s.slot_job.shape[1]) if best < 0.0 and passes else chosen


@inlined
def _random(s: State, b: int, draw: float, passes: bool) -> int:
    """Return the legal action that a uniform draw selects."""
    place = int(draw * (s.placeable[b] + passes))
    for m in range(s.slot_job.shape[1]):
        if s.legal[b, m]:
            if place == 0:
                return m
            place -= 1
    return int(s.slot_job.shape[1])


@inlined
def decide(s: State, rules: Rules, b: int, who: Players) -> int:
    """Return the next action of an episode, and count it."""
    rule, decision, void = who.rule[b], who.decision[b], int(s.slot_job.shape[1])
    who.decision[b] = decision + 1
    if rule == RANDOM:
        return _random(s, b, uniform(who.key[b], decision), may_pass(s, rules, b))
    if s.placeable[b] == 0:
        return void
    passes = may_pass(s, rules, b)
    end = np.inf if rules.arrivals_end < 0 else float(max(rules.arrivals_end - s.now[b], 0))
    if rule == LINEAR:
        return linear(s, b, who.weights, end, passes)
    if rule == SCORES:
        return _by_scores(s, b, who, end, passes)
    held, chosen, best = _held(s, b, who, passes), void, -np.inf
    for m in range(void):
        if s.legal[b, m]:
            score = _held_score(s, b, m, who, held)
            if score > best:
                chosen, best = m, score
    return chosen


@threaded(lambda s, rules, rows, *_: len(rows))
def decide_rows(span: Span, s: State, rules: Rules, rows: IntArray, who: Players, actions: IntArray) -> None:
    """Write the next action of some episodes."""
    for i in range(*span):
        actions[i] = decide(s, rules, rows[i], who)


@threaded(lambda s, rules, rows, *_: len(rows))
def play_rows(span: Span, s: State, rules: Rules, rows: IntArray, who: Players, most: int) -> int:
    """Play some episodes to their end, or for up to `most` decisions each; return how many are over."""
    over = 0
    for i in range(*span):
        b = rows[i]
        for _ in range(most):
            if s.done[b]:
                break
            advance_episode(s, rules, b, decide(s, rules, b, who))
        over += s.done[b]
    return over


@inlined
def _score_row(s: State, b: int, who: Players, end: float, passes: bool, scores: FloatArray) -> None:
    rule, slots, shortest = who.rule[b], int(s.slot_job.shape[1]), shortest_job(s, b)
    x, held = moment(s, b, end), _held(s, b, who, passes)
    void = rule == LINEAR and linear(s, b, who.weights, end, passes) == slots
    for m in range(slots):
        if s.slot_duration[b, m] <= 0:
            continue
        if rule == SCORES:
            describe(s, b, m, x, who.features)
            scores[b, m] = worth(who.features, who.weights, b, int(who.knob[b]))
        elif rule == LINEAR:
            scores[b, m] = -np.inf if void else job_value(s, b, m, shortest, who.weights)
        else:
            scores[b, m] = _held_score(s, b, m, who, held)


@threaded(lambda s, *_: len(s.now))
def _score_rows(span: Span, s: State, who: Players, end: FloatArray, passes: BoolArray, scores: FloatArray) -> None:
    for b in range(*span):
        _score_row(s, b, who, end[b], passes[b], scores)


def scores_of(rule: CompiledRule) -> Callable[[Observation], FloatArray]:
    """Return the scores [B, M] that a rule gives the waiting jobs of observations: -inf holds a job back."""
    one = players([rule], np.zeros(1, dtype=np.uint64))

    def scores(view: Observation) -> FloatArray:
        found = np.zeros(view.duration.shape)
        who = Players._make(np.repeat(each, len(found), axis=0) for each in one)
        passes = np.ascontiguousarray(legal_actions(view)[:, -1])
        _score_rows(observed_state(view), who, np.array(view.to_end, dtype=np.float64), passes, found)
        return found

    return scores
