"""The network `linear`, compiled: many sets of weights play side by side, each episode to its end without a stop."""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from pipeline.core import FloatArray, IntArray, Observation
from pipeline.problems.machines.networks.features import Features, Shape, empty_features, fill_one
from pipeline.problems.machines.simulator.compiled.batch import Simulator, look_at
from pipeline.problems.machines.simulator.compiled.kernels import advance_episode
from pipeline.problems.machines.simulator.compiled.state import Rules, State
from pipeline.simulation.compiled import inlined


class LinearWeights(NamedTuple):
    """What `Linear` has of each episode; nothing for pairs where there is one machine, and for void without it."""

    of_job: FloatArray  # [B, of_job]
    of_pair: FloatArray  # [B, of_pair]
    void: FloatArray  # [B, 1]; not read where void is never legal


def play_linear(simulator: Simulator, shape: Shape, weights: LinearWeights) -> None:
    """Let each episode be played greedily, by weights of its own, to its end."""
    rows = simulator.rows
    view = simulator.views(len(rows))
    simulator.run_kernel(_play, rows, view, empty_features(view, shape), weights, shape.unit, shape.void)


@njit(cache=True, parallel=True)
def _play(
    s: State,
    rules: Rules,
    rows: IntArray,
    view: Observation,
    to: Features,
    weights: LinearWeights,
    unit: float,
    void: bool,
) -> int:
    for i in prange(rows.shape[0]):
        _play_one(s, rules, rows[i], view, to, weights, unit, void, int(np.int64(i)))  # a call: see `batch.observe`
    return int(rows.shape[0])


@inlined
def _play_one(
    s: State,
    rules: Rules,
    b: int,
    view: Observation,
    to: Features,
    weights: LinearWeights,
    unit: float,
    void: bool,
    i: int,
) -> None:
    while not s.done[b]:
        look_at(s, rules, b, view, i)
        fill_one(view, to, i, unit, void)
        advance_episode(s, rules, b, _best(view, to, weights, b, i))


@inlined
def _best(view: Observation, to: Features, weights: LinearWeights, b: int, i: int) -> int:
    """Return the legal action with the highest score; of equals the lowest."""
    machines, chosen, best = view.legal.shape[2], -1, -np.inf
    for m in range(view.legal.shape[1]):
        score = _sum(to.job[i, m], weights.of_job[b]) if view.nodes[i, m] else 0.0
        for k in range(machines):
            if view.legal[i, m, k]:
                of_both = score + _sum(to.pair[i, m, k], weights.of_pair[b])
                if of_both > best:
                    chosen, best = m * machines + k, of_both
    last = view.legal.shape[1] * machines
    return int(last if to.may[i, last] and weights.void[b, 0] > best else chosen)


@inlined
def _sum(features: FloatArray, weights: FloatArray) -> float:
    total = 0.0
    for f in range(weights.shape[0]):
        total += features[f] * weights[f]
    return total
