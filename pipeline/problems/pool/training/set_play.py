"""Compiled play of `sets`: whole episodes, or up to some step, in one kernel; decisions are kept or not."""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from pipeline.core import BoolArray, FloatArray, IntArray, KeyArray
from pipeline.learning.sampling import draw_action
from pipeline.problems.pool.networks.compiled_sets import SetWeights, logits_of, set_buffer
from pipeline.problems.pool.networks.describing import describe
from pipeline.problems.pool.networks.noting import notes_for
from pipeline.problems.pool.networks.relative import Relative
from pipeline.problems.pool.simulator.compiled.kernels import go_on
from pipeline.problems.pool.simulator.compiled.rules import Players, decide
from pipeline.problems.pool.simulator.compiled.state import Rules, State
from pipeline.problems.pool.training.decisions import ActionBuffer
from pipeline.problems.pool.training.episode_arrays import arrays_of, refresh
from pipeline.simulation.compiled import dealt
from pipeline.simulation.draws import uniform

NETWORK = -1  # a rule of nobody: the network decides


class RunState(NamedTuple):
    """How far some episodes are, and how they go on."""

    key: KeyArray  # [B]  of the draws
    turn: IntArray  # [B]  decisions taken so far, whoever took them; counted on
    until: int  # no decision is taken from this step on
    greedy: bool
    most: int  # decisions of an episode in one call
    threads: int
    keep: bool  # each decision, at its episode's places; else one of each episode is overwritten again and again


@njit(cache=True, parallel=True)
def play_some(
    s: State,
    rules: Rules,
    rows: IntArray,
    w: SetWeights,
    who: Players,
    how: RunState,
    observed: Relative,
    done: ActionBuffer,
    count: IntArray,
) -> int:
    """Play some episodes, and count what each of them decides; return how many are over."""
    over = 0
    for k in prange(rows.shape[0]):
        i = dealt(int(np.int64(k)), rows.shape[0], how.threads)  # prange counts in uint64
        count[i] = _play(s, rules, rows[i], w, who, how, observed, done, i * how.most if how.keep else i)
        over += s.done[rows[i]]
    return over


@njit(cache=True)
def _play(
    s: State,
    rules: Rules,
    b: int,
    w: SetWeights,
    who: Players,
    how: RunState,
    observed: Relative,
    done: ActionBuffer,
    first: int,
) -> int:
    arrays, buffer, share = arrays_of(s, b), set_buffer(w, s.slot_job.shape[1]), np.empty(s.slot_job.shape[1] + 1)
    notes = notes_for(s.slot_job.shape[1], s.capacity.shape[0])
    for k in range(how.most):
        if s.done[b] or s.now[b] >= how.until:
            return k
        at = first + k if how.keep else first
        network = who.rule[b] == NETWORK
        if how.keep or network:
            refresh(s, rules, b, arrays, observed, at)
            describe(arrays, 0, observed, at, notes)
        if network:
            logits_of(w, observed, at, buffer)
            action = _taken(buffer.logits, observed.may, at, how, b, share)
        else:
            action = decide(s, rules, b, who)
        if how.keep:
            done.action[at], done.episode[at], done.turn[at], done.now[at] = action, b, how.turn[b], s.now[b]
        how.turn[b] += 1
        go_on(s, rules, b, action)
    return how.most


@njit(cache=True)
def _taken(logits: FloatArray, may: BoolArray, at: int, how: RunState, b: int, share: FloatArray) -> int:
    if not how.greedy:
        return int(draw_action(logits, may, at, True, uniform(how.key[b], how.turn[b]), share))
    chosen = -1
    for a in range(may.shape[1]):
        if may[at, a] and (chosen < 0 or logits[a] > logits[chosen]):
            chosen = a
    return chosen
