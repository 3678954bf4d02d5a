"""Learning of a controller of user groups: value function, pre-training on a log, Q-learning."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from pipeline.core.config.learning import (
    FORMAT,
    Budget,
    Card,
    Evolution,
    NoPretrain,
    Weights,
    check_algorithm,
    check_jobsets_drawn,
)
from pipeline.core.config.records import Frozen, Loads, Many, Name, Positive, Rate, Seed, Share, Weight, Wide
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.core.config.params import Params

# Properties of the cluster that must be the same in training and use.
MUST_MATCH = ("resources", "groups", "queues", "orders", "levels", "interval")


class QNetworkConfig(Frozen):
    """The controller's value function: the value of a group's state, for some units and each order of its queues."""

    name: Literal["q_network"]
    hidden: tuple[Wide, Wide]  # units of each layer
    weights: Literal["shared", "per_group"]  # one network for all groups, or (as in the source) one for each
    combine: Literal["q", "reward"] = "q"  # what the knapsack sums over groups: values, or (the source) next rewards


class WorthConfig(Frozen):
    """An explicit value function: the value of units by the jobs that they serve."""

    name: Literal["worth"]


class DqnRecipe(Frozen):
    """Learning of the controller's value function: everything except the amount of training."""

    algorithm: Literal["dqn"]
    learning_rate: Rate  # of the optimizer
    falling: bool  # does the rate fall linearly to 0 by the last update of online learning?
    clip: Rate | None  # maximum norm of the gradient; null: unlimited
    gamma: Annotated[float, Field(ge=0, lt=1)]  # discount of rewards one interval later
    against: Literal["present", "nothing", "zero"]  # what a reward is measured against: docs/systems/controller.md
    batch: Positive  # decisions of the whole cluster in an optimizer step
    memory: Many  # decisions of the whole cluster that are kept
    target: Annotated[int, Field(ge=0)]  # steps between two copies to the target network; 0: there is none
    double: bool  # does the network itself choose the next configuration, which the target network values?
    huber: bool  # the Huber loss instead of squared errors?
    bootstrap: Literal["joint", "own"]  # next configurations: the knapsack's, or each group's own best
    conservative: Weight  # weight of the conservative term (CQL) in pre-training


class Replay(Frozen):
    """Pre-training on a log that is replayed under random and heuristic configurations."""

    name: Literal["replay"]
    loads: Loads  # percent, of the scenario's
    jobsets: Positive  # training jobsets that are replayed, over all loads
    updates: Positive  # how many
    steps: Positive  # optimizer steps in an update
    random: Share  # share of the replays with random configurations only
    noise: Share  # chance that a random configuration replaces a heuristic controller's, by group
    seed: Seed | None = None  # default: that of params.yaml

    @property
    def budget(self) -> int:
        """Updates."""
        return self.updates


class Dqn(Budget):
    """Online learning from the controller's own decisions, with an optimizer step after every few (Algorithm 1).

    In each update some jobsets are controlled, in parallel, from their first interval to their last.
    """

    name: Literal["dqn"]
    every: Positive  # F: decisions of each jobset between two optimizer steps
    epsilon: Share  # chance that a group's configuration is a random one; the source: 0


class GroupsAgent(Frozen):
    """One controller that is learned for user groups."""

    problem: Literal["groups"]
    scenario: str  # the scenario it learns on and is scored on
    objective: Literal["delay", "slowdown"]  # what it is trained for
    network: Annotated[QNetworkConfig | WorthConfig, Field(discriminator="name")]  # its network
    pretrain: Annotated[NoPretrain | Replay, Field(discriminator="name")]  # how it begins
    finetune: Annotated[Dqn | Evolution, Field(discriminator="name")]  # its further training


def check_groups(params: "Params", where: str) -> None:
    """Check the agents of user groups; raise a UserError for the first row that contradicts another."""
    for name, agent in params.agents_with(GroupsAgent).items():
        check_algorithm(params, where, name, agent.finetune.name)
        check_jobsets_drawn(params, where, name)
        replayed, evolved = agent.pretrain, isinstance(agent.finetune, Evolution)
        if evolved != isinstance(agent.network, WorthConfig):
            wanted = "worth" if evolved else "q_network"
            raise UserError(
                f"{where}: agents.{name}.network.name: expected {wanted} for {agent.finetune.name}, "
                f"got '{agent.network.name}'"
            )
        if evolved:
            if isinstance(replayed, Replay):
                raise UserError(f"{where}: agents.{name}.pretrain.name: expected none for evolution, got 'replay'")
            continue
        recipe = params.recipes[agent.finetune.recipe]
        least = 2 * max(replayed.jobsets if isinstance(replayed, Replay) else 1, agent.finetune.jobsets)
        if isinstance(recipe, DqnRecipe) and recipe.memory < least:
            place = f"{where}: recipes.{agent.finetune.recipe}.memory"
            wanted = f"at least {least}, twice the parallel jobsets of agent '{name}'"
            raise UserError(f"{place}: expected {wanted}, got {recipe.memory}")


class GroupsCard(Card):
    """A controller's network."""

    format: Literal[2] = FORMAT
    problem: Literal["groups"]
    agent: Name
    scenario: Name
    resources: dict[Name, Positive]
    groups: Positive
    queues: tuple[Name, ...]
    orders: tuple[tuple[Name, ...], ...]
    levels: tuple[float, ...]
    interval: Rate
    objective: str
    against: str | None  # if it learns from rewards
    gamma: float | None
    network: Annotated[QNetworkConfig | WorthConfig, Field(discriminator="name")]
    weights: Weights | None = None  # known once they are stored
