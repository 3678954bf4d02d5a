"""Compiled heuristics, for the simulator's own state (many episodes at once) and for observations.

A job's duration here is the run time known to policies: exact, predicted or the user's estimate. Sources:

    SAF, F1                     Carastan-Santos and de Camargo, SC 2017 (F1 as fitted there)
    WFP3, UNICEP                Tang et al., Cluster 2009
    least, most and balanced    Kubernetes' NodeResourcesFit and NodeResourcesBalancedAllocation, in real numbers, where
                                Kubernetes scores in whole percents
    Tetris                      Grandl et al., SIGCOMM 2014, mixed with shortness and fairness as Deepk8s compares it
    peers                       the code of RLScheduler, Zhang et al., SC 2020

Plain definitions in numpy are in `tests/oracles/machines_heuristics.py`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from pipeline.core.types import CompiledRule, FloatArray, IntArray, KeyArray, Observation
from pipeline.problems.machines.env.nouns import GREEDY
from pipeline.problems.machines.env.simulator.dispatch import apply_action
from pipeline.problems.machines.env.simulator.placement import fits, holds
from pipeline.problems.machines.env.simulator.state import Rules, State
from pipeline.simulation.compiled import Span, inlined, threaded, uniform

TINY = 1e-15  # RLScheduler's guard of logarithms and quotients
NO_KNOBS = (0.0, 0.0)

# Numbers of the rules, by name in `CompiledRule`. Those before `packer` score jobs only, the others also machines.
RULES = {
    name: place
    for place, name in enumerate(
        (
            *("fcfs", "sjf", "saf", "saf_aged", "f1", "wfp3", "unicep", "wfp_peer", "uni_peer"),
            *("packer", "tetris_fair", "least_allocated", "most_allocated", "balanced_allocation"),
            *("sjf_most_allocated", "random_placement"),
        )
    )
}
FCFS, SJF, SAF, SAF_AGED, F1, WFP3, UNICEP, WFP_PEER, UNI_PEER = range(9)
PACKER, TETRIS, LEAST, MOST, BALANCED, SJF_MOST, RANDOM = range(9, 16)


class Players(NamedTuple):
    """Rule of each of B episodes, with its parameters and random draws."""

    rule: IntArray  # [B]
    knobs: FloatArray  # [B, 2]
    key: KeyArray  # [B]  of its draws
    decision: IntArray  # [B]  decisions so far


def players(rules: Sequence[CompiledRule], key: KeyArray) -> Players:
    """Return the players before the first decision, from one rule and key for each episode [B]."""
    rule = np.array([RULES[each.rule] for each in rules], dtype=np.int64)
    knobs = np.array([each.knobs or NO_KNOBS for each in rules], dtype=np.float64)
    return Players(rule, knobs, np.ascontiguousarray(key), np.zeros(len(rules), dtype=np.int64))


@inlined
def score_job(
    rule: int, estimate: float, wait: float, arrival: float, nodes: int, demand: IntArray, total: FloatArray, age: float
) -> float:
    """Score a job; `demand` [R] is its demand on each node, `total` [R] the capacity of all machines."""
    processors = float(max(nodes * (demand[0] / 1000.0), 1.0))  # units of the first resource on all nodes
    if rule in (WFP_PEER, UNI_PEER):
        wait = -1.0 - arrival  # as in RLScheduler's code: a job that has not started has scheduled time -1
    if rule == FCFS:
        return float(-arrival)
    if rule in (SJF, SJF_MOST):
        return float(-estimate)
    if rule in (SAF, SAF_AGED):
        area = 0.0
        for r in range(total.shape[0]):
            if total[r] > 0:
                area += estimate * (nodes * demand[r]) / total[r]
        return float(-area / (1.0 + wait / age) if rule == SAF_AGED else -area)
    if rule == F1:
        return float(-(np.log10(estimate) * processors + 870.0 * np.log10(max(arrival, 1.0))))
    if rule in (WFP3, WFP_PEER):
        ratio = wait / estimate
        return float(ratio * ratio * ratio * processors)
    return float((wait + TINY) / (np.log2(processors + TINY) * estimate))


@inlined
def _alignment(demand: IntArray, free: IntArray, capacity: IntArray) -> float:
    """Return the mean over resources of (demanded share * free share) of a machine; a missing resource counts as 0."""
    shares = 0.0
    for r in range(capacity.shape[0]):
        if capacity[r] > 0:
            whole = float(capacity[r])
            shares += demand[r] / whole * (free[r] / whole)
    return float(shares / capacity.shape[0])


@inlined
def _mix(alignment: float, shortness: float, fairness: float, packing: float, fair: float) -> float:
    """Return the score of Tetris from alignment, shortest duration / duration, and wait / longest wait."""
    return float(packing * alignment + fair * fairness + (1.0 - packing - fair) * shortness)


@inlined
def _allocated(rule: int, demand: IntArray, free: IntArray, capacity: IntArray) -> float:
    """Score a machine as Kubernetes does, by the shares in use with the job; the share of a missing resource is 1."""
    total, squares = 0.0, 0.0
    for r in range(capacity.shape[0]):
        share = 1.0
        if capacity[r] > 0:
            share = (capacity[r] - free[r] + demand[r]) / capacity[r]
        total += share
        squares += share * share
    mean = total / capacity.shape[0]
    if rule == LEAST:
        return float(1.0 - mean)
    if rule == BALANCED:
        return float(1.0 - np.sqrt(max(squares / capacity.shape[0] - mean * mean, 0.0)))
    return float(mean)


@njit(cache=True)
def score_view(
    view: Observation, rule: int, knobs: tuple[float, float], total: FloatArray, shortest: FloatArray,
    longest_wait: FloatArray, scores: FloatArray,
) -> None:  # fmt: skip
    """Write the scores [B, M, K] of waiting jobs on machines.

    Args:
        view: of B episodes.
        rule: a value of RULES.
        knobs: its parameters.
        total: [B, R] capacity of all machines.
        shortest: [B] shortest duration of the waiting jobs.
        longest_wait: [B] longest wait of the waiting jobs, above 0.
        scores: output; those of empty slots stay unchanged.
    """
    for i in range(view.now.shape[0]):
        for m in range(view.duration.shape[1]):
            if view.nodes[i, m] == 0:
                continue
            duration, wait, demand = float(view.duration[i, m]), float(view.waited[i, m]), view.demand[i, m]
            short, fair, arrival = shortest[i] / duration, wait / longest_wait[i], view.now[i] - wait
            for k in range(view.capacity.shape[1]):
                if rule < PACKER:
                    scores[i, m, k] = score_job(
                        rule, duration, wait, arrival, view.nodes[i, m], demand, total[i], knobs[0]
                    )
                elif rule >= LEAST:
                    scores[i, m, k] = _allocated(rule, demand, view.free[i, k, 0], view.capacity[i, k])
                else:
                    scores[i, m, k] = _alignment(demand, view.free[i, k, 0], view.capacity[i, k])
                    if rule == TETRIS:
                        scores[i, m, k] = _mix(scores[i, m, k], short, fair, knobs[0], knobs[1])


@inlined
def _may(s: State, rules: Rules, b: int, m: int, k: int) -> bool:
    if rules.dispatch == GREEDY:
        return bool(s.can[b, m, k] and fits(s, b, m))
    return holds(s, s.slot_job[b, m], k, s.capacity[k])


@inlined
def _best_job(s: State, rules: Rules, b: int, rule: int, age: float) -> int:
    best, chosen = -np.inf, -1
    for m in range(s.waiting[b]):
        if rules.dispatch != GREEDY or fits(s, b, m):
            if rule in (FCFS, LEAST, MOST, BALANCED):
                return m
            score = score_state(s, b, s.slot_job[b, m], rule, age)
            if chosen < 0 or score > best:
                best, chosen = score, m
    return chosen


@inlined
def score_state(s: State, b: int, job: int, rule: int, age: float) -> float:
    """Score a waiting job of an episode."""
    wait = s.now[b] - s.arrival[job]
    return score_job(rule, s.estimate[job], wait, s.arrival[job], s.nodes[job], s.demand[job], s.total, age)


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
                score = _alignment(s.demand[job], s.free[b, k], s.capacity[k])
                if who.rule[b] == TETRIS:
                    short, fair = shortest / s.estimate[job], (s.now[b] - s.arrival[job]) / longest_wait
                    score = _mix(score, short, fair, who.knobs[b, 0], who.knobs[b, 1])
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
    best, chosen = -np.inf, -1  # the lowest machine that may be taken, or the best by the rule's score
    for k in range(s.kind.shape[0]):
        if _may(s, rules, b, m, k):
            score = 0.0 if rule < LEAST else _allocated(rule, s.demand[s.slot_job[b, m]], s.free[b, k], s.capacity[k])
            if score > best:
                best, chosen = score, k
            if rule < LEAST:
                break
    return int(m * s.kind.shape[0] + chosen)


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
            apply_action(s, rules, b, decide(s, rules, b, who))
        over += s.done[b]
    return over
