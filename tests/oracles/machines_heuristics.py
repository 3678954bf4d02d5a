"""Plain definitions of the heuristics of many machines, in numpy: scores of the waiting jobs of an observation.

Scores are [B, M] or [B, M, K] and go through `choose`. Each sums in the order of its compiled rule, so that both decide
equally.
"""

import math
from collections.abc import Callable

import numpy as np

from pipeline.core.types import THOUSANDTHS, CompiledRule, FloatArray, Observation, Policy
from pipeline.problems.machines.env.teachers import EVEN_MIX, TEACHERS
from pipeline.problems.machines.heuristics.rules import AGE, random_placement
from pipeline.simulation.rollout import Heuristic, Score, fcfs, heuristic, sjf

TINY = 1e-15  # RLScheduler's guard of logarithms and quotients
ARRIVAL_WEIGHT = 870.0  # of F1


def saf(view: Observation) -> FloatArray:
    """Prefer the smallest area: duration times the share of all machines' resources, summed over resources."""
    total = view.capacity.sum(axis=1).astype(float)[:, None]
    wanted = _duration(view)[:, :, None] * (view.nodes[:, :, None] * view.demand)
    return -_in_order(np.where(total > 0, wanted / np.where(total > 0, total, 1.0), 0.0))


def saf_aged(age: float) -> Score:
    """Return SAF with ageing: the area over 1 + waited / age, so that large jobs do not starve.

    Args:
        age: time by which a job that has waited counts as half as large; the shorter, the nearer to order of arrival.
    """

    def score(view: Observation) -> FloatArray:
        return np.asarray(saf(view) / (1.0 + view.waited / age), dtype=np.float64)

    return score


def f1(view: Observation) -> FloatArray:
    """Prefer short and narrow jobs that came early: least log10(duration) * processors + 870 * log10(arrival)."""
    length, arrival = _each(math.log10, _duration(view)), _each(math.log10, np.maximum(_arrival(view), 1.0))
    return -(length * _processors(view) + ARRIVAL_WEIGHT * arrival)


def wfp3(view: Observation) -> FloatArray:
    """Prefer what has waited long for its duration, and wide jobs: (waited / duration)^3 * processors."""
    return _waited_cubed(view, view.waited.astype(float))


def unicep(view: Observation) -> FloatArray:
    """Prefer what has waited long, and short, narrow jobs: waited / (log2(processors) * duration)."""
    return _waited_narrow(view, view.waited.astype(float))


def wfp_peer(view: Observation) -> FloatArray:
    """Score as RLScheduler's WFP3: it takes the start of a job that waits for time -1, so the wait is -1 - arrival."""
    return _waited_cubed(view, -1.0 - _arrival(view))


def uni_peer(view: Observation) -> FloatArray:
    """Score as RLScheduler's UNICEP, with the wait of `wfp_peer`."""
    return _waited_narrow(view, -1.0 - _arrival(view))


def packer(view: Observation) -> FloatArray:
    """Prefer the job and machine best aligned: the mean over resources of demanded times free share of the machine."""
    there = view.capacity > 0
    capacity = np.where(there, view.capacity, 1).astype(float)[:, None]
    shares = view.demand[:, :, None] / capacity * (view.free[:, None, :, 0] / capacity)
    return np.asarray(_in_order(np.where(there[:, None], shares, 0.0)) / view.capacity.shape[2])


def tetris_fair(packing: float, fairness: float) -> Score:
    """Return a mix of alignment, of the wait to the longest, and (the rest) of the shortest duration to the job's.

    Args:
        packing: weight of alignment, in [0, 1].
        fairness: weight of the wait; both together at most 1.
    """

    def score(view: Observation) -> FloatArray:
        shortest = np.where(view.nodes > 0, view.duration, np.inf).min(axis=1, keepdims=True)
        longest_wait = np.maximum(view.waited.max(axis=1, keepdims=True), TINY)
        short, fair = (shortest / _duration(view))[:, :, None], (view.waited / longest_wait)[:, :, None]
        return np.asarray(packing * packer(view) + fairness * fair + (1.0 - packing - fairness) * short)

    return score


def least_allocated(view: Observation) -> FloatArray:
    """Take jobs in order of arrival, each to the machine that then has the largest share free."""
    return _for_the_best(fcfs(view), 1.0 - _mean_allocated(view), view)


def most_allocated(view: Observation) -> FloatArray:
    """Take jobs in order of arrival, each to the machine that then has the largest share taken."""
    return _for_the_best(fcfs(view), _mean_allocated(view), view)


def balanced_allocation(view: Observation) -> FloatArray:
    """Take jobs in order of arrival, each to the machine whose resources are then taken most evenly."""
    share, mean = _allocated(view), _mean_allocated(view)
    variance = _in_order(share * share) / share.shape[3] - mean * mean
    return _for_the_best(fcfs(view), 1.0 - np.sqrt(np.maximum(variance, 0.0)), view)


def sjf_most_allocated(view: Observation) -> FloatArray:
    """Take the shortest job to the machine that then has the largest share taken."""
    return _for_the_best(sjf(view), _mean_allocated(view), view)


def with_mix(packing: float, fairness: float) -> Heuristic:
    """Return Tetris with weights of packing and of fairness; shortness has the rest."""
    return heuristic(tetris_fair(packing, fairness), CompiledRule("tetris_fair", knobs=(packing, fairness)))


def with_age(age: float) -> Heuristic:
    """Return SAF with ageing."""
    return heuristic(saf_aged(age), CompiledRule("saf_aged", knobs=(age, 0.0)))


def _duration(view: Observation) -> FloatArray:
    """Durations, 1 in empty slots so that they divide; no empty slot is legal."""
    return np.where(view.nodes > 0, view.duration, 1.0)


def _arrival(view: Observation) -> FloatArray:
    """Times of arrival [B, M], exact where times are whole; others may differ from compiled ones in the last bit."""
    return np.asarray(view.now[:, None] - view.waited, dtype=float)


def _processors(view: Observation) -> FloatArray:
    """Return how much of the first resource each job holds in all, at least 1 [B, M]."""
    return np.maximum(view.nodes * (view.demand[:, :, 0] / float(THOUSANDTHS)), 1.0)


def _waited_cubed(view: Observation, waited: FloatArray) -> FloatArray:
    ratio = waited / _duration(view)
    return np.asarray(ratio * ratio * ratio * _processors(view))


def _waited_narrow(view: Observation, waited: FloatArray) -> FloatArray:
    return np.asarray((waited + TINY) / (_each(math.log2, _processors(view) + TINY) * _duration(view)))


def _allocated(view: Observation) -> FloatArray:
    """Return the share of each machine that is taken once the job is there [B, M, K, R]; all of what it has not."""
    there = view.capacity > 0
    taken = (view.capacity - view.free[:, :, 0])[:, None] + view.demand[:, :, None]
    return np.where(there[:, None], taken / np.where(there, view.capacity, 1)[:, None], 1.0)


def _mean_allocated(view: Observation) -> FloatArray:
    share = _allocated(view)
    return np.asarray(_in_order(share) / share.shape[3])


def _for_the_best(jobs: FloatArray, machines: FloatArray, view: Observation) -> FloatArray:
    """Keep the scores of machines [B, M, K] only for the best-scored legal job [B, M]; hold all others back."""
    best = np.where(view.legal.any(axis=2), jobs, -np.inf).argmax(axis=1)
    kept = np.arange(jobs.shape[1]) == best[:, None]
    return np.where(kept[:, :, None], machines, -np.inf)


def _in_order(parts: FloatArray) -> FloatArray:
    """Sum over the last axis from its first to its last, as a loop does; numpy's own sum takes another order."""
    return np.asarray(parts.cumsum(axis=-1)[..., -1])


def _each(function: Callable[[float], float], values: FloatArray) -> FloatArray:
    """Apply a function of the C library, which compiled code calls too; numpy's own may differ in the last bit."""
    return np.asarray(np.vectorize(function, otypes=[float])(values))


# Heuristics of many machines without tuning, by their params.yaml word.
HEURISTICS: dict[str, Policy] = {
    "fcfs": heuristic(fcfs, TEACHERS["fcfs"]),
    "random": Heuristic(random_placement, TEACHERS["random"]),
    "sjf": heuristic(sjf, TEACHERS["sjf"]),
    "tetris": with_mix(*EVEN_MIX),
    "packer": heuristic(packer, TEACHERS["packer"]),
    "saf": heuristic(saf, TEACHERS["saf"]),
    "saf_aged": with_age(AGE),
    "f1": heuristic(f1, TEACHERS["f1"]),
    "wfp3": heuristic(wfp3, TEACHERS["wfp3"]),
    "unicep": heuristic(unicep, TEACHERS["unicep"]),
    "least_allocated": heuristic(least_allocated, TEACHERS["least_allocated"], fcfs),
    "most_allocated": heuristic(most_allocated, TEACHERS["most_allocated"], fcfs),
    "balanced_allocation": heuristic(balanced_allocation, TEACHERS["balanced_allocation"], fcfs),
    "sjf_most_allocated": heuristic(sjf_most_allocated, TEACHERS["sjf_most_allocated"], sjf),
}

# As in RLScheduler's code, to replay what it published.
PEERS: dict[str, Policy] = {
    "wfp_peer": heuristic(wfp_peer, CompiledRule("wfp_peer")),
    "uni_peer": heuristic(uni_peer, CompiledRule("uni_peer")),
}
