"""Choose on validation jobsets: the knobs of heuristics, and the best heuristic at each load."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pipeline.config import FamilySearch, HeuristicKnobs
from pipeline.core import FloatArray, JobSet, Policy
from pipeline.evaluation.play import Results, judge
from pipeline.policies.family_search import least_cost
from pipeline.policies.heuristics import (
    HEURISTICS,
    LONG_STEPS,
    PATIENT,
    Heuristic,
    with_patience,
    with_weight,
    with_weights,
)
from pipeline.policies.placing import EVENT_HEURISTICS, with_mix

Play = Callable[[Mapping[str, Policy]], dict[str, Results]]  # on validation jobsets, all policies at once

WITH_KNOB: dict[str, Callable[[float], Heuristic]] = {"tetris": with_weight, "hold": with_patience}

EVENT_TETRIS = "tetris"
MIX = ("tetris_packing", "tetris_fairness")  # knobs of the same; shortness has the rest

FAMILY_SEED = 7  # of the search of the family's weights
WEIGHT = "family_{number}"  # knob
AT_ONCE = 64  # candidates whose results are in memory together


def tuned(
    play: Play, knobs: HeuristicKnobs, training: Mapping[int, Sequence[JobSet]], seed: int = FAMILY_SEED
) -> dict[str, float]:
    """Return the best knob of each heuristic that has one, by mean slowdown, and the best weights of the family."""
    duration = np.concatenate([jobs.seen for group in training.values() for jobs in group])
    long = {float(LONG_STEPS), *(float(np.quantile(duration, q, method="higher")) for q in knobs.hold_quantiles)}
    candidates = {"tetris": knobs.tetris_weights, "hold": sorted(long)}
    tried = {(name, knob): WITH_KNOB[name](knob) for name, values in candidates.items() for knob in values}
    results = play({f"{name} {knob!r}": policy for (name, knob), policy in tried.items()})
    cost = {(name, knob): judge(results[f"{name} {knob!r}"], "slowdown") for name, knob in tried}
    best = {name: min((pair for pair in tried if pair[0] == name), key=cost.__getitem__)[1] for name in candidates}
    weights = () if knobs.family is None else tuned_family(play, knobs.family, seed)
    return best | {WEIGHT.format(number=number): weight for number, weight in enumerate(weights)}


def tuned_family(play: Play, config: FamilySearch, seed: int) -> tuple[float, ...]:
    """Return the best weights of the family that were tried.

    What they cost is their mean slowdown to that of SJF, mean over loads, so that no load outweighs the others.
    """
    sjf = play({"sjf": HEURISTICS["sjf"]})["sjf"].by_load
    return least_cost(lambda drawn: _cost(play, drawn, sjf), config, seed)


def _cost(play: Play, drawn: FloatArray, sjf: Mapping[int, float]) -> FloatArray:
    """Return the mean over loads of slowdown to SJF's, of every candidate."""
    cost = []
    for first in range(0, len(drawn), AT_ONCE):
        some = drawn[first : first + AT_ONCE].tolist()
        results = play({WEIGHT.format(number=number): with_weights(weights) for number, weights in enumerate(some)})
        cost += [np.mean([mean / sjf[load] for load, mean in done.by_load.items()]) for done in results.values()]
    return np.array(cost)


def heuristics_with(knobs: Mapping[str, float]) -> dict[str, Policy]:
    """Return all heuristics, those with a knob as tuned."""
    found = HEURISTICS | {name: make(knobs[name]) for name, make in WITH_KNOB.items() if name in knobs}
    weights = [knobs[name] for number in range(len(PATIENT)) if (name := WEIGHT.format(number=number)) in knobs]
    return found | {"family": with_weights(weights)} if weights else found


def tuned_mix(play: Play, knobs: HeuristicKnobs) -> dict[str, float]:
    """Return the best mix of Tetris on many machines, by mean slowdown."""
    tried = {f"{EVENT_TETRIS} {mix!r}": mix for mix in knobs.mixes}
    results = play({name: with_mix(*mix) for name, mix in tried.items()})
    best = min(tried, key=lambda name: judge(results[name], "slowdown"))
    return dict(zip(MIX, tried[best], strict=True))


def event_heuristics_with(knobs: Mapping[str, float]) -> dict[str, Policy]:
    """Return all heuristics of event-driven scenarios, Tetris as tuned."""
    return EVENT_HEURISTICS | {EVENT_TETRIS: with_mix(*(knobs[name] for name in MIX))}


def best_of(results: Mapping[str, Results], column: str = "mean_slowdown") -> dict[int, str]:
    """Return the policy with the least mean of a column of jobset tables at each load."""
    return best_by_load({name: done.mean_by_load(column) for name, done in results.items()})


def best_by_load(means: Mapping[str, Mapping[int, float]]) -> dict[int, str]:
    """Return the policy of the least mean slowdown at each load.

    >>> best_by_load({"sjf": {50: 2.0, 90: 3.0}, "hold": {50: 2.5, 90: 2.0}})
    {50: 'sjf', 90: 'hold'}
    """
    loads = next(iter(means.values()))
    return {load: min(means, key=lambda name: means[name][load]) for load in loads}
