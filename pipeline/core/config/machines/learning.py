"""Agents of many machines (a recipe says how they learn, a row of `agents` how much), heuristics and plans."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

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
from pipeline.core.config.records import Frozen, Name, Positive, PositiveShare, Rate, Share, Weight, Wide
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.core.config.params import Params


class Vector(Frozen):
    """Deepk8s's network: two layers shared by actor and critic, for one size of the problem."""

    name: Literal["vector"]
    hidden: tuple[Wide, Wide]  # units of each layer


class DeepSets(Frozen):
    """A network that scores (job, machine) pairs with shared weights, for any number of either."""

    name: Literal["deepsets"]
    hidden: Wide  # units of its layers
    # Its policy before training: random by its seed, or the shortest job first on the first machine.
    begins: Annotated[Literal["seed", "sjf"], Field(exclude_if=lambda word: word == "seed")] = "seed"


class Linear(Frozen):
    """Scores that are sums of weighted features, as heuristics are; for any number of jobs and machines."""

    name: Literal["linear"]
    begins: Literal["area", "area_ahead"]  # smallest area first; `area_ahead` includes the time until the job fits


MachinesNetworkConfig = Annotated[Vector | DeepSets | Linear, Field(discriminator="name")]


class MachinesRecipe(Frozen):
    """Settings of gradient-based training."""

    algorithm: str
    play: Literal["greedy", "sampled"]  # once trained: the most probable action, or a sample
    optimizer: Literal["sgd", "rmsprop", "adam"]  # of the gradient
    learning_rate: Rate  # of the optimizer
    falling: bool  # does the learning rate fall linearly to 0 by the last update?
    clip: Rate | None  # maximum norm of the gradient; null: unlimited
    entropy: Weight  # weight of the entropy, which keeps actions varied


class PpoRecipe(MachinesRecipe):
    """Settings of PPO (Schulman et al. 2017; Deepk8s, equation 4)."""

    algorithm: Literal["ppo"]
    epochs: Positive  # passes over the play of an update
    minibatches: Positive  # of an epoch
    ratio: PositiveShare  # epsilon: limit on the change of an action's probability
    gamma: PositiveShare  # discount of later rewards
    trace: Share  # lambda of generalised advantage estimation; 1 is the return less the value
    critic: Weight  # weight of the critic's error
    advantage: Literal["critic", "leave_one_out"]  # baseline: the critic, or the jobset's other episodes


class A3cRecipe(MachinesRecipe):
    """Settings of A3C (Mnih et al. 2016; Deepk8s, equations 2 and 3)."""

    algorithm: Literal["a3c"]
    gamma: PositiveShare  # discount of later rewards
    trace: Share = 1.0  # lambda of generalised advantage estimation; 1 is the return less the value
    critic: Weight  # weight of the critic's error


class DaggerRecipe(MachinesRecipe):
    """Settings of DAgger (Ross, Gordon, Bagnell 2011; Deepk8s, equation 5)."""

    algorithm: Literal["dagger"]
    pool: Annotated[int, Field(gt=0, le=10_000_000)]  # number of latest decisions that are kept
    batch: Positive  # decisions in an optimizer step
    steps: Positive  # optimizer steps in an update


class Ppo(Budget):
    """Proximal policy optimisation."""

    name: Literal["ppo"]
    episodes: Positive  # of each jobset


class A3c(Budget):
    """Asynchronous advantage actor-critic; an update is one gradient of one worker."""

    name: Literal["a3c"]
    workers: Annotated[int, Field(gt=0, le=64)]  # processes; only with one are results repeatable


class Dagger(Budget):
    """Imitation of a heuristic on the learner's own states."""

    name: Literal["dagger"]
    teacher: str  # a heuristic


class MachinesEvolution(Evolution):
    """Evolution of a linear network, against a rule on the same jobsets."""

    base: str  # a heuristic; candidates' costs are relative to its cost, averaged over loads
    tail: Weight  # weight of the relative 99th percentile and maximum of waits, so that starvation costs


AnyMachinesRecipe = PpoRecipe | A3cRecipe | DaggerRecipe
MachinesFinetune = Ppo | A3c | Dagger | MachinesEvolution


class MachinesAgent(Frozen):
    """A scheduler that is learned for many machines."""

    problem: Literal["machines"]
    scenario: str  # its scenario, for learning and scoring
    objective: Literal["slowdown", "bounded_slowdown", "completion_time"]  # of its training
    network: MachinesNetworkConfig  # its network
    pretrain: NoPretrain  # its start
    finetune: Annotated[MachinesFinetune, Field(discriminator="name")]  # its learning after that


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
    unit: Rate  # of time, in that of the log
    stall: Annotated[float, Field(ge=0)] = 0.0  # time without an arrival after which void is refused, see the scenario
    objective: str
    network: MachinesNetworkConfig
    play: Literal["greedy", "sampled"]
    weights: Weights | None = None  # None until they are stored


def _shares(mix: tuple[float, float]) -> tuple[float, float]:
    if sum(mix) > 1 + 1e-9:
        raise ValueError(f"expected packing + fairness at most 1, got {list(mix)}; shortness has the rest")
    return mix


class MachinesKnobs(Frozen):
    """Candidate settings of heuristics, from which validation jobsets select."""

    # Weights of packing and fairness in Tetris.
    mixes: Annotated[tuple[Annotated[tuple[Share, Share], AfterValidator(_shares)], ...], Field(min_length=1)]


class MachinesPlan(Frozen):
    """A policy that tries each job in the simulator before it starts one, scored on a scenario's test jobsets."""

    problem: Literal["machines"]  # the scenario's
    scenario: str  # of many machines
    base: str  # the policy to improve, which continues each trial: a heuristic, as tuned there, or an agent
    # Jobs that are tried: the base's own, and an agent's most probable or a rule's next ones.
    candidates: Annotated[int, Field(ge=2, le=1000)]
    futures: Annotated[int, Field(ge=1, le=10_000)]  # samples of past arrivals, the same for every candidate
    jobs: Positive  # arrivals in each future
    decisions: Annotated[int, Field(ge=1)]  # maximum simulated for one decision
    min_z: Annotated[float, Field(ge=0)]  # standard errors by which a candidate must be better than the base's own


def check_machines(params: "Params", where: str) -> None:
    """Check the agents of many machines; raise a UserError for the first row that contradicts another."""
    for name, agent in params.agents_with(MachinesAgent).items():
        check_algorithm(params, where, name, agent.finetune.name)
        recipe, part, place = params.machines_recipe(name), agent.finetune, f"{where}: agents.{name}"
        single = isinstance(part, Ppo) and part.episodes < 2
        if single and isinstance(recipe, PpoRecipe) and recipe.advantage == "leave_one_out":
            raise UserError(f"{place}.finetune.episodes: expected at least 2 for leave_one_out, got 1")
        if isinstance(part, MachinesEvolution):
            if agent.network.name != "linear":
                raise UserError(f"{place}.network.name: expected linear for evolution, got '{agent.network.name}'")
            if part.jobsets % len(part.loads):
                raise UserError(
                    f"{place}.finetune.jobsets: expected as many of each of {len(part.loads)} loads, got {part.jobsets}"
                )
        check_jobsets_drawn(params, where, name)
