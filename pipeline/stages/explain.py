"""`explain`: how a policy's decisions differ from those of a well-known rule."""

from pathlib import Path

from pipeline.core.config import Params, known_names, pick
from pipeline.errors import UserError
from pipeline.interactive.explaining.explain import ExplainRequest, explain
from pipeline.lookahead.planner import PREFIX
from pipeline.problems import problem_of


def run(params: Params, request: ExplainRequest) -> None:
    """Write reports/explain/<policy>."""
    request = resolved(params, request)
    explain(problem_of(params, request.scenario or "").explain, params, request)


def resolved(params: Params, request: ExplainRequest) -> ExplainRequest:
    """Return the request with its scenario; an agent outside its own scenario is named by its folder."""
    name = request.agent.removeprefix("models/").rstrip("/")
    if (row := params.policies.get(name)) and request.scenario in (None, row.scenario):
        return request._replace(agent=row.policy, scenario=row.scenario)
    rows = {**params.agents, **params.plans}
    if name in rows and request.scenario in (None, rows[name].scenario):
        return request._replace(agent=name, scenario=rows[name].scenario)
    if name in params.plans or (name.startswith(PREFIX) and not Path(request.agent).is_dir()):
        known = known_names(params.plans, name) if params.plans else "there is none"
        raise UserError(
            f"policy '{name}': a policy with look-ahead needs a row of `plans` in params.yaml, "
            f"and is explained in the scenario of that row; {known}"
        )
    if request.scenario is None:
        try:
            pick(rows, name, "agent or plan" if params.plans else "agent")
        except UserError as error:
            raise UserError(f"{error}; for a heuristic or another model, name the scenario by --scenario") from None
    return request._replace(agent=f"models/{name}" if name in params.agents else request.agent)
