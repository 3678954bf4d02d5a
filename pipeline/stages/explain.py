"""`explain`: how a policy's decisions differ from those of a well-known rule."""

from pathlib import Path

from pipeline.config import Params, pick
from pipeline.config.records import there_are
from pipeline.errors import UserError
from pipeline.explaining.explain import ExplainRequest, explain
from pipeline.lookahead.planner import PREFIX
from pipeline.problems import problem_of


def run(params: Params, asked: ExplainRequest) -> None:
    """Write reports/explain/<policy>."""
    asked = resolved(params, asked)
    explain(problem_of(params, asked.scenario or "").explain, params, asked)


def resolved(params: Params, asked: ExplainRequest) -> ExplainRequest:
    """Return the request with its scenario; an agent in another scenario than its own is named by its folder."""
    name = asked.agent.removeprefix("models/").rstrip("/")
    if (row := params.policies.get(name)) and asked.scenario in (None, row.scenario):
        return asked._replace(agent=row.policy, scenario=row.scenario)
    rows = {**params.agents, **params.plans}
    if name in rows and asked.scenario in (None, rows[name].scenario):
        return asked._replace(agent=name, scenario=rows[name].scenario)
    if name in params.plans or (name.startswith(PREFIX) and not Path(asked.agent).is_dir()):
        known = there_are(params.plans, name) if params.plans else "there is none"
        raise UserError(
            f"policy '{name}': a policy with look-ahead needs a row of `plans` in params.yaml, "
            f"and is explained in the scenario of that row; {known}"
        )
    if asked.scenario is None:
        try:
            pick(rows, name, "agent or plan" if params.plans else "agent")
        except UserError as error:
            raise UserError(f"{error}; for a heuristic or another model, name the scenario by --scenario") from None
    return asked._replace(agent=f"models/{name}" if name in params.agents else asked.agent)
