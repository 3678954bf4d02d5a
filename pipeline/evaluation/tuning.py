"""Choose on validation jobsets: the knobs of heuristics, and the best heuristic at each load."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pipeline.config import HeuristicKnobs
from pipeline.core import JobSet, Policy
from pipeline.evaluation.play import Results, judge
from pipeline.policies.heuristics import HEURISTICS, LONG_STEPS, heuristic, hold, tetris

Play = Callable[[str, Policy], Results]  # on validation jobsets


def tuned(play: Play, knobs: HeuristicKnobs, training: Mapping[int, Sequence[JobSet]]) -> dict[str, float]:
    """Return the best knob of each heuristic that has one, by mean slowdown."""
    duration = np.concatenate([jobs.duration for group in training.values() for jobs in group])
    long = {float(LONG_STEPS), *(float(np.quantile(duration, q, method="higher")) for q in knobs.hold_quantiles)}
    return {
        "tetris": _best(lambda weight: play("tetris", heuristic(tetris(weight))), knobs.tetris_weights),
        "hold": _best(lambda steps: play("hold", heuristic(hold(int(steps)))), sorted(long)),
    }


def _best(results: Callable[[float], Results], candidates: Sequence[float]) -> float:
    return min(candidates, key=lambda knob: judge(results(knob), "slowdown"))


def heuristics_with(knobs: Mapping[str, float]) -> dict[str, Policy]:
    """Return all heuristics, those with a knob as tuned."""
    with_knobs = {
        "tetris": heuristic(tetris(knobs["tetris"])),
        "hold": heuristic(hold(int(knobs["hold"]))),
    }
    return HEURISTICS | with_knobs


def means_of(play: Play, policies: Mapping[str, Policy]) -> dict[str, dict[int, float]]:
    """Return the mean slowdown of each policy at each load."""
    return {name: play(name, policy).by_load for name, policy in policies.items()}


def best_by_load(means: Mapping[str, Mapping[int, float]]) -> dict[int, str]:
    """Return the policy of the least mean slowdown at each load.

    >>> best_by_load({"sjf": {50: 2.0, 90: 3.0}, "hold": {50: 2.5, 90: 2.0}})
    {50: 'sjf', 90: 'hold'}
    """
    loads = next(iter(means.values()))
    return {load: min(means, key=lambda name: means[name][load]) for load in loads}
