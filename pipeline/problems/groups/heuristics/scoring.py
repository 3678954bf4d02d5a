"""Scoring of the controllers of a shared cluster."""

from functools import partial

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.problems.groups.env.evaluation import play
from pipeline.problems.groups.env.nouns import Jobs
from pipeline.problems.groups.env.storage import read_jobsets
from pipeline.problems.groups.env.workload.source import cluster_of, configurations_of
from pipeline.problems.groups.heuristics.tuning import best_rules, rules_with, tuned_rules
from pipeline.problems.parts import Scoring


def scoring(params: Params, scenario: str, agent: str | None = None) -> Scoring[Jobs, play.Player]:
    """Return the functions that score controllers on a scenario's jobsets."""
    row, folder = params.groups_scenario(scenario), storage.jobsets_folder(scenario)
    cluster, configurations = cluster_of(row), configurations_of(row)
    return Scoring(
        read=lambda split: read_jobsets(folder, split, row.resources, cluster),
        score=partial(play.score, cluster=cluster, seed=params.seed),
        tune=lambda examine, training: tuned_rules(examine, cluster, training, params.seed),
        heuristics=lambda knobs: rules_with(knobs, cluster, configurations),
        best=best_rules,
    )
