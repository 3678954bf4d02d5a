"""`deepsets` without torch: what it says of many states at once, each by itself, whoever else is asked of.

One state is a few thousand multiplications, of which torch spends a millisecond on starting some thirty operations; and
how torch adds up depends on how many states it is given. A test holds both to the same logits.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from pipeline.core import FloatArray
from pipeline.problems.machines.networks.actor_critic import DeepSets
from pipeline.problems.machines.networks.features import THERE, Features
from pipeline.simulation.compiled import inlined


class Weights(NamedTuple):
    """Weights of the actor [inputs, hidden] and what is added [hidden], float32."""

    of_job: FloatArray
    of_job_more: FloatArray
    of_machine: FloatArray
    of_machine_more: FloatArray
    of_all: FloatArray
    of_all_more: FloatArray
    job_part: FloatArray
    job_part_more: FloatArray
    machine_part: FloatArray
    pair_part: FloatArray
    all_part: FloatArray
    score: FloatArray  # [hidden]
    direct: FloatArray  # [of_job]
    void: FloatArray  # [hidden]
    more: FloatArray  # [2]  added to the score of a pair, and of void


class _Scratch(NamedTuple):
    """What is written on for D states."""

    job: FloatArray  # [D, M, hidden]
    machine: FloatArray  # [D, K, hidden]
    together: FloatArray  # [D, 3, hidden]  mean and largest of jobs, mean of machines
    common: FloatArray  # [D, hidden]
    hidden: FloatArray  # [D, 3, hidden]  of all pairs, of a job, of a pair


def weights_of(network: DeepSets) -> Weights:
    """Return a network's weights as they are now."""
    parts = {name: tensor.detach().numpy().astype(np.float32) for name, tensor in network.named_parameters()}

    def turned(name: str) -> FloatArray:
        return np.ascontiguousarray(parts[f"{name}.weight"].T)

    return Weights(
        turned("of_job.0"),
        parts["of_job.0.bias"],
        turned("of_machine.0"),
        parts["of_machine.0.bias"],
        turned("of_all.0"),
        parts["of_all.0.bias"],
        turned("job_part"),
        parts["job_part.bias"],
        turned("machine_part"),
        turned("pair_part"),
        turned("all_part"),
        parts["score.weight"][0],
        parts["direct.weight"][0],
        parts["void.weight"][0],
        np.concatenate([parts["score.bias"], parts["void.bias"]]),
    )


def logits(weights: Weights, observed: Features) -> FloatArray:
    """Return the logits [D, A] of D states."""
    (count, slots, _), machines = observed.job.shape, observed.machine.shape[1]
    hidden, out = len(weights.score), np.zeros((count, slots * machines + 1), dtype=np.float32)
    scratch = (np.empty((count, rows, hidden), dtype=np.float32) for rows in (slots, machines, 3, 1, 3))
    job, machine, together, common, more = scratch
    _all_logits(weights, observed, _Scratch(job, machine, together, common[:, 0], more), out)
    return out


@njit(cache=True, parallel=True)
def _all_logits(w: Weights, observed: Features, on: _Scratch, out: FloatArray) -> None:
    for i in prange(out.shape[0]):
        _logits(w, observed, on, out, int(np.int64(i)))  # a call: see `simulator.compiled.observing`


@inlined
def _add(to: FloatArray, inputs: FloatArray, weights: FloatArray, first: int = 0) -> None:
    """Add inputs times their rows of the weights."""
    for k in range(inputs.shape[0]):
        if inputs[k] != 0.0:
            for h in range(to.shape[0]):
                to[h] += inputs[k] * weights[first + k, h]


@inlined
def _embed(to: FloatArray, inputs: FloatArray, weights: FloatArray, more: FloatArray) -> None:
    """Write a layer and its rectifier."""
    for h in range(to.shape[0]):
        to[h] = more[h]
    _add(to, inputs, weights)
    for h in range(to.shape[0]):
        to[h] = max(to[h], np.float32(0.0))


@inlined
def _look(w: Weights, observed: Features, on: _Scratch, i: int) -> None:
    """Write what jobs and machines are, and what they are together."""
    together, count = on.together[i], 0
    for h in range(together.shape[1]):
        together[0, h] = together[1, h] = together[2, h] = 0.0
    for m in range(observed.job.shape[1]):
        if observed.job[i, m, THERE] > 0.0:
            count += 1
            _embed(on.job[i, m], observed.job[i, m], w.of_job, w.of_job_more)
            for h in range(together.shape[1]):
                together[0, h] += on.job[i, m, h]
                together[1, h] = max(together[1, h], on.job[i, m, h])
    for k in range(observed.machine.shape[1]):
        _embed(on.machine[i, k], observed.machine[i, k], w.of_machine, w.of_machine_more)
        for h in range(together.shape[1]):
            together[2, h] += on.machine[i, k, h]
    for h in range(together.shape[1]):
        together[0, h] /= max(count, 1)
        together[2, h] /= observed.machine.shape[1]


@inlined
def _common(w: Weights, observed: Features, on: _Scratch, i: int) -> None:
    common, hidden = on.common[i], on.common.shape[1]
    for h in range(hidden):
        common[h] = w.of_all_more[h]
    for part in range(3):
        _add(common, on.together[i, part], w.of_all, part * hidden)
    _add(common, observed.rest[i], w.of_all, 3 * hidden)
    for h in range(hidden):
        common[h] = max(common[h], np.float32(0.0))


@inlined
def _logits(w: Weights, observed: Features, on: _Scratch, out: FloatArray, i: int) -> None:
    _look(w, observed, on, i)
    _common(w, observed, on, i)
    alike, pair = on.hidden[i, 0], on.hidden[i, 2]
    for h in range(alike.shape[0]):
        alike[h] = w.job_part_more[h]
    _add(alike, on.common[i], w.all_part)
    for k in range(observed.machine.shape[1]):  # what a machine brings to each of its pairs, in its place
        for h in range(pair.shape[0]):
            pair[h] = 0.0
        _add(pair, on.machine[i, k], w.machine_part)
        for h in range(pair.shape[0]):
            on.machine[i, k, h] = pair[h]
    for m in range(observed.job.shape[1]):
        if observed.job[i, m, THERE] > 0.0:
            _score_job(w, observed, on, out, i, m)
    out[i, out.shape[1] - 1] = w.more[1] + _weighed(on.common[i], w.void, False)


@inlined
def _score_job(w: Weights, observed: Features, on: _Scratch, out: FloatArray, i: int, m: int) -> None:
    """Write the logits of a job on each machine."""
    alike, apart, pair = on.hidden[i, 0], on.hidden[i, 1], on.hidden[i, 2]
    machines, direct = observed.machine.shape[1], w.more[0]
    for h in range(apart.shape[0]):
        apart[h] = alike[h]
    _add(apart, on.job[i, m], w.job_part)
    for f in range(w.direct.shape[0]):
        direct += observed.job[i, m, f] * w.direct[f]
    for k in range(machines):
        for h in range(pair.shape[0]):
            pair[h] = apart[h] + on.machine[i, k, h]
        _add(pair, observed.pair[i, m, k], w.pair_part)
        out[i, m * machines + k] = direct + _weighed(pair, w.score, True)


@inlined
def _weighed(values: FloatArray, weights: FloatArray, rectified: bool) -> float:
    """Return a sum of weighted values, as four sums side by side: one alone waits for itself at every step."""
    least = np.float32(0.0 if rectified else -np.inf)
    a, b, c, d = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    whole = values.shape[0] // 4 * 4
    for h in range(0, whole, 4):
        a += max(values[h], least) * weights[h]
        b += max(values[h + 1], least) * weights[h + 1]
        c += max(values[h + 2], least) * weights[h + 2]
        d += max(values[h + 3], least) * weights[h + 3]
    for h in range(whole, values.shape[0]):
        a += max(values[h], least) * weights[h]
    return float(a + b + (c + d))
