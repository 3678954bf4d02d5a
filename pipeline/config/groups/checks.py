"""What must agree among the rows about user groups."""

from typing import TYPE_CHECKING

from pipeline.config.checks import must_be_drawn, must_learn_by
from pipeline.config.groups.learning import DqnRecipe, GroupsAgent, Replay
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.config.params import Params


def check_groups(params: "Params", where: str) -> None:
    """Check them.

    Raises:
        UserError: one line for the first row that does not go with another.
    """
    for name, agent in params.agents_with(GroupsAgent).items():
        must_learn_by(params, where, name, agent.finetune.name)
        recipe, replayed = params.recipe_of(DqnRecipe, name), agent.pretrain
        least = 2 * max(replayed.jobsets if isinstance(replayed, Replay) else 1, agent.finetune.jobsets)
        if recipe.memory < least:
            place = f"{where}: recipes.{agent.finetune.recipe}.memory"
            wanted = f"at least {least}, twice the jobsets that agent '{name}' has side by side"
            raise UserError(f"{place}: expected {wanted}, got {recipe.memory}")
        must_be_drawn(params, where, name)
