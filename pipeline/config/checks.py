"""What must agree across the sections of params.yaml, whatever the problem."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from pipeline.config.learning import NoPretrain
from pipeline.config.records import check_known
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.config.params import Params


def check_names(params: "Params", where: str) -> None:
    """Refuse a row of which scenario or recipe is not there, or an agent or plan whose scenario is of another problem.

    Raises:
        UserError: one line for the first such row.
    """
    for name, agent in params.agents.items():
        check_known(where, f"agents.{name}.scenario", agent.scenario, params.scenarios)
        check_known(where, f"agents.{name}.finetune.recipe", agent.finetune.recipe, params.recipes)
        of = params.scenarios[agent.scenario].problem
        if agent.problem != of:
            raise UserError(
                f"{where}: agents.{name}.problem: expected {of}, as of scenario '{agent.scenario}', "
                f"got '{agent.problem}'"
            )
    for name, plan in params.plans.items():
        check_known(where, f"plans.{name}.scenario", plan.scenario, params.scenarios)
        of, place = params.scenarios[plan.scenario].problem, f"{where}: plans.{name}.scenario"
        if plan.problem != of:
            wanted = f"expected problem {plan.problem}, as the plan is"
            raise UserError(f"{place}: {wanted}; scenario '{plan.scenario}' is of problem {of}")


def check_plan_names(params: "Params", problem: str, bases: Collection[str], taken: Collection[str]) -> None:
    """Refuse a policy that looks ahead with another one's name, or whose base is not there.

    Args:
        params: all of params.yaml.
        problem: whose policies.
        bases: its heuristics and agents.
        taken: names of other policies.

    Raises:
        UserError: one line for the first such row.
    """
    check_names_free(params, problem, taken)
    for name, plan in params.plans.items():
        if plan.problem == problem:
            check_known("params.yaml", f"plans.{name}.base", plan.base, bases)


def check_names_free(params: "Params", problem: str, taken: Collection[str]) -> None:
    """Refuse a policy that looks ahead, or was made elsewhere, with another one's name.

    Raises:
        UserError: one line for the first such row.
    """
    for section, rows in (("plans", params.plans), ("policies", params.policies)):
        for name, row in rows.items():
            if row.problem == problem and name in taken:
                raise UserError(
                    f"params.yaml: {section}.{name}: '{name}' is the name of another policy; choose another"
                )


def check_algorithm(params: "Params", where: str, name: str, algorithm: str) -> None:
    """Refuse an agent whose recipe is one of another algorithm.

    Raises:
        UserError: it is.
    """
    chosen = params.agents[name].finetune.recipe
    found = params.recipes[chosen].algorithm
    if found != algorithm:
        raise UserError(f"{where}: agents.{name}.finetune.recipe: '{chosen}' is one of {found}, not of {algorithm}")


def check_jobsets_drawn(params: "Params", where: str, name: str, only_generated: bool = False) -> None:
    """Refuse an agent that trains on loads or jobsets which `generate` does not draw.

    Args:
        params: all of params.yaml.
        where: the file.
        name: the agent's.
        only_generated: has fine-tuning, too, no other jobsets than those?

    Raises:
        UserError: it does.
    """
    agent = params.agents[name]
    scenario = params.scenarios[agent.scenario]
    for part, chosen in (("pretrain", agent.pretrain), ("finetune", agent.finetune)):
        if isinstance(chosen, NoPretrain):
            continue
        place = f"{where}: agents.{name}.{part}"
        for load in chosen.loads:
            if load not in scenario.loads:
                raise UserError(f"{place}.loads: {load} is not a load of scenario '{agent.scenario}'")
        each = -(-chosen.jobsets // len(chosen.loads))
        if (part == "pretrain" or only_generated) and each > scenario.jobsets.train:
            raise UserError(
                f"{place}.jobsets: {chosen.jobsets} need {each} training jobsets of each load; scenario "
                f"'{agent.scenario}' has {scenario.jobsets.train}"
            )
