"""How policies of many machines are scored."""

from functools import partial

from pipeline import storage
from pipeline.comparing.results import best_of
from pipeline.config import Params
from pipeline.core import Policy
from pipeline.problems import Best, Scoring
from pipeline.problems.machines.evaluation.play import event_score
from pipeline.problems.machines.heuristics.tuning import event_heuristics_with, tuned_mix
from pipeline.problems.machines.nouns import Jobs
from pipeline.problems.machines.storage import read_event_jobsets, read_site
from pipeline.problems.machines.workload.park import machines_of


def scoring(params: Params, scenario: str, agent: str | None = None) -> Scoring[Jobs, Policy]:
    """Return how policies are scored on a scenario's jobsets."""
    folder = storage.jobsets_folder(scenario)
    site = read_site(folder)
    machines = machines_of(params.machines_scenario(scenario), site)
    return Scoring(
        read=lambda split: read_event_jobsets(folder, split, site),
        score=partial(event_score, machines=machines, seed=params.seed),
        tune=lambda examine, training: tuned_mix(examine, params.heuristics.machines),
        heuristics=event_heuristics_with,
        best=lambda examined: Best(best_of(examined)),
    )
