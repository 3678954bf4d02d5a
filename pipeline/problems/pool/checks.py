"""Checks of params.yaml that need code of a pooled cluster: names of policies, loads, estimates."""

from pipeline.core.config import Clone, Params, PoolAgent
from pipeline.core.config.checks import check_plan_names
from pipeline.core.config.records import check_known
from pipeline.errors import UserError
from pipeline.problems.pool.env.teachers import TEACHERS
from pipeline.problems.pool.env.workload.synthetic import check_estimates, check_synthetic
from pipeline.problems.pool.heuristics.scores import HEURISTICS


def check(params: Params) -> None:
    """Raise a UserError for the first mistake."""
    for each in (check_synthetic, check_estimates, check_names, check_teachers):
        each(params)


def check_names(params: Params) -> None:
    """Raise a UserError if an agent or a plan has the name of another policy, or a plan's base is unknown."""
    taken = {*HEURISTICS, *(f"{agent}{end}" for agent in params.agents for end in ("_pretrained", "_tree"))}
    for name in params.agents:
        if name in taken:
            raise UserError(f"params.yaml: agents.{name}: '{name}' is the name of another policy; choose another")
    bases = [*HEURISTICS, *params.agents_with(PoolAgent)]
    check_plan_names(params, "pool", bases, taken | set(params.agents))


def check_teachers(params: Params) -> None:
    """Raise a UserError if an agent learns from an unknown teacher."""
    for name, agent in params.agents.items():
        asked = agent.pretrain
        if isinstance(asked, Clone):
            check_known("params.yaml", f"agents.{name}.pretrain.teacher", asked.teacher, TEACHERS)
