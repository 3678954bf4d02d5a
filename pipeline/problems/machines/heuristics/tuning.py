"""Choose on validation jobsets: the knobs of heuristics on many machines."""

from collections.abc import Mapping

from pipeline.config import MachinesKnobs
from pipeline.core import Policy
from pipeline.problems.machines.heuristics.rules import HEURISTICS, with_mix
from pipeline.simulation.results import Play, mean_cost

TETRIS = "tetris"


MIX = ("tetris_packing", "tetris_fairness")  # knobs of the same; shortness has the rest


def tuned_mix(play: Play, knobs: MachinesKnobs) -> dict[str, float]:
    """Return the best mix of Tetris on many machines, by mean bounded slowdown."""
    tried = {f"{TETRIS} {mix!r}": mix for mix in knobs.mixes}
    results = play({name: with_mix(*mix) for name, mix in tried.items()})
    best = min(tried, key=lambda name: mean_cost(results[name], "bounded_slowdown"))
    return dict(zip(MIX, tried[best], strict=True))


def heuristics_with(knobs: Mapping[str, float]) -> dict[str, Policy]:
    """Return all heuristics of scenarios of many machines, Tetris as tuned."""
    return HEURISTICS | {TETRIS: with_mix(*(knobs[name] for name in MIX))}
