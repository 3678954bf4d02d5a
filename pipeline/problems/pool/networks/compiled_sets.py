"""The scores of `sets`, compiled: one observation at a time, inside a roll-out."""

from typing import NamedTuple

import numpy as np
from numba import get_num_threads, njit, prange

from pipeline.core import FloatArray
from pipeline.problems.pool.networks.relative import HASTE, OF_JOB, OF_REST, Relative
from pipeline.problems.pool.networks.rows import add_mixture

FEW = 64  # observations: waking a second thread takes longer than judging so few


class Weights(NamedTuple):
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


class Scratch(NamedTuple):
    """What one thread writes on."""

    each: FloatArray  # [M, H]
    everything: FloatArray  # [2 * H + OF_REST]
    common: FloatArray  # [H]
    shared: FloatArray  # [H]
    hidden: FloatArray  # [H]
    logits: FloatArray  # [A]


@njit(cache=True)
def scratch(w: Weights, slots: int) -> Scratch:
    """Return room to write on."""
    units = len(w.score)
    return Scratch(
        np.zeros((slots, units), dtype=np.float32),
        np.zeros(2 * units + OF_REST, dtype=np.float32),
        np.zeros(units, dtype=np.float32),
        np.zeros(units, dtype=np.float32),
        np.zeros(units, dtype=np.float32),
        np.zeros(slots + 1, dtype=np.float32),
    )


def judge(w: Weights, seen: Relative) -> FloatArray:
    """Return the logits [D, A] of the legal actions of observations; those of one do not depend on the others."""
    logits = np.zeros(seen.may.shape, dtype=np.float32)
    if len(logits) < FEW:
        _judge(w, seen, 0, len(logits), logits)
    else:
        _judge_all(w, seen, get_num_threads(), logits)
    return logits


@njit(cache=True)
def _judge(w: Weights, seen: Relative, begin: int, end: int, logits: FloatArray) -> None:
    room = scratch(w, seen.job.shape[1])
    for i in range(begin, end):
        logits_of(w, seen, i, room)
        for a in range(logits.shape[1]):
            logits[i, a] = room.logits[a] if seen.may[i, a] else np.float32(0.0)


@njit(cache=True, parallel=True)
def _judge_all(w: Weights, seen: Relative, parts: int, logits: FloatArray) -> None:
    share = -(-logits.shape[0] // parts)
    for k in prange(parts):
        part = int(np.int64(k))
        _judge(w, seen, part * share, min((part + 1) * share, logits.shape[0]), logits)


@njit(cache=True)
def logits_of(w: Weights, seen: Relative, i: int, room: Scratch) -> None:
    """Write the logits of one observation's legal actions."""
    slots, units = seen.job.shape[1], len(w.score)
    _pool(w, seen, i, room)
    room.common[:] = w.all_bias
    add_mixture(w.of_all, room.everything, 2 * units + OF_REST, room.common)
    room.shared[:] = w.part_bias
    for h in range(units):
        room.common[h] = max(room.common[h], np.float32(0.0))
    add_mixture(w.all_part, room.common, units, room.shared)
    for m in range(slots):
        if seen.may[i, m]:
            room.hidden[:] = room.shared
            add_mixture(w.job_part, room.each[m], units, room.hidden)
            total = np.float32(0.0)
            for h in range(units):
                total += max(room.hidden[h], np.float32(0.0)) * w.score[h]
            for k in range(OF_JOB):
                total += seen.job[i, m, k] * w.direct[k]
            room.logits[m] = total
    void = w.void_bias[0]
    for h in range(units):
        void += room.common[h] * w.void[h]
    for k in range(OF_REST):
        void += seen.rest[i, k] * w.void[units + k]
    room.logits[slots] = void


@njit(cache=True)
def _pool(w: Weights, seen: Relative, i: int, room: Scratch) -> None:
    """Write what waiting jobs are, each and together: mean and largest of every hidden unit."""
    units, waiting = len(w.score), 0
    room.everything[: 2 * units] = np.float32(0.0)
    for m in range(seen.job.shape[1]):
        if seen.job[i, m, HASTE] > 0:
            waiting += 1
            each = room.each[m]
            each[:] = w.job_bias
            add_mixture(w.of_job, seen.job[i, m], OF_JOB, each)
            for h in range(units):
                value = max(each[h], np.float32(0.0))
                each[h] = value
                room.everything[h] += value
                room.everything[units + h] = max(room.everything[units + h], value)
    if waiting > 1:
        for h in range(units):
            room.everything[h] /= np.float32(waiting)
    for k in range(OF_REST):
        room.everything[2 * units + k] = seen.rest[i, k]
