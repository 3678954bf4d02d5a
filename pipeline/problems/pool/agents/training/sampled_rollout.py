"""Rollouts of a network that samples its actions.

A compiled network plays in one kernel, several decisions of each episode at a time: the state of an episode stays in
the cache, and no array is passed to Python between decisions. Other networks decide in lock step.
"""

from typing import NamedTuple

import numpy as np
from numba import get_num_threads, njit

from pipeline.core.types import IntArray, KeyArray
from pipeline.learning.sampling import draw_action
from pipeline.problems.pool.agents.networks.compiled_mlp import MlpWeights, logits_of, mlp_buffer
from pipeline.problems.pool.agents.networks.lookup import Places
from pipeline.problems.pool.agents.networks.network import Network
from pipeline.problems.pool.agents.training.decisions import ActionBuffer, DecisionBuffer, Decisions, by_chance, record
from pipeline.problems.pool.env.nouns import CompactObservation
from pipeline.problems.pool.env.simulator.batch import Batched, flat, observe_one
from pipeline.problems.pool.env.simulator.kernels import advance_episode
from pipeline.problems.pool.env.simulator.state import Rules, State
from pipeline.simulation.compiled import Span, dealt, threaded, uniform
from pipeline.simulation.rollout import to_end

MIN_DECISIONS = 64  # per episode in one call of the kernel, if it has that many
TOTAL_DECISIONS = 100_000  # of all episodes in one call


class PlaySettings(NamedTuple):
    """Settings of some decisions of B episodes."""

    masked: bool  # are illegal actions excluded?
    key: KeyArray  # [B]  random keys of their draws
    turn: int  # number of the first decision in its episode
    most: int  # maximum of decisions per episode
    threads: int


def play_by_chance(
    network: Network, simulator: Batched, masked: bool, key: KeyArray, buffer: DecisionBuffer | None = None
) -> Decisions:
    """Play every episode to its end, sampling actions by the network's probabilities; return all decisions.

    Args:
        network: plays with its current weights.
        simulator: at the beginning of its episodes.
        masked: are illegal actions excluded?
        key: random key [B] of each episode.
        buffer: holds the decisions until its next use.

    Raises:
        UserError: there were no decisions.
    """
    weights = network.compiled()
    if weights is None:
        return record(simulator, by_chance(network.frozen(), masked), key, buffer)
    buffer, used, turn = buffer or DecisionBuffer(), 0, 0

    def advance(rows: IntArray) -> None:
        nonlocal used, turn
        most = max(MIN_DECISIONS, TOTAL_DECISIONS // len(rows))
        here = slice(used, used + len(rows) * most)
        written = buffer.reserve(simulator, used, len(rows) * most).take(here)
        count = np.empty(len(rows), dtype=np.int64)
        simulator.run_kernel(
            _play_rows,
            rows,
            *weights,
            PlaySettings(masked, key, turn, most, get_num_threads()),
            written.observed,
            ActionBuffer(*written[1:5]),
            count,
        )
        used, turn = used + written.close_up(count), turn + most

    for _ in to_end(simulator, advance):
        pass
    return buffer.filled(simulator, used)


@threaded(lambda s, rules, rows, *_: len(rows))
def _play_rows(
    span: Span,
    s: State,
    rules: Rules,
    rows: IntArray,
    w: MlpWeights,
    p: Places,
    how: PlaySettings,
    observed: CompactObservation,
    done: ActionBuffer,
    count: IntArray,
) -> int:
    over = 0
    for k in range(*span):
        i = dealt(k, rows.shape[0], how.threads)
        count[i] = _play(s, rules, rows[i], w, p, how, observed, done, i * how.most)
        over += s.done[rows[i]]
    return over


@njit(cache=True)
def _play(
    s: State,
    rules: Rules,
    b: int,
    w: MlpWeights,
    p: Places,
    how: PlaySettings,
    observed: CompactObservation,
    done: ActionBuffer,
    first: int,
) -> int:
    """Play some decisions of one episode, written from index `first` on; return their number."""
    buffer, share, free = mlp_buffer(w, p), np.empty(observed.may.shape[1]), flat(s)
    for k in range(how.most):
        if s.done[b]:
            return k
        at, turn = first + k, how.turn + k
        observe_one(s, rules, free, b, observed, at)
        logits_of(w, p, observed, at, buffer)
        draw = uniform(how.key[b], turn)
        action = draw_action(buffer.logits, observed.may, at, how.masked, draw, share)
        done.action[at], done.episode[at], done.turn[at], done.now[at] = action, b, turn, s.now[b]
        advance_episode(s, rules, b, action)
    return how.most
