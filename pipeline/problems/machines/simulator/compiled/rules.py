"""The heuristics of `scores`, compiled: each decides on the simulator's own state, many episodes at once.

The scores, ties and draws are those of the plain definitions; a test holds them to it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from pipeline.core import CompiledRule, FloatArray, IntArray, KeyArray
from pipeline.problems.machines.nouns import GREEDY
from pipeline.problems.machines.simulator.compiled.kernels import advance_episode, could_ever
from pipeline.problems.machines.simulator.compiled.placing import fits
from pipeline.problems.machines.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined, uniform

TINY = 1e-15  # RLScheduler's guard of logarithms and quotients
NO_KNOBS = (0.0, 0.0)

# Rules by the word of `CompiledRule`. Those before `packer` score jobs, the next ones machines, too.
FCFS, SJF, SAF, SAF_AGED, F1, WFP3, UNICEP, WFP_PEER, UNI_PEER = range(9)
PACKER, TETRIS, LEAST, MOST, BALANCED, SJF_MOST, RANDOM = range(9, 16)
RULES = {
    "fcfs": FCFS,
    "sjf": SJF,
    "saf": SAF,
    "saf_aged": SAF_AGED,
    "f1": F1,
    "wfp3": WFP3,
    "unicep": UNICEP,
    "wfp_peer": WFP_PEER,
    "uni_peer": UNI_PEER,
    "packer": PACKER,
    "tetris_fair": TETRIS,
    "least_allocated": LEAST,
    "most_allocated": MOST,
    "balanced_allocation": BALANCED,
    "sjf_most_allocated": SJF_MOST,
    "random_placement": RANDOM,
}


class Players(NamedTuple):
    """Who decides in each episode."""

    rule: IntArray  # [B]
    knobs: FloatArray  # [B, 2]
    key: KeyArray  # [B]  of its draws
    decision: IntArray  # [B]  how many it has made


def players(rules: Sequence[CompiledRule], key: KeyArray) -> Players:
    """Return who decides, before the first decision; one rule and key for every episode [B]."""
    rule = np.array([RULES[each.rule] for each in rules], dtype=np.int64)
    knobs = np.array([each.knobs or NO_KNOBS for each in rules], dtype=np.float64)
    return Players(rule, knobs, np.ascontiguousarray(key), np.zeros(len(rules), dtype=np.int64))


@inlined
def _processors(s: State, job: int) -> float:
    """Return how much of the first resource a job holds in all, at least 1."""
    return float(max(s.nodes[job] * (s.demand[job, 0] / 1000.0), 1.0))


@inlined
def _job_score(s: State, b: int, job: int, rule: int, age: float) -> float:
    estimate, wait = s.estimate[job], s.now[b] - s.arrival[job]
    if rule in (WFP_PEER, UNI_PEER):
        wait = -1.0 - s.arrival[job]  # RLScheduler's: a job that has not started has scheduled time -1
    if rule in (SJF, SJF_MOST):
        return float(-estimate)
    if rule in (SAF, SAF_AGED):
        area = 0.0
        for r in range(s.total.shape[0]):
            if s.total[r] > 0:
                area += estimate * (s.nodes[job] * s.demand[job, r]) / s.total[r]
        return float(-area / (1.0 + wait / age) if rule == SAF_AGED else -area)
    if rule == F1:
        submit = max(s.arrival[job], 1.0)
        return float(-(np.log10(estimate) * _processors(s, job) + 870.0 * np.log10(submit)))
    if rule in (WFP3, WFP_PEER):
        ratio = wait / estimate
        return float(ratio * ratio * ratio * _processors(s, job))
    return float((wait + TINY) / (np.log2(_processors(s, job) + TINY) * estimate))


@inlined
def _alignment(s: State, b: int, job: int, k: int) -> float:
    shares = 0.0
    for r in range(s.capacity.shape[1]):
        if s.capacity[k, r] > 0:
            capacity = float(s.capacity[k, r])
            shares += s.demand[job, r] / capacity * (s.free[b, k, r] / capacity)
    return float(shares / s.capacity.shape[1])


@inlined
def _allocated(s: State, b: int, job: int, k: int, rule: int) -> float:
    """Score a machine as Kubernetes does, by the shares of it that are taken once the job is there."""
    total, squares = 0.0, 0.0
    for r in range(s.capacity.shape[1]):
        share = 1.0
        if s.capacity[k, r] > 0:
            share = (s.capacity[k, r] - s.free[b, k, r] + s.demand[job, r]) / s.capacity[k, r]
        total += share
        squares += share * share
    mean = total / s.capacity.shape[1]
    if rule == LEAST:
        return float(1.0 - mean)
    if rule == BALANCED:
        return float(1.0 - np.sqrt(max(squares / s.capacity.shape[1] - mean * mean, 0.0)))
    return float(mean)


@inlined
def _machine_for(s: State, rules: Rules, b: int, m: int, rule: int) -> int:
    """Return the machine for the job of a slot: the lowest it may take, or the best by the rule's score."""
    best, chosen = -np.inf, -1
    for k in range(s.kind.shape[0]):
        if _may(s, rules, b, m, k):
            if rule < LEAST:
                return k
            score = _allocated(s, b, s.slot_job[b, m], k, rule)
            if score > best:
                best, chosen = score, k
    return chosen


@inlined
def _may(s: State, rules: Rules, b: int, m: int, k: int) -> bool:
    if rules.dispatch == GREEDY:
        return bool(s.can[b, m, k] and fits(s, b, m))
    return could_ever(s, b, m, k)


@inlined
def _best_job(s: State, rules: Rules, b: int, rule: int, age: float) -> int:
    best, chosen = -np.inf, -1
    for m in range(s.waiting[b]):
        if rules.dispatch != GREEDY or fits(s, b, m):
            if rule in (FCFS, LEAST, MOST, BALANCED):
                return m
            score = _job_score(s, b, s.slot_job[b, m], rule, age)
            if chosen < 0 or score > best:
                best, chosen = score, m
    return chosen


@inlined
def _best_pair(s: State, rules: Rules, b: int, who: Players) -> int:
    """Return the best (job, machine) of Packer or Tetris."""
    shortest, longest_wait = np.inf, TINY
    for m in range(s.waiting[b]):
        shortest = min(shortest, s.estimate[s.slot_job[b, m]])
        longest_wait = max(longest_wait, s.now[b] - s.arrival[s.slot_job[b, m]])
    best, chosen = -np.inf, -1
    for m in range(s.waiting[b]):
        job = s.slot_job[b, m]
        for k in range(s.kind.shape[0]):
            if _may(s, rules, b, m, k):
                score = _alignment(s, b, job, k)
                if who.rule[b] == TETRIS:
                    packing, fairness = who.knobs[b, 0], who.knobs[b, 1]
                    short, fair = shortest / s.estimate[job], (s.now[b] - s.arrival[job]) / longest_wait
                    score = packing * score + fairness * fair + (1.0 - packing - fairness) * short
                if score > best:
                    best, chosen = score, m * s.kind.shape[0] + k
    return chosen


@inlined
def _random(s: State, rules: Rules, b: int, draw: float) -> int:
    legal = 0
    for m in range(s.waiting[b]):
        for k in range(s.kind.shape[0]):
            legal += _may(s, rules, b, m, k)
    place = int(draw * legal)
    for m in range(s.waiting[b]):
        for k in range(s.kind.shape[0]):
            if _may(s, rules, b, m, k):
                if place == 0:
                    return int(m * s.kind.shape[0] + k)
                place -= 1
    return -1


@inlined
def decide(s: State, rules: Rules, b: int, who: Players) -> int:
    """Return the next action of an episode that awaits one, and count it."""
    rule, decision = who.rule[b], who.decision[b]
    who.decision[b] = decision + 1
    if rule == RANDOM:
        return _random(s, rules, b, uniform(who.key[b], decision))
    if rule in (PACKER, TETRIS):
        return _best_pair(s, rules, b, who)
    m = _best_job(s, rules, b, rule, who.knobs[b, 0])
    return int(m * s.kind.shape[0] + _machine_for(s, rules, b, m, rule))


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
            advance_episode(s, rules, b, decide(s, rules, b, who))
        over += s.done[b]
    return over
