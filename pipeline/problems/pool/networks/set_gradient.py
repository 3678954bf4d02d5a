"""The gradient of the policy-gradient loss by the weights of `sets`, compiled.

Only legal jobs are scored and only waiting ones are looked at, which with many slots is a small part of what tensors
padded to all slots would cost. The derivative is that of `Sets.forward`; a test holds it to torch's.
"""

from typing import NamedTuple

import numpy as np
from numba import get_num_threads, njit, prange

from pipeline.core import FloatArray
from pipeline.problems.pool.networks.compiled_sets import SetBuffer, SetWeights, logits_of, set_buffer
from pipeline.problems.pool.networks.loss import Loss, loss_of
from pipeline.problems.pool.networks.relative import HASTE, OF_JOB, OF_REST, Relative
from pipeline.problems.pool.networks.rows import add_mixture, add_outer, mixture
from pipeline.simulation.compiled import lean

BLOCK = 256  # decisions whose gradients are summed in float32; the sums of blocks are, in float64


class Turned(NamedTuple):
    """Weights by what comes out."""

    of_all: FloatArray  # [H, 2 * H]  without the rest
    job_part: FloatArray  # [H, H]
    all_part: FloatArray  # [H, H]


class Hidden(NamedTuple):
    """Gradients by hidden units, which one thread writes on."""

    logit: FloatArray  # [A]
    each: FloatArray  # [M, H]
    before: FloatArray  # [H]  of one job's score, before its rectifier
    shared: FloatArray  # [H]
    common: FloatArray  # [H]
    pooled: FloatArray  # [2 * H]
    nothing: FloatArray  # [2 * H]  zeros, for sums that begin there


def gradient(w: SetWeights, observed: Relative, loss: Loss) -> tuple[SetWeights, float]:
    """Return the gradient of the decisions' summed loss, and their summed entropy.

    It is summed in a fixed order for a given number of threads.
    """
    shares, units = get_num_threads(), len(w.score)
    turned = Turned(w.of_all[: 2 * units].T.copy(), w.job_part.T.copy(), w.all_part.T.copy())
    parts = SetWeights._make(np.zeros((shares, *table.shape)) for table in w)
    entropy = np.zeros(shares)
    _learn_all(w, turned, observed, loss, parts, entropy)
    return SetWeights._make(part.sum(axis=0) for part in parts), float(entropy.sum())


@njit(cache=True, parallel=True)
def _learn_all(
    w: SetWeights, t: Turned, observed: Relative, loss: Loss, parts: SetWeights, entropy: FloatArray
) -> None:
    shares, count = entropy.shape[0], loss.action.shape[0]
    share = -(-count // shares)
    for k in prange(shares):
        part = int(np.int64(k))
        for begin in range(part * share, min((part + 1) * share, count), BLOCK):
            _learn(w, t, observed, loss, parts, entropy, part, begin, min(begin + BLOCK, (part + 1) * share, count))


@njit(cache=True)
def _learn(
    w: SetWeights,
    t: Turned,
    observed: Relative,
    loss: Loss,
    parts: SetWeights,
    entropy: FloatArray,
    part: int,
    begin: int,
    end: int,
) -> None:
    """Learn a block of decisions, and add what was found to a part's sums."""
    slots = observed.job.shape[1]
    buffer, g, to = set_buffer(w, slots), _hidden(slots, len(w.score)), _nothing(w)
    for i in range(begin, end):
        logits_of(w, observed, i, buffer)
        entropy[part] += loss_of(buffer.logits, observed.may, i, loss, g.logit)
        _scores(w, t, observed, i, buffer, g, to)
        _rest(w, t, observed, i, buffer, g, to)
        _jobs(observed, i, buffer, g, to)
    _add(parts, part, to)


@njit(cache=True)
def _hidden(slots: int, units: int) -> Hidden:
    return Hidden(
        np.zeros(slots + 1, dtype=np.float32),
        np.zeros((slots, units), dtype=np.float32),
        np.zeros(units, dtype=np.float32),
        np.zeros(units, dtype=np.float32),
        np.zeros(units, dtype=np.float32),
        np.zeros(2 * units, dtype=np.float32),
        np.zeros(2 * units, dtype=np.float32),
    )


@njit(cache=True)
def _nothing(w: SetWeights) -> SetWeights:
    """Return zeros of the shapes of the weights; compiled code does not go through the fields of a tuple."""
    return SetWeights(
        np.zeros_like(w.of_job),
        np.zeros_like(w.job_bias),
        np.zeros_like(w.of_all),
        np.zeros_like(w.all_bias),
        np.zeros_like(w.job_part),
        np.zeros_like(w.part_bias),
        np.zeros_like(w.all_part),
        np.zeros_like(w.score),
        np.zeros_like(w.direct),
        np.zeros_like(w.void),
        np.zeros_like(w.void_bias),
    )


@njit(cache=True)
def _add(parts: SetWeights, part: int, to: SetWeights) -> None:
    parts.of_job[part] += to.of_job
    parts.job_bias[part] += to.job_bias
    parts.of_all[part] += to.of_all
    parts.all_bias[part] += to.all_bias
    parts.job_part[part] += to.job_part
    parts.part_bias[part] += to.part_bias
    parts.all_part[part] += to.all_part
    parts.score[part] += to.score
    parts.direct[part] += to.direct
    parts.void[part] += to.void
    parts.void_bias[part] += to.void_bias


@lean
def _scores(w: SetWeights, t: Turned, observed: Relative, i: int, buffer: SetBuffer, g: Hidden, to: SetWeights) -> None:
    """Go back from the logits of legal jobs to what each job is, and to what all share."""
    units = len(w.score)
    for h in range(units):
        g.shared[h] = g.nothing[h]
    for m in range(observed.job.shape[1]):
        if not observed.may[i, m]:
            continue
        slope = g.logit[m]
        mixture(w.job_part, buffer.each[m], units, buffer.shared, buffer.hidden)
        for h in range(units):
            alive = buffer.hidden[h] > 0
            to.score[h] += slope * buffer.hidden[h] if alive else np.float32(0.0)
            g.before[h] = slope * w.score[h] if alive else np.float32(0.0)
            g.shared[h] += g.before[h]
        for k in range(OF_JOB):
            to.direct[k] += slope * observed.job[i, m, k]
        add_outer(to.job_part, buffer.each[m], units, g.before)
        mixture(t.job_part, g.before, units, g.nothing, g.each[m])


@lean
def _rest(w: SetWeights, t: Turned, observed: Relative, i: int, buffer: SetBuffer, g: Hidden, to: SetWeights) -> None:
    """Go back from void and from what all share to the pooled jobs."""
    units, slope = len(w.score), g.logit[observed.job.shape[1]]
    for h in range(units):
        to.part_bias[h] += g.shared[h]
        to.void[h] += slope * buffer.common[h]
        g.common[h] = slope * w.void[h]
    for k in range(OF_REST):
        to.void[units + k] += slope * observed.rest[i, k]
    to.void_bias[0] += slope
    add_outer(to.all_part, buffer.common, units, g.shared)
    add_mixture(t.all_part, g.shared, units, g.common)
    for h in range(units):
        g.common[h] = g.common[h] if buffer.common[h] > 0 else np.float32(0.0)
        to.all_bias[h] += g.common[h]
    add_outer(to.of_all, buffer.everything, 2 * units + OF_REST, g.common)
    mixture(t.of_all, g.common, units, g.nothing, g.pooled)


@lean
def _jobs(observed: Relative, i: int, buffer: SetBuffer, g: Hidden, to: SetWeights) -> None:
    """Go back from the pooled jobs to each; of equally large ones the first has the maximum's."""
    units, waiting = len(to.score), 0
    for m in range(observed.job.shape[1]):
        waiting += int(observed.job[i, m, HASTE] > 0)
    for h in range(units):
        g.pooled[h] /= np.float32(max(waiting, 1))
        if buffer.everything[units + h] <= 0:
            g.pooled[units + h] = np.float32(0.0)
    for m in range(observed.job.shape[1]):
        if observed.job[i, m, HASTE] == 0:
            continue
        asked = observed.may[i, m]  # else its score is nobody's, and nothing came back from it
        for h in range(units):
            value = buffer.each[m, h]
            first = g.pooled[units + h] if value == buffer.everything[units + h] else np.float32(0.0)
            g.pooled[units + h] -= first  # the next job that is as large has nothing
            more = ((g.each[m, h] if asked else np.float32(0.0)) + first) + g.pooled[h]
            g.each[m, h] = more if value > 0 else np.float32(0.0)
            to.job_bias[h] += g.each[m, h]
        add_outer(to.of_job, observed.job[i, m], OF_JOB, g.each[m])
