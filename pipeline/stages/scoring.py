"""How policies of a scenario are scored, by its dynamics."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from pipeline import storage
from pipeline.config import Params
from pipeline.core import Cluster
from pipeline.evaluation.event_play import event_score
from pipeline.evaluation.group_play import group_score
from pipeline.evaluation.group_tuning import best_rules, rules_with, tuned_rules
from pipeline.evaluation.metrics import span_of
from pipeline.evaluation.play import Results, score
from pipeline.evaluation.tuning import best_of, event_heuristics_with, heuristics_with, tuned, tuned_mix
from pipeline.workload.group_source import cluster_of, configurations_of
from pipeline.workload.sites import machines_of


class Scoring(NamedTuple):
    """What differs between dynamics when policies are scored."""

    read: Callable[[str], Any]  # jobsets of a split, by load
    score: Callable[..., dict[str, Results]]  # (policies, jobsets, heard) -> results by the policy's name
    tune: Callable[[Any, Any], dict[str, float]]  # (examine, training jobsets) -> knobs of heuristics
    heuristics: Callable[[Mapping[str, float]], Mapping[str, Any]]  # all of them, given those knobs
    best: Callable[[Mapping[str, Results]], Mapping[str, Any]]  # the best heuristic at each load, as stored


def scoring(params: Params, scenario: str, agent: str | None = None) -> Scoring:
    """Return how policies are scored on a scenario's jobsets: those of an agent, or heuristics."""
    return DYNAMICS[params.any_scenario(scenario).dynamics](params, scenario, agent)


def _in_steps(params: Params, scenario: str, agent: str | None) -> Scoring:
    row, folder = params.scenario(scenario), storage.jobsets_folder(scenario)
    masked = agent is None or params.recipe(agent).masked
    scored = partial(score, cluster=Cluster.of(row), step_limit=row.step_limit, measured=span_of(row))
    return Scoring(
        read=lambda split: storage.read_jobsets(folder, split, row.resources),
        score=partial(scored, seed=params.seed, masked=masked),
        tune=lambda examine, training: tuned(examine, params.heuristics, training),
        heuristics=heuristics_with,
        best=lambda examined: {"best": best_of(examined)},
    )


def _event_driven(params: Params, scenario: str, agent: str | None) -> Scoring:
    folder = storage.jobsets_folder(scenario)
    site = storage.read_site(folder)
    machines = machines_of(params.event_scenario(scenario), site)
    return Scoring(
        read=lambda split: storage.read_event_jobsets(folder, split, site),
        score=partial(event_score, machines=machines, seed=params.seed),
        tune=lambda examine, training: tuned_mix(examine, params.heuristics),
        heuristics=event_heuristics_with,
        best=lambda examined: {"best": best_of(examined)},
    )


def _of_groups(params: Params, scenario: str, agent: str | None) -> Scoring:
    row, folder = params.group_scenario(scenario), storage.jobsets_folder(scenario)
    cluster, configurations = cluster_of(row), configurations_of(row)
    return Scoring(
        read=lambda split: storage.read_group_jobsets(folder, split, row.resources, cluster),
        score=partial(group_score, cluster=cluster, seed=params.seed),
        tune=lambda examine, training: tuned_rules(examine, cluster, training, params.seed),
        heuristics=lambda knobs: rules_with(knobs, cluster, configurations),
        best=best_rules,
    )


DYNAMICS: dict[str, Callable[[Params, str, str | None], Scoring]] = {
    "steps": _in_steps,
    "events": _event_driven,
    "groups": _of_groups,
}
