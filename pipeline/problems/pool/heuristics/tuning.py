"""Choose on validation jobsets: the knobs of heuristics, and the best heuristic at each load."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pipeline.config import LinearRuleSearch, PoolKnobs
from pipeline.core import FloatArray, Policy
from pipeline.problems.pool.heuristics.scores import (
    HEURISTICS,
    with_long,
    with_patience,
    with_span,
    with_weight,
    with_weights,
)
from pipeline.problems.pool.heuristics.teachers import FEATURES, LONG_STEPS, least_cost
from pipeline.problems.pool.nouns import JobSet
from pipeline.simulation.results import Play, mean_cost
from pipeline.simulation.rollout import Heuristic

WITH_KNOB: dict[str, Callable[[float], Heuristic]] = {"tetris": with_weight, "hold": with_patience}
# Of these: the steps of a long job, and the step until which it is held back.
WITH_SPAN: dict[str, Callable[..., Heuristic]] = {"hold_until": with_span, "hold_long": with_long}
SPAN_KNOBS = {"hold_until": ("hold_until_long", "hold_until"), "hold_long": ("hold_long_long", "hold_long")}
WITH_KNOBS = (*WITH_KNOB, *WITH_SPAN, "linear")

SEARCH_SEED = 7  # of the search of the linear rule's weights
KNOB_OF = {name: f"linear_{name}" for name in FEATURES}  # the knob that is a feature's weight
AT_ONCE = 64  # candidates whose results are in memory together


def tuned(
    play: Play, knobs: PoolKnobs, training: Mapping[int, Sequence[JobSet]], seed: int = SEARCH_SEED
) -> dict[str, float]:
    """Return the best knob of each heuristic that has one, by mean slowdown, and the linear rule's best weights."""
    duration = np.concatenate([jobs.requested for group in training.values() for jobs in group])
    long = {float(LONG_STEPS), *(float(np.quantile(duration, q, method="higher")) for q in knobs.hold_quantiles)}
    candidates = {"tetris": knobs.tetris_weights, "hold": sorted(long)}
    best = {name: _least(play, WITH_KNOB[name], [(knob,) for knob in values])[0] for name, values in candidates.items()}
    spans = [(steps, float(until)) for steps in sorted(long) for until in knobs.hold_until]
    for name, make in WITH_SPAN.items() if spans else ():
        best |= dict(zip(SPAN_KNOBS[name], _least(play, make, spans), strict=True))
    if knobs.linear is None:
        return best
    return best | dict(zip(KNOB_OF.values(), tuned_linear(play, knobs.linear, seed), strict=True))


def _least(play: Play, make: Callable[..., Heuristic], candidates: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """Return the knobs of least mean slowdown, the first of equals."""
    results = play({repr(knobs): make(*knobs) for knobs in candidates})
    return min(candidates, key=lambda knobs: mean_cost(results[repr(knobs)], "slowdown"))


def tuned_linear(play: Play, config: LinearRuleSearch, seed: int) -> tuple[float, ...]:
    """Return the best weights of the linear rule that were tried.

    What they cost is their mean slowdown to that of SJF, mean over loads, so that no load outweighs the others.
    """
    sjf = play({"sjf": HEURISTICS["sjf"]})["sjf"].by_load
    return least_cost(lambda drawn: _cost(play, drawn, sjf), config, seed)


def _cost(play: Play, drawn: FloatArray, sjf: Mapping[int, float]) -> FloatArray:
    """Return the mean over loads of slowdown to SJF's, of every candidate."""
    cost = []
    for first in range(0, len(drawn), AT_ONCE):
        some = drawn[first : first + AT_ONCE].tolist()
        results = play({str(number): with_weights(weights) for number, weights in enumerate(some)})
        cost += [np.mean([mean / sjf[load] for load, mean in done.by_load.items()]) for done in results.values()]
    return np.array(cost)


def heuristics_with(knobs: Mapping[str, float]) -> dict[str, Policy]:
    """Return all heuristics, those with a knob as tuned."""
    found = HEURISTICS | {name: make(knobs[name]) for name, make in WITH_KNOB.items() if name in knobs}
    for name, make in WITH_SPAN.items():
        if set(SPAN_KNOBS[name]) <= set(knobs):
            found |= {name: make(*(knobs[knob] for knob in SPAN_KNOBS[name]))}
    weights = [knobs[name] for name in KNOB_OF.values() if name in knobs]
    return found | {"linear": with_weights(weights)} if weights else found
