"""Names of params.yaml that must be, or must not be, those of heuristics on many machines."""

from pipeline.config import Dagger, Params
from pipeline.config.records import must_know
from pipeline.errors import UserError
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.heuristics.teachers import TEACHERS


def check_names(params: Params) -> None:
    """Check that agents of scenarios of many machines have names of their own, and teachers that there are.

    Raises:
        UserError: one has the name of a heuristic, or learns from one that is none.
    """
    for name, agent in params.agents.items():
        if agent.scenario not in params.machines_scenarios:
            continue
        if name in HEURISTICS:
            raise UserError(f"params.yaml: agents.{name}: '{name}' is the name of another policy; choose another")
        if isinstance(agent.finetune, Dagger):
            must_know("params.yaml", f"agents.{name}.finetune.teacher", agent.finetune.teacher, TEACHERS)
