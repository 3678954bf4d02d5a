"""Registration of problems in config: the records of a problem, and its checks.

A problem has a scenario, an agent, recipes, ways to pre-train and to fine-tune, plans if its policies look ahead, and
knobs of heuristics. To add one, add a folder here, a name to each line below, and a check that its rows agree.
"""

from collections.abc import Callable
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
from pipeline.core.config.records import Frozen

if TYPE_CHECKING:
    from pipeline.core.config.params import Params

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


CHECKS: tuple[Callable[["Params", str], None], ...] = (check_pool, check_machines, check_groups)
