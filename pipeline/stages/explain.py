"""`explain`: what a policy does differently from the rule that everybody knows."""

from pathlib import Path

from pipeline.config import Params, pick
from pipeline.config.records import known_names
from pipeline.errors import UserError
from pipeline.explaining.explain import ExplainRequest, explain
from pipeline.problems import problem_of

AHEAD = "plan_"  # before a policy that looks ahead


def run(params: Params, asked: ExplainRequest) -> None:
    """Write reports/explain/<policy>.

    Raises:
        UserError: there is no such policy, or it is not known in which scenario it decides.
    """
    asked = resolved(params, asked)
    explain(problem_of(params, asked.scenario or "").explain, params, asked)


def resolved(params: Params, asked: ExplainRequest) -> ExplainRequest:
    """Return the request with its scenario; an agent in a scenario other than its own is a model by its folder."""
    name = asked.agent.removeprefix("models/").rstrip("/")
    if (row := params.policies.get(name)) and asked.scenario in (None, row.scenario):
        return asked._replace(agent=row.policy, scenario=row.scenario)
    rows = {**params.agents, **params.plans}
    if name in rows and asked.scenario in (None, rows[name].scenario):
        return asked._replace(agent=name, scenario=rows[name].scenario)
    if name in params.plans or (name.startswith(AHEAD) and not Path(asked.agent).is_dir()):
        raise UserError(
            f"policy '{name}': a policy that looks ahead is explained where a row of `plans` in params.yaml has it, "
            f"in the scenario of that row; {known_names(params.plans, name) if params.plans else 'there is none'}"
        )
    if asked.scenario is None:
        try:
            pick(rows, name, "agent or plan" if params.plans else "agent")
        except UserError as error:
            raise UserError(f"{error}; for a heuristic or another model, name the scenario by --scenario") from None
    return asked._replace(agent=f"models/{name}" if name in params.agents else asked.agent)
