"""The scores of `sets`, compiled: one observation at a time, inside a roll-out."""

from typing import NamedTuple

import numpy as np
from numba import get_num_threads, njit, prange

from pipeline.core import FloatArray
from pipeline.problems.pool.networks.relative import HASTE, OF_JOB, OF_REST, Relative
from pipeline.problems.pool.networks.rows import mixture
from pipeline.simulation.compiled import lean

FEW = 64  # observations: waking a second thread takes longer than looking at so few


class SetWeights(NamedTuple):
    """A network's, float32, a row for each number that goes in; H hidden units."""

    of_job: FloatArray  # [OF_JOB, H]
    job_bias: FloatArray  # [H]
    of_all: FloatArray  # [2 * H + OF_REST, H]
    all_bias: FloatArray  # [H]
    job_part: FloatArray  # [H, H]
    part_bias: FloatArray  # [H]
    all_part: FloatArray  # [H, H]
    score: FloatArray  # [H]
    direct: FloatArray  # [OF_JOB]
    void: FloatArray  # [H + OF_REST]
    void_bias: FloatArray  # [1]


class SetBuffer(NamedTuple):
    """What one thread writes on."""

    each: FloatArray  # [M, H]
    everything: FloatArray  # [2 * H + OF_REST]
    common: FloatArray  # [H]
    shared: FloatArray  # [H]
    hidden: FloatArray  # [H]
    logits: FloatArray  # [A]


@njit(cache=True)
def set_buffer(w: SetWeights, slots: int) -> SetBuffer:
    """Return arrays to write on."""
    units = len(w.score)
    return SetBuffer(
        np.zeros((slots, units), dtype=np.float32),
        np.zeros(2 * units + OF_REST, dtype=np.float32),
        np.zeros(units, dtype=np.float32),
        np.zeros(units, dtype=np.float32),
        np.zeros(units, dtype=np.float32),
        np.zeros(slots + 1, dtype=np.float32),
    )


def forward(w: SetWeights, observed: Relative) -> FloatArray:
    """Return the logits [D, A] of the legal actions of observations; those of one do not depend on the others."""
    logits = np.zeros(observed.may.shape, dtype=np.float32)
    if len(logits) < FEW:
        _forward(w, observed, 0, len(logits), logits)
    else:
        _forward_all(w, observed, get_num_threads(), logits)
    return logits


@njit(cache=True)
def _forward(w: SetWeights, observed: Relative, begin: int, end: int, logits: FloatArray) -> None:
    buffer = set_buffer(w, observed.job.shape[1])
    for i in range(begin, end):
        logits_of(w, observed, i, buffer)
        for a in range(logits.shape[1]):
            logits[i, a] = buffer.logits[a] if observed.may[i, a] else np.float32(0.0)


@njit(cache=True, parallel=True)
def _forward_all(w: SetWeights, observed: Relative, parts: int, logits: FloatArray) -> None:
    share = -(-logits.shape[0] // parts)
    for k in prange(parts):
        part = int(np.int64(k))
        _forward(w, observed, part * share, min((part + 1) * share, logits.shape[0]), logits)


@lean
def logits_of(w: SetWeights, observed: Relative, i: int, buffer: SetBuffer) -> None:
    """Write the logits of one observation's legal actions."""
    slots, units = observed.job.shape[1], len(w.score)
    _pool(w, observed, i, buffer)
    mixture(w.of_all, buffer.everything, 2 * units + OF_REST, w.all_bias, buffer.common)
    for h in range(units):
        buffer.common[h] = max(buffer.common[h], np.float32(0.0))
    mixture(w.all_part, buffer.common, units, w.part_bias, buffer.shared)
    for m in range(slots):
        if observed.may[i, m]:
            mixture(w.job_part, buffer.each[m], units, buffer.shared, buffer.hidden)
            total = np.float32(0.0)
            for h in range(units):
                total += max(buffer.hidden[h], np.float32(0.0)) * w.score[h]
            for k in range(OF_JOB):
                total += observed.job[i, m, k] * w.direct[k]
            buffer.logits[m] = total
    void = w.void_bias[0]
    for h in range(units):
        void += buffer.common[h] * w.void[h]
    for k in range(OF_REST):
        void += observed.rest[i, k] * w.void[units + k]
    buffer.logits[slots] = void


@lean
def _pool(w: SetWeights, observed: Relative, i: int, buffer: SetBuffer) -> None:
    """Write what waiting jobs are, each and together: mean and largest of every hidden unit."""
    units, waiting = len(w.score), 0
    for h in range(2 * units):
        buffer.everything[h] = np.float32(0.0)
    for m in range(observed.job.shape[1]):
        if observed.job[i, m, HASTE] > 0:
            waiting += 1
            each = buffer.each[m]
            mixture(w.of_job, observed.job[i, m], OF_JOB, w.job_bias, each)
            for h in range(units):
                value = max(each[h], np.float32(0.0))
                each[h] = value
                buffer.everything[h] += value
                buffer.everything[units + h] = max(buffer.everything[units + h], value)
    if waiting > 1:
        for h in range(units):
            buffer.everything[h] /= np.float32(waiting)
    for k in range(OF_REST):
        buffer.everything[2 * units + k] = observed.rest[i, k]
