"""Roll-outs of a network's own play.

A network that is compiled whole plays whole episodes inside one kernel, some decisions of each at a time: an episode's
state stays in the cache, and no array is handed back and forth between decisions. Others are asked in lock step.
"""

from typing import NamedTuple

import numpy as np
from numba import get_num_threads, njit, prange

from pipeline.core import IntArray, KeyArray
from pipeline.learning.sampling import draw_action
from pipeline.problems.pool.networks.compiled_mlp import MlpWeights, logits_of, mlp_buffer
from pipeline.problems.pool.networks.lookup import Places
from pipeline.problems.pool.networks.network import Network
from pipeline.problems.pool.nouns import CompactObservation
from pipeline.problems.pool.simulator.compiled.batch import Batched, flat, observe_one
from pipeline.problems.pool.simulator.compiled.kernels import go_on
from pipeline.problems.pool.simulator.compiled.state import Rules, State
from pipeline.problems.pool.training.decisions import ActionBuffer, DecisionBuffer, Decisions, by_chance, record
from pipeline.simulation.compiled import dealt, uniform
from pipeline.simulation.rollout import to_end

AT_LEAST = 64  # decisions of an episode in one call of the kernel, if it has as many
ALTOGETHER = 100_000  # of all episodes


class PlaySettings(NamedTuple):
    """How some decisions of each of B episodes are taken."""

    masked: bool  # are illegal actions out of the question?
    key: KeyArray  # [B]  of their draws
    turn: int  # the first decision's place in its episode
    most: int  # decisions of an episode
    threads: int


def play_by_chance(
    network: Network, simulator: Batched, masked: bool, key: KeyArray, buffer: DecisionBuffer | None = None
) -> Decisions:
    """Play every episode to its end, each action drawn with the network's chances; return all decisions.

    Args:
        network: plays as it is now.
        simulator: at the beginning of its episodes.
        masked: are illegal actions out of the question?
        key: random key [B] of each episode.
        buffer: where decisions are kept; they are lost when it is used again.

    Raises:
        UserError: nothing was asked for.
    """
    weights = network.compiled()
    if weights is None:
        return record(simulator, by_chance(network.frozen(), masked), key, buffer)
    buffer, used, turn = buffer or DecisionBuffer(), 0, 0

    def advance(rows: IntArray) -> None:
        nonlocal used, turn
        most = max(AT_LEAST, ALTOGETHER // len(rows))
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


@njit(cache=True, parallel=True)
def _play_rows(
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
    for k in prange(rows.shape[0]):
        i = dealt(int(np.int64(k)), rows.shape[0], how.threads)  # prange counts in uint64
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
    """Play one episode for some decisions, and write them down from a place on; return how many there were."""
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
        go_on(s, rules, b, action)
    return how.most
