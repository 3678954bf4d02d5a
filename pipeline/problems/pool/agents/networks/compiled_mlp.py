"""DeepRM's network, fully compiled: logits of single observations for play, and the gradient of many decisions."""

from typing import NamedTuple

import numpy as np
from numba import get_num_threads, njit

from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.pool.agents.networks.lookup import Places, add_up, max_pieces, scatter_row
from pipeline.problems.pool.agents.networks.loss import Loss, loss_of
from pipeline.problems.pool.agents.networks.rows import add_mixture, add_outer
from pipeline.problems.pool.env.nouns import CompactObservation
from pipeline.simulation.compiled import Span, inlined, threaded

FEW = 64  # observations: fewer are faster on one thread
BLOCK = 1024  # decisions summed in float32, except for the table; sums of blocks are in float64


class MlpWeights(NamedTuple):
    """Weights of a network; H and A are padded with zeros."""

    table: FloatArray  # [pieces, H]  of the first layer, see `lookup`
    bias: FloatArray  # [H]  of the first layer
    last: FloatArray  # [H, A]
    last_bias: FloatArray  # [A]


class Gradient(NamedTuple):
    """Gradient of the loss of some decisions by the weights, for each thread's share of the decisions."""

    table: FloatArray  # [shares, pieces, H]
    bias: FloatArray  # [shares, H]
    last: FloatArray  # [shares, H, A]
    last_bias: FloatArray  # [shares, A]
    entropy: FloatArray  # [shares]  summed over decisions


class MlpBuffer(NamedTuple):
    """Work arrays of one thread."""

    found: IntArray  # [pieces of an observation]
    hidden: FloatArray  # [H]
    logits: FloatArray  # [A]


@njit(cache=True)
def mlp_buffer(w: MlpWeights, p: Places) -> MlpBuffer:
    """Return empty work arrays."""
    found = np.empty(max_pieces(p), dtype=np.int64)
    return MlpBuffer(found, np.empty_like(w.bias), np.empty_like(w.last_bias))


@inlined
def logits_of(w: MlpWeights, p: Places, observed: CompactObservation, i: int, buffer: MlpBuffer) -> int:
    """Write the hidden layer and the logits of one observation; return the number of its pieces."""
    count = add_up(w.table, observed, p, i, buffer.found, buffer.hidden)
    for h in range(len(w.bias)):
        buffer.hidden[h] = max(buffer.hidden[h] + w.bias[h], np.float32(0.0))
    for a in range(len(w.last_bias)):
        buffer.logits[a] = w.last_bias[a]
    add_mixture(w.last, buffer.hidden, len(buffer.hidden), buffer.logits)
    return count


def forward(w: MlpWeights, p: Places, observed: CompactObservation) -> FloatArray:
    """Return the logits [D, A] of observations; those of an observation do not depend on the others."""
    logits = np.empty((len(observed.cells), observed.may.shape[1]), dtype=np.float32)
    if len(logits) < FEW:
        _decide(w, p, observed, 0, len(logits), logits)
    else:
        _decide_all(w, p, observed, get_num_threads(), logits)
    return logits


@njit(cache=True)
def _decide(w: MlpWeights, p: Places, observed: CompactObservation, begin: int, end: int, logits: FloatArray) -> None:
    buffer = mlp_buffer(w, p)
    for i in range(begin, end):
        logits_of(w, p, observed, i, buffer)
        for a in range(logits.shape[1]):
            logits[i, a] = buffer.logits[a]


@threaded(lambda w, p, observed, parts, logits: parts)
def _decide_all(
    span: Span, w: MlpWeights, p: Places, observed: CompactObservation, parts: int, logits: FloatArray
) -> None:
    share = -(-logits.shape[0] // parts)
    for part in range(*span):
        _decide(w, p, observed, part * share, min((part + 1) * share, logits.shape[0]), logits)


def gradient(w: MlpWeights, p: Places, observed: CompactObservation, loss: Loss) -> Gradient:
    """Return the gradient of the decisions' summed loss, in a fixed order for a given number of threads."""
    shares = get_num_threads()
    parts = Gradient(
        np.zeros((shares, *w.table.shape), dtype=np.float32),
        np.zeros((shares, *w.bias.shape)),
        np.zeros((shares, *w.last.shape)),
        np.zeros((shares, *w.last_bias.shape)),
        np.zeros(shares),
    )
    _learn_all(w, p, w.last.T.copy(), observed, loss, parts)
    return parts


@threaded(lambda w, p, last, observed, loss, parts: len(parts.entropy))
def _learn_all(
    span: Span, w: MlpWeights, p: Places, last: FloatArray, observed: CompactObservation, loss: Loss, parts: Gradient
) -> None:
    shares = parts.entropy.shape[0]
    share = -(-loss.action.shape[0] // shares)
    for part in range(*span):
        for begin in range(part * share, min((part + 1) * share, loss.action.shape[0]), BLOCK):
            end = min(begin + BLOCK, (part + 1) * share, loss.action.shape[0])
            _learn(w, p, last, observed, loss, parts, part, begin, end)


@njit(cache=True)
def _learn(
    w: MlpWeights,
    p: Places,
    last: FloatArray,
    observed: CompactObservation,
    loss: Loss,
    parts: Gradient,
    part: int,
    begin: int,
    end: int,
) -> None:
    buffer, table = mlp_buffer(w, p), parts.table[part]
    by_logit, by_hidden = np.zeros_like(w.last_bias), np.empty_like(w.bias)
    bias, by_last, last_bias = np.zeros_like(w.bias), np.zeros_like(w.last), np.zeros_like(w.last_bias)
    entropy = 0.0
    for i in range(begin, end):
        count = logits_of(w, p, observed, i, buffer)
        entropy += loss_of(buffer.logits, observed.may, i, loss, by_logit)
        add_outer(by_last, buffer.hidden, len(buffer.hidden), by_logit)
        by_hidden[:] = 0.0
        add_mixture(last, by_logit, len(by_logit), by_hidden)
        for a in range(len(by_logit)):
            last_bias[a] += by_logit[a]
        for h in range(len(by_hidden)):
            by_hidden[h] = by_hidden[h] if buffer.hidden[h] > 0.0 else np.float32(0.0)
            bias[h] += by_hidden[h]
        scatter_row(table, observed, p, i, buffer.found, count, by_hidden)
    parts.entropy[part] += entropy
    parts.bias[part] += bias
    parts.last[part] += by_last
    parts.last_bias[part] += last_bias
