"""Choose on validation jobsets: the knobs of heuristics, and the best heuristic at each load."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pipeline.comparing.results import Play, judge
from pipeline.config import FamilySearch, PoolKnobs
from pipeline.core import FloatArray, Policy
from pipeline.problems.pool.heuristics.linear_search import least_cost
from pipeline.problems.pool.heuristics.scores import (
    HEURISTICS,
    LONG_STEPS,
    PATIENT,
    with_patience,
    with_weight,
    with_weights,
)
from pipeline.problems.pool.nouns import JobSet
from pipeline.simulation.choosing import Heuristic

WITH_KNOB: dict[str, Callable[[float], Heuristic]] = {"tetris": with_weight, "hold": with_patience}


FAMILY_SEED = 7  # of the search of the family's weights
WEIGHT = "family_{number}"  # knob
AT_ONCE = 64  # candidates whose results are in memory together


def tuned(
    play: Play, knobs: PoolKnobs, training: Mapping[int, Sequence[JobSet]], seed: int = FAMILY_SEED
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
