"""What must agree among the rows about many machines."""

from typing import TYPE_CHECKING

from pipeline.config.checks import must_be_drawn, must_learn_by
from pipeline.config.machines.learning import MachinesAgent, MachinesRecipe, Ppo, PpoRecipe
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.config.params import Params


def check_machines(params: "Params", where: str) -> None:
    """Check them.

    Raises:
        UserError: one line for the first row that does not go with another.
    """
    for name, agent in params.agents_with(MachinesAgent).items():
        must_learn_by(params, where, name, agent.finetune.name)
        recipe = params.recipe_of(MachinesRecipe, name)
        part = agent.finetune
        alone = isinstance(part, Ppo) and part.episodes < 2
        if alone and isinstance(recipe, PpoRecipe) and recipe.advantage == "leave_one_out":
            raise UserError(f"{where}: agents.{name}.finetune.episodes: expected at least 2 for leave_one_out, got 1")
        if agent.finetune.name == "cem" and agent.network.name != "linear":
            raise UserError(f"{where}: agents.{name}.network.name: expected linear for cem, got '{agent.network.name}'")
        must_be_drawn(params, where, name)
