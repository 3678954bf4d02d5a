"""Roll-outs of a network's own play.

A network that is compiled whole plays whole episodes inside one kernel, some decisions of each at a time: an episode's
state stays in the cache, and no array is handed back and forth between decisions. Others are asked in lock step.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from pipeline.core import IntArray, KeyArray
from pipeline.learning.sampling import draw_action
from pipeline.problems.pool.networks.compiled_mlp import Weights, logits_of, scratch
from pipeline.problems.pool.networks.lookup import Places
from pipeline.problems.pool.networks.network import Network
from pipeline.problems.pool.nouns import Seen
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.kernels import go_on
from pipeline.problems.pool.simulator.compiled.observing import flat, look_at
from pipeline.problems.pool.simulator.compiled.state import Rules, State
from pipeline.problems.pool.training.decisions import Book, Decisions, by_chance, record
from pipeline.simulation.draws import uniform

AT_LEAST = 64  # decisions of an episode in one call of the kernel, if it has as many
ALTOGETHER = 100_000  # of all episodes


class How(NamedTuple):
    """How some decisions of each of B episodes are taken."""

    masked: bool  # are illegal actions out of the question?
    key: KeyArray  # [B]  of their draws
    turn: int  # the first decision's place in its episode
    most: int  # decisions of an episode


class Notes(NamedTuple):
    """What was done in D decisions: columns of Decisions."""

    action: IntArray  # [D]
    episode: IntArray  # [D]
    turn: IntArray  # [D]
    now: IntArray  # [D]


def play_by_chance(
    network: Network, simulator: Batched, masked: bool, key: KeyArray, book: Book | None = None
) -> Decisions:
    """Play every episode to its end, each action drawn with the network's chances; return all decisions.

    Args:
        network: plays as it is now.
        simulator: at the beginning of its episodes.
        masked: are illegal actions out of the question?
        key: random key [B] of each episode.
        book: where decisions are kept; they are lost when it is used again.

    Raises:
        UserError: nothing was asked for.
    """
    weights = network.compiled()
    if weights is None:
        return record(simulator, by_chance(network.frozen(), masked), key, book)
    book, used, turn = book or Book(), 0, 0
    while len(rows := simulator.rows):
        most = max(AT_LEAST, ALTOGETHER // len(rows))
        room = slice(used, used + len(rows) * most)
        page = book.pages(simulator, used, len(rows) * most).take(room)
        count = np.empty(len(rows), dtype=np.int64)
        simulator.hand_over(
            _play_rows, rows, *weights, How(masked, key, turn, most), page.seen, Notes(*page[1:5]), count
        )
        used, turn = used + page.close_up(count), turn + most
    return book.all(simulator, used)


@njit(cache=True, parallel=True)
def _play_rows(
    s: State,
    rules: Rules,
    rows: IntArray,
    w: Weights,
    p: Places,
    how: How,
    seen: Seen,
    notes: Notes,
    count: IntArray,
) -> int:
    over = 0
    for i in prange(rows.shape[0]):
        count[i] = _play(s, rules, rows[i], w, p, how, seen, notes, i * how.most)
        over += s.done[rows[i]]
    return over


@njit(cache=True)
def _play(
    s: State,
    rules: Rules,
    b: int,
    w: Weights,
    p: Places,
    how: How,
    seen: Seen,
    notes: Notes,
    first: int,
) -> int:
    """Play one episode for some decisions, and write them down from a place on; return how many there were."""
    room, share, free = scratch(w, p), np.empty(seen.may.shape[1]), flat(s)
    for k in range(how.most):
        if s.done[b]:
            return k
        at, turn = first + k, how.turn + k
        look_at(s, rules, free, b, seen, at)
        logits_of(w, p, seen, at, room)
        draw = uniform(how.key[b], turn)
        action = draw_action(room.logits, seen.may, at, how.masked, draw, share)
        notes.action[at], notes.episode[at], notes.turn[at], notes.now[at] = action, b, turn, s.now[b]
        go_on(s, rules, b, action)
    return how.most
