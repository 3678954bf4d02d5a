"""`explain`: what an agent does differently from the rule that everybody knows."""

from pipeline.config import Params
from pipeline.problems import ExplainRequest, problem_of


def run(params: Params, asked: ExplainRequest) -> None:
    """Write reports/explain/<agent>, or of a plan reports/explain/<plan>."""
    row = params.plan(asked.agent) if asked.agent in params.plans else params.agent(asked.agent)
    problem_of(params, row.scenario).use.explain(params, asked)
