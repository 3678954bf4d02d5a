"""Registration of problems in config: the records of a problem, its checks, and checks of names for all problems.

Each check raises a UserError for the first wrong row.

A problem has a scenario, an agent, recipes, ways to pre-train and to fine-tune, plans if its policies look ahead, and
knobs of heuristics. To add one, add a folder here, a name to each line below, and a check that its rows agree.
"""

from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pipeline.core.config.groups.learning import Dqn, DqnRecipe, GroupsAgent, Replay, check_groups
from pipeline.core.config.groups.scenario import GroupsScenario
from pipeline.core.config.learning import Evolution, EvolutionRecipe, NoPretrain
from pipeline.core.config.machines.learning import (
    AnyMachinesRecipe,
    MachinesAgent,
    MachinesFinetune,
    MachinesKnobs,
    MachinesPlan,
    check_machines,
)
from pipeline.core.config.machines.scenario import MachinesScenario
from pipeline.core.config.pool.checks import check_pool
from pipeline.core.config.pool.heuristics import PoolKnobs, PoolPlan
from pipeline.core.config.pool.learning import PoolAgent, PoolFinetune, PoolPretrain, Recipe
from pipeline.core.config.pool.scenario import PoolScenario
from pipeline.core.config.records import Frozen, check_known
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.core.config.params import Params

SIMILAR = 0.9  # ratio of difflib between two names of which one is misspelt

AnyScenario = PoolScenario | MachinesScenario | GroupsScenario
Agent = PoolAgent | MachinesAgent | GroupsAgent
AnyRecipe = Annotated[Recipe | AnyMachinesRecipe | DqnRecipe | EvolutionRecipe, Field(discriminator="algorithm")]
PretrainConfig = NoPretrain | PoolPretrain | Replay
FinetuneConfig = PoolFinetune | MachinesFinetune | Dqn | Evolution
Plan = PoolPlan | MachinesPlan


class NoKnobs(Frozen):
    """No knobs: heuristics without a choice."""


class HeuristicKnobs(Frozen):
    """Knobs of the heuristics of each problem, chosen on validation jobsets."""

    pool: PoolKnobs  # of pooled clusters
    machines: MachinesKnobs  # of many machines
    groups: NoKnobs  # of user groups: nothing to choose


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


CHECKS: tuple[Callable[["Params", str], None], ...] = (check_pool, check_machines, check_groups)
