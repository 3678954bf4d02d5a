"""How agents of many machines learn: networks with an actor and a critic; PPO, A3C, DAgger; evolution.

As for REINFORCE, a recipe says how and an agent's row how much.
"""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from pipeline.config.cards import FORMAT, Card, Weights
from pipeline.config.checks import check_algorithm, check_jobsets_drawn
from pipeline.config.learning import Budget, Evolution, NoPretrain
from pipeline.config.records import Frozen, Name, Positive, PositiveShare, Rate, Share, Weight, Wide
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.config.params import Params


class Vector(Frozen):
    """Deepk8s's network: two layers shared by actor and critic, for one size of the problem."""

    name: Literal["vector"]
    hidden: tuple[Wide, Wide]  # units of each layer


class DeepSets(Frozen):
    """A network that scores (job, machine) pairs with shared weights, for any number of either."""

    name: Literal["deepsets"]
    hidden: Wide  # units of its layers
    # What it plays untrained: whatever its seed says, or the shortest job first on the first machine.
    begins: Annotated[Literal["seed", "sjf"], Field(exclude_if=lambda word: word == "seed")] = "seed"


class Linear(Frozen):
    """Scores that are sums of weighted features, as heuristics are; for any number of jobs and machines."""

    name: Literal["linear"]
    begins: Literal["area", "area_ahead"]  # smallest area first; or with the time until the job fits in it


MachinesNetworkConfig = Annotated[Vector | DeepSets | Linear, Field(discriminator="name")]


class MachinesRecipe(Frozen):
    """What all recipes have in common."""

    algorithm: str
    play: Literal["greedy", "sampled"]  # once trained


class _GradientRecipe(MachinesRecipe):
    """What recipes that follow a gradient have in common."""

    optimizer: Literal["sgd", "rmsprop", "adam"]  # of the gradient
    learning_rate: Rate  # of the optimizer
    falling: bool  # does the learning rate fall to 0, in a line, by the last update?
    clip: Rate | None  # norm of the gradient
    entropy: Weight  # weight of the entropy, which keeps play varied


class PpoRecipe(_GradientRecipe):
    """How PPO learns (Schulman et al. 2017; Deepk8s, equation 4)."""

    algorithm: Literal["ppo"]
    epochs: Positive  # how often an update's play is learned
    minibatches: Positive  # of an epoch
    ratio: PositiveShare  # epsilon: how far the chance of an action may move from what it was
    gamma: PositiveShare  # discount of what comes later
    trace: Share  # lambda of generalised advantage estimation; 1 is the return less the value
    critic: Weight  # weight of the critic's error
    advantage: Literal["critic", "leave_one_out"]  # by the critic, or by the jobset's other episodes


class A3cRecipe(_GradientRecipe):
    """How A3C learns (Mnih et al. 2016; Deepk8s, equations 2 and 3)."""

    algorithm: Literal["a3c"]
    gamma: PositiveShare  # discount of what comes later
    trace: Share = 1.0  # lambda of generalised advantage estimation; 1 is the return less the value
    critic: Weight  # weight of the critic's error


class DaggerRecipe(_GradientRecipe):
    """How DAgger learns (Ross, Gordon, Bagnell 2011; Deepk8s, equation 5)."""

    algorithm: Literal["dagger"]
    pool: Annotated[int, Field(gt=0, le=10_000_000)]  # decisions that are kept, the latest ones
    batch: Positive  # decisions of a step of the optimizer
    steps: Positive  # of the optimizer in an update


class Ppo(Budget):
    """Proximal policy optimisation."""

    name: Literal["ppo"]
    episodes: Positive  # of each jobset


class A3c(Budget):
    """Asynchronous advantage actor-critic; an update is one gradient of one worker."""

    name: Literal["a3c"]
    workers: Annotated[int, Field(gt=0, le=64)]  # processes; with one, the same bytes every time


class Dagger(Budget):
    """Imitation of a heuristic on the learner's own states."""

    name: Literal["dagger"]
    teacher: str  # a heuristic


class MachinesEvolution(Evolution):
    """Evolution of a linear network, against a rule on the same jobsets."""

    base: str  # a heuristic; a candidate costs as many times what it costs, as a mean over loads
    tail: Weight  # weight of the same of the 99th percentile and of the longest of waits, so that starvation costs


AnyMachinesRecipe = PpoRecipe | A3cRecipe | DaggerRecipe
MachinesFinetune = Ppo | A3c | Dagger | MachinesEvolution


class MachinesAgent(Frozen):
    """One scheduler that is learned for many machines."""

    problem: Literal["machines"]
    scenario: str  # the scenario it learns on and is scored on
    objective: Literal["slowdown", "bounded_slowdown", "completion_time"]  # what it is trained for
    network: MachinesNetworkConfig  # its network
    pretrain: NoPretrain  # how it begins
    finetune: Annotated[MachinesFinetune, Field(discriminator="name")]  # how it goes on learning


class MachinesCard(Card):
    """A network of many machines."""

    format: Literal[2] = FORMAT
    problem: Literal["machines"]
    agent: Name
    scenario: Name
    resources: tuple[Name, ...]
    machines: Positive
    slots: Positive
    dispatch: str
    unit: Rate  # of time, in the log's
    stall: Annotated[float, Field(ge=0)] = 0.0  # time without an arrival after which void is refused, see the scenario
    objective: str
    network: MachinesNetworkConfig
    play: Literal["greedy", "sampled"]
    weights: Weights | None = None  # known once they are stored


def check_machines(params: "Params", where: str) -> None:
    """Check them.

    Raises:
        UserError: one line for the first row that does not go with another.
    """
    for name, agent in params.agents_with(MachinesAgent).items():
        check_algorithm(params, where, name, agent.finetune.name)
        recipe = params.machines_recipe(name)
        part = agent.finetune
        alone = isinstance(part, Ppo) and part.episodes < 2
        if alone and isinstance(recipe, PpoRecipe) and recipe.advantage == "leave_one_out":
            raise UserError(f"{where}: agents.{name}.finetune.episodes: expected at least 2 for leave_one_out, got 1")
        if isinstance(part, MachinesEvolution):
            _check_evolution(f"{where}: agents.{name}", agent, part)
        check_jobsets_drawn(params, where, name)


def _check_evolution(where: str, agent: MachinesAgent, part: MachinesEvolution) -> None:
    if agent.network.name != "linear":
        raise UserError(f"{where}.network.name: expected linear for evolution, got '{agent.network.name}'")
    if part.jobsets % len(part.loads):
        raise UserError(
            f"{where}.finetune.jobsets: expected as many of each of {len(part.loads)} loads, got {part.jobsets}"
        )
