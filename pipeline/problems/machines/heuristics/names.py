"""Names of params.yaml that must be, or must not be, those of heuristics on many machines."""

from pipeline.config import Dagger, MachinesAgent, MachinesEvolution, Params
from pipeline.config.checks import check_plan_names
from pipeline.config.records import check_known
from pipeline.errors import UserError
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.heuristics.teachers import TEACHERS


def check_names(params: Params) -> None:
    """Check that agents and plans of many machines have names of their own, and teachers and bases that there are.

    Raises:
        UserError: one has the name of another policy, or learns from or improves one that is not there.
    """
    for name, agent in params.agents.items():
        if agent.scenario not in params.machines_scenarios:
            continue
        if name in HEURISTICS:
            raise UserError(f"params.yaml: agents.{name}: '{name}' is the name of another policy; choose another")
        if isinstance(agent.finetune, Dagger):
            check_known("params.yaml", f"agents.{name}.finetune.teacher", agent.finetune.teacher, TEACHERS)
        if isinstance(agent.finetune, MachinesEvolution):
            check_known("params.yaml", f"agents.{name}.finetune.base", agent.finetune.base, TEACHERS)
    _check_plans(params)


def _check_plans(params: Params) -> None:
    agents = params.agents_with(MachinesAgent)
    taken = {*HEURISTICS, *(f"{agent}{end}" for agent in params.agents for end in ("", "_pretrained"))}
    check_plan_names(params, "machines", {**dict.fromkeys(HEURISTICS), **agents}, taken)
