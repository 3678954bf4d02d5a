"""Compiled play of `sets`: whole episodes, or up to some step, in one kernel; what was seen and done is kept or not."""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from pipeline.core import BoolArray, FloatArray, IntArray, KeyArray
from pipeline.learning.sampling import draw_action
from pipeline.problems.pool.networks.compiled_sets import Weights, logits_of, scratch
from pipeline.problems.pool.networks.describing import describe
from pipeline.problems.pool.networks.relative import Relative
from pipeline.problems.pool.simulator.compiled.kernels import go_on
from pipeline.problems.pool.simulator.compiled.rules import Players, decide
from pipeline.problems.pool.simulator.compiled.state import Rules, State
from pipeline.problems.pool.training.scenes import refresh, scene_of
from pipeline.simulation.draws import uniform

NETWORK = -1  # a rule of nobody: the network decides


class Going(NamedTuple):
    """How some episodes go on."""

    key: KeyArray  # [B]  of the draws
    turn: IntArray  # [B]  decisions taken so far, whoever took them; counted on
    until: int  # no decision is taken from this step on
    greedy: bool
    most: int  # decisions of an episode in one call


class Notes(NamedTuple):
    """What was done in D decisions."""

    action: IntArray  # [D]
    episode: IntArray  # [D]
    now: IntArray  # [D]


@njit(cache=True, parallel=True)
def play_kept(
    s: State,
    rules: Rules,
    rows: IntArray,
    w: Weights,
    who: Players,
    how: Going,
    seen: Relative,
    notes: Notes,
    count: IntArray,
) -> int:
    """Play some episodes and keep every decision, each episode's from its place on; return how many are over."""
    over = 0
    for k in prange(rows.shape[0]):
        i = int(np.int64(k))  # prange counts in uint64
        count[i] = _play(s, rules, rows[i], w, who, how, seen, notes, i * how.most, True)
        over += s.done[rows[i]]
    return over


@njit(cache=True, parallel=True)
def play_on(
    s: State, rules: Rules, rows: IntArray, w: Weights, who: Players, how: Going, seen: Relative, notes: Notes
) -> int:
    """Play some episodes and keep nothing; there is room for one decision of each."""
    over = 0
    for k in prange(rows.shape[0]):
        i = int(np.int64(k))
        _play(s, rules, rows[i], w, who, how, seen, notes, i, False)
        over += s.done[rows[i]]
    return over


@njit(cache=True)
def _play(
    s: State,
    rules: Rules,
    b: int,
    w: Weights,
    who: Players,
    how: Going,
    seen: Relative,
    notes: Notes,
    first: int,
    keep: bool,
) -> int:
    scene, room, share = scene_of(s, b), scratch(w, s.slot_job.shape[1]), np.empty(s.slot_job.shape[1] + 1)
    for k in range(how.most):
        if s.done[b] or s.now[b] >= how.until:
            return k
        at = first + k if keep else first
        network = who.rule[b] == NETWORK
        if keep or network:
            refresh(s, rules, b, scene, seen, at)
            describe(scene, 0, seen, at)
        if network:
            logits_of(w, seen, at, room)
            action = _taken(room.logits, seen.may, at, how, b, share)
        else:
            action = decide(s, rules, b, who)
        how.turn[b] += 1
        if keep:
            notes.action[at], notes.episode[at], notes.now[at] = action, b, s.now[b]
        go_on(s, rules, b, action)
    return how.most


@njit(cache=True)
def _taken(logits: FloatArray, may: BoolArray, at: int, how: Going, b: int, share: FloatArray) -> int:
    if not how.greedy:
        return int(draw_action(logits, may, at, True, uniform(how.key[b], how.turn[b]), share))
    chosen = -1
    for a in range(may.shape[1]):
        if may[at, a] and (chosen < 0 or logits[a] > logits[chosen]):
            chosen = a
    return chosen
