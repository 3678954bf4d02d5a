"""Scoring of policies on a pooled cluster."""

from functools import partial

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.types import Policy
from pipeline.problems.parts import Best, Scoring
from pipeline.problems.pool.env.evaluation.metrics import span_of
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import Cluster, JobSet
from pipeline.problems.pool.env.storage import read_jobsets
from pipeline.problems.pool.heuristics.scores import heuristics_with, tuned
from pipeline.simulation.results import best_of, best_single


def scoring(params: Params, scenario: str, agent: str | None = None) -> Scoring[JobSet, Policy]:
    """Return the functions that score an agent's policies, or heuristics, on a scenario's jobsets."""
    row, folder = params.pool_scenario(scenario), storage.jobsets_folder(scenario)
    masked, cluster = agent is None or params.pool_recipe(agent).masked, Cluster.of(row, trained=agent is not None)
    scored = partial(score, cluster=cluster, step_limit=row.step_limit, measured=span_of(row))
    return Scoring(
        read=lambda split: read_jobsets(folder, split, row.resources, row.known_load),
        score=partial(scored, seed=params.seed, masked=masked),
        tune=lambda examine, training: tuned(examine, params.heuristics.pool, training),
        heuristics=heuristics_with,
        best=lambda examined: Best(best_of(examined)) if row.tell_load else Best(best_single(examined), single=True),
    )
