"""Roll-outs of `sets` and of heuristics inside one compiled kernel, some decisions of every episode at a time."""

from typing import NamedTuple

import numpy as np
from numba import get_num_threads, njit, prange

from pipeline.core import BoolArray, CompiledRule, FloatArray, IntArray, KeyArray
from pipeline.learning.sampling import draw_action
from pipeline.problems.pool.networks.compiled_sets import SetWeights, logits_of, set_buffer
from pipeline.problems.pool.networks.describing import describe
from pipeline.problems.pool.networks.relative import Relative, arrays_of, notes_for, refresh, relative_buffer
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.kernels import go_on
from pipeline.problems.pool.simulator.compiled.rules import Players, decide, players
from pipeline.problems.pool.simulator.compiled.state import Rules, State
from pipeline.problems.pool.training.decisions import ActionBuffer
from pipeline.simulation.compiled import dealt, uniform
from pipeline.simulation.rollout import to_end

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


AT_ONCE = 64  # decisions of an episode in one call of the kernel that keeps them
NEVER = 2**62  # a step that does not come
SOMEBODY = CompiledRule("sjf")


class Rollout(NamedTuple):
    """D decisions of B episodes."""

    observed: Relative
    action: IntArray  # [D]
    episode: IntArray  # [D]
    turn: IntArray  # [D]  place among the decisions of its episode
    now: IntArray  # [D]


class _Until(NamedTuple):
    """The episodes of a simulator that have not reached a step."""

    simulator: Batched
    step: int

    @property
    def rows(self) -> IntArray:
        rows = self.simulator.rows
        return rows[self.simulator.now[rows] < self.step]


class Roller:
    """What plays the episodes of a simulator: the same player goes on where it stopped."""

    def __init__(self, simulator: Batched, weights: SetWeights, key: KeyArray, greedy: bool = False) -> None:
        self._simulator, self._weights, self._greedy = simulator, weights, greedy
        self._who = players([SOMEBODY] * len(key), key)
        self._who.rule[:] = NETWORK
        self._turn = np.zeros(len(key), dtype=np.int64)

    def led_by(self, who: Players) -> "Roller":
        """Let heuristics decide instead of the network."""
        self._who = who
        return self

    def play(self, until: int = NEVER) -> None:
        """Play on up to a step, or to the end."""

        def advance(rows: IntArray) -> None:
            observed, done = relative_buffer(len(rows), self._simulator.cluster.slots), _action_buffer(len(rows))
            how = RunState(self._who.key, self._turn, until, self._greedy, NEVER, get_num_threads(), keep=False)
            count = np.zeros(len(rows), dtype=np.int64)
            self._simulator.run_kernel(play_some, rows, self._weights, self._who, how, observed, done, count)

        for _ in to_end(_Until(self._simulator, until), advance):
            pass

    def keep(self, until: int = NEVER) -> Rollout:
        """Play on up to a step, or to the end, and return every decision; there may be none."""
        parts = [self._kept(np.empty(0, dtype=np.int64), until)]
        for _ in to_end(_Until(self._simulator, until), lambda rows: parts.append(self._kept(rows, until))):
            pass
        observed = Relative._make(
            np.concatenate(columns) for columns in zip(*(part.observed for part in parts), strict=True)
        )
        rest = (np.concatenate(columns) for columns in zip(*(part[1:] for part in parts), strict=True))
        return Rollout(observed, *rest)

    def _kept(self, rows: IntArray, until: int) -> Rollout:
        slots, count = self._simulator.cluster.slots, np.zeros(len(rows), dtype=np.int64)
        observed, done = relative_buffer(len(rows) * AT_ONCE, slots), _action_buffer(len(rows) * AT_ONCE)
        if len(rows):
            how = RunState(self._who.key, self._turn, until, self._greedy, AT_ONCE, get_num_threads(), keep=True)
            self._simulator.run_kernel(play_some, rows, self._weights, self._who, how, observed, done, count)
        used = np.flatnonzero(np.arange(AT_ONCE) < count[:, None])
        return Rollout(observed.take(used), *(column[used] for column in done))


def _action_buffer(count: int) -> ActionBuffer:
    return ActionBuffer._make(np.empty((4, count), dtype=np.int64))
