"""Scoring of policies on many machines."""

from functools import partial

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.types import Policy
from pipeline.problems.machines.env.evaluation.play import score
from pipeline.problems.machines.env.nouns import Jobs
from pipeline.problems.machines.env.storage import machines_of, read_jobsets, read_park, time_scale
from pipeline.problems.machines.heuristics.rules import heuristics_with, tuned_mix
from pipeline.problems.parts import Best, Scoring
from pipeline.simulation.results import best_of
from pipeline.simulation.rollout import Insider


def scoring(params: Params, scenario: str, agent: str | None = None) -> Scoring[Jobs, Policy | Insider]:
    """Return the functions that score policies on a scenario's jobsets."""
    folder = storage.jobsets_folder(scenario)
    park = read_park(folder)
    machines = machines_of(params.machines_scenario(scenario), park)
    return Scoring(
        read=lambda split: read_jobsets(folder, split, park),
        score=partial(score, machines=machines, seed=params.seed),
        tune=lambda examine, training: tuned_mix(examine, params.heuristics.machines),
        heuristics=heuristics_with,
        best=lambda examined: Best(best_of(examined), best_of(examined, "mean_wait")),
        scale=time_scale(params.machines_scenario(scenario), park),
    )
