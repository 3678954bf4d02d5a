"""Checks across the sections of params.yaml, for all problems. Each raises a UserError for the first wrong row."""

from collections.abc import Collection
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pipeline.core.config.learning import NoPretrain
from pipeline.core.config.records import check_known
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.core.config.params import Params

SIMILAR = 0.9  # ratio of difflib between two names of which one is misspelt


def check_names(params: "Params", where: str) -> None:
    """Refuse rows that name an unknown row, one of another problem, or have the name of another policy."""
    for name, agent in params.agents.items():
        check_known(where, f"agents.{name}.scenario", agent.scenario, params.scenarios)
        check_known(where, f"agents.{name}.finetune.recipe", agent.finetune.recipe, params.recipes)
        _check_problem(params, f"{where}: agents.{name}", agent.problem, agent.scenario)
    for name, plan in params.plans.items():
        check_known(where, f"plans.{name}.scenario", plan.scenario, params.scenarios)
        of, place = params.scenarios[plan.scenario].problem, f"{where}: plans.{name}.scenario"
        if plan.problem != of:
            wanted = f"expected problem {plan.problem}, as the plan is"
            raise UserError(f"{place}: {wanted}; scenario '{plan.scenario}' is of problem {of}")
    for name, row in params.policies.items():
        check_known(where, f"policies.{name}.scenario", row.scenario, params.scenarios)
        _check_problem(params, f"{where}: policies.{name}", row.problem, row.scenario)
        if name in params.agents or name in params.plans:
            raise UserError(f"{where}: policies.{name}: '{name}' is the name of another policy; choose another")
    for name in params.sites:
        check_known(where, f"sites.{name}", name, params.scenarios)
    for name in params.gate.fewer if params.gate else ():
        if get_close_matches(name, params.scenarios, cutoff=SIMILAR):  # a scenario that was removed has no effect
            check_known(where, f"gate.fewer.{name}", name, params.scenarios)


def _check_problem(params: "Params", place: str, problem: str, scenario: str) -> None:
    if problem != (of := params.scenarios[scenario].problem):
        raise UserError(f"{place}.problem: expected {of}, as of scenario '{scenario}', got '{problem}'")


def check_plan_names(params: "Params", problem: str, bases: Collection[str], taken: Collection[str]) -> None:
    """Refuse a problem's plans without a base among its heuristics and agents, or with the name of another policy."""
    check_names_free(params, problem, taken)
    for name, plan in params.plans.items():
        if plan.problem == problem:
            check_known("params.yaml", f"plans.{name}.base", plan.base, bases)


def check_names_free(params: "Params", problem: str, taken: Collection[str]) -> None:
    """Refuse a problem's plans and external policies with the name of another policy."""
    for section, rows in (("plans", params.plans), ("policies", params.policies)):
        for name, row in rows.items():
            if row.problem == problem and name in taken:
                raise UserError(
                    f"params.yaml: {section}.{name}: '{name}' is the name of another policy; choose another"
                )


def check_algorithm(params: "Params", where: str, name: str, algorithm: str) -> None:
    """Refuse an agent whose recipe is of another algorithm."""
    chosen = params.agents[name].finetune.recipe
    found = params.recipes[chosen].algorithm
    if found != algorithm:
        raise UserError(f"{where}: agents.{name}.finetune.recipe: '{chosen}' is one of {found}, not of {algorithm}")


def check_jobsets_drawn(params: "Params", where: str, name: str, only_generated: bool = False) -> None:
    """Refuse an agent that trains on loads or jobsets which `generate` does not draw.

    With `only_generated`, fine-tuning, like pretraining, uses only generated jobsets.
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
