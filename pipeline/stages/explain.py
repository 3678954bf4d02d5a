"""`explain`: what an agent does differently from the rule that everybody knows."""

from pipeline.config import Params
from pipeline.problems import ExplainRequest, problem_of


def run(params: Params, asked: ExplainRequest) -> None:
    """Write reports/explain/<agent>."""
    problem_of(params, params.agent(asked.agent).scenario).use.explain(params, asked)
