"""Preparation of the process that `quick_workers` forks from: each problem's code is imported and has decided once."""

from builders import params

from pipeline.problems import problem_of
from pipeline.stages.serve import heuristic

PARAMS = params()
for scenario, policy in (("machines", "sjf"), ("machines", "saf"), ("online", "easy"), ("shares", "drf")):
    live, named = problem_of(PARAMS, scenario).live, heuristic(policy)
    decide = live.decider(PARAMS, scenario, named.place, named.tuned)
    decide(live.state.model_validate(live.example(PARAMS, scenario)))
