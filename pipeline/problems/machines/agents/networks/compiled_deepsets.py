"""`deepsets` without torch: logits of many states at once, each independent of its batch.

A state takes a few thousand multiplications, but torch spends a millisecond on starting some thirty operations, and the
order of its sums depends on the number of states. A test checks that both versions return the same logits.
"""

from typing import NamedTuple

import numpy as np

from pipeline.core.types import FloatArray
from pipeline.problems.machines.agents.networks.actor_critic import DeepSets
from pipeline.problems.machines.agents.networks.features import THERE, Features
from pipeline.simulation.compiled import Span, inlined, threaded


class Weights(NamedTuple):
    """Weights of the actor [inputs, hidden] and biases [hidden], float32."""

    of_job: FloatArray
    of_job_bias: FloatArray
    of_machine: FloatArray
    of_machine_bias: FloatArray
    of_all: FloatArray
    of_all_bias: FloatArray
    job_part: FloatArray
    job_part_bias: FloatArray
    machine_part: FloatArray
    pair_part: FloatArray
    all_part: FloatArray
    score: FloatArray  # [hidden]
    direct: FloatArray  # [of_job]
    void: FloatArray  # [hidden]
    bias: FloatArray  # [2]  of the score of a pair, and of void


class _Scratch(NamedTuple):
    """Buffers for D states."""

    job: FloatArray  # [D, M, hidden]
    machine: FloatArray  # [D, K, hidden]
    together: FloatArray  # [D, 3, hidden]  mean and largest of jobs, mean of machines
    common: FloatArray  # [D, hidden]
    hidden: FloatArray  # [D, 3, hidden]  shared by all pairs, of a job, of a pair


def weights_of(network: DeepSets) -> Weights:
    """Return the current weights of a network."""
    parts = {name: tensor.detach().numpy().astype(np.float32) for name, tensor in network.named_parameters()}

    def layer(name: str) -> tuple[FloatArray, FloatArray]:
        return matrix(name), parts[f"{name}.bias"]

    def matrix(name: str) -> FloatArray:
        return np.ascontiguousarray(parts[f"{name}.weight"].T)

    found = [*layer("of_job.0"), *layer("of_machine.0"), *layer("of_all.0"), *layer("job_part")]
    found += [matrix(name) for name in ("machine_part", "pair_part", "all_part")]
    found += [parts[f"{name}.weight"][0] for name in ("score", "direct", "void")]
    return Weights._make([*found, np.concatenate([parts["score.bias"], parts["void.bias"]])])


def logits(weights: Weights, observed: Features) -> FloatArray:
    """Return the logits [D, A] of D states."""
    (count, slots, _), machines = observed.job.shape, observed.machine.shape[1]
    hidden, out = len(weights.score), np.zeros((count, slots * machines + 1), dtype=np.float32)
    scratch = (np.empty((count, rows, hidden), dtype=np.float32) for rows in (slots, machines, 3, 1, 3))
    job, machine, together, common, more = scratch
    _all_logits(weights, observed, _Scratch(job, machine, together, common[:, 0], more), out)
    return out


@threaded(lambda w, observed, on, out: len(out))
def _all_logits(span: Span, w: Weights, observed: Features, on: _Scratch, out: FloatArray) -> None:
    for i in range(*span):
        _logits(w, observed, on, out, i)


@inlined
def _add(to: FloatArray, inputs: FloatArray, weights: FloatArray, first: int = 0) -> None:
    """Add each input times its row of the weights."""
    for k in range(inputs.shape[0]):
        if inputs[k] != 0.0:
            for h in range(to.shape[0]):
                to[h] += inputs[k] * weights[first + k, h]


@inlined
def _copy(to: FloatArray, values: FloatArray) -> None:
    for h in range(to.shape[0]):
        to[h] = values[h]


@inlined
def _embed(to: FloatArray, inputs: FloatArray, weights: FloatArray, bias: FloatArray) -> None:
    """Write the output of a layer with ReLU."""
    _copy(to, bias)
    _add(to, inputs, weights)
    for h in range(to.shape[0]):
        to[h] = max(to[h], np.float32(0.0))


@inlined
def _encode(w: Weights, observed: Features, on: _Scratch, i: int) -> None:
    """Write the encodings of jobs and machines, and the common encoding of all."""
    together, common, count = on.together[i], on.common[i], 0
    size = together.shape[1]
    for h in range(size):
        together[0, h] = together[1, h] = together[2, h] = 0.0
    for m in range(observed.job.shape[1]):
        if observed.job[i, m, THERE] > 0.0:
            count += 1
            _embed(on.job[i, m], observed.job[i, m], w.of_job, w.of_job_bias)
            for h in range(size):
                together[0, h] += on.job[i, m, h]
                together[1, h] = max(together[1, h], on.job[i, m, h])
    for k in range(observed.machine.shape[1]):
        _embed(on.machine[i, k], observed.machine[i, k], w.of_machine, w.of_machine_bias)
        for h in range(size):
            together[2, h] += on.machine[i, k, h]
    for h in range(size):
        together[0, h] /= max(count, 1)
        together[2, h] /= observed.machine.shape[1]
        common[h] = w.of_all_bias[h]
    for part in range(3):
        _add(common, together[part], w.of_all, part * size)
    _add(common, observed.rest[i], w.of_all, 3 * size)
    for h in range(size):
        common[h] = max(common[h], np.float32(0.0))


@inlined
def _logits(w: Weights, observed: Features, on: _Scratch, out: FloatArray, i: int) -> None:
    _encode(w, observed, on, i)
    shared, own, pair = on.hidden[i, 0], on.hidden[i, 1], on.hidden[i, 2]
    machines = observed.machine.shape[1]
    _copy(shared, w.job_part_bias)
    _add(shared, on.common[i], w.all_part)
    for k in range(machines):  # replace each machine's encoding by its part in the scores of all its pairs
        for h in range(pair.shape[0]):
            pair[h] = 0.0
        _add(pair, on.machine[i, k], w.machine_part)
        _copy(on.machine[i, k], pair)
    for m in range(observed.job.shape[1]):
        if observed.job[i, m, THERE] > 0.0:
            direct = w.bias[0]
            _copy(own, shared)
            _add(own, on.job[i, m], w.job_part)
            for f in range(w.direct.shape[0]):
                direct += observed.job[i, m, f] * w.direct[f]
            for k in range(machines):
                for h in range(pair.shape[0]):
                    pair[h] = own[h] + on.machine[i, k, h]
                _add(pair, observed.pair[i, m, k], w.pair_part)
                out[i, m * machines + k] = direct + _weigh(pair, w.score, True)
    out[i, out.shape[1] - 1] = w.bias[1] + _weigh(on.common[i], w.void, False)


@inlined
def _weigh(values: FloatArray, weights: FloatArray, rectified: bool) -> float:
    """Return a weighted sum, added up in four independent sums: each step of a single one would wait for the last."""
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
