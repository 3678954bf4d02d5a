"""Networks of a pooled cluster, and how agents learn: recipes, pre-training, fine-tuning."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline.core.config.learning import FORMAT, Budget, Card, Evolution, NoPretrain, Weights
from pipeline.core.config.records import Frozen, Loads, Name, Positive, PositiveShare, Rate, Seed, Units, Weight, Wide

Slots = Annotated[int, Field(gt=0, le=1000)]


class Mlp(Frozen):
    """DeepRM's network: one hidden layer over the image."""

    name: Literal["mlp"]
    hidden: Wide  # units of its hidden layer
    clock: bool  # does it see the time since the last arrival?


class Cnn(Frozen):
    """DeepRM2's network (Table 1)."""

    name: Literal["cnn"]
    channels: tuple[Wide, Wide]  # of its two convolutions
    hidden: Wide  # units of its last hidden layer
    clock: bool  # does it see the time since the last arrival?


class Scores(Frozen):
    """A sum of weighted features of jobs and the moment, for clusters and queues of any size; found by evolution."""

    name: Literal["scores"]
    hidden: Annotated[int, Field(ge=0, le=64)]  # tanh units that are added to the sum; 0: none


PoolNetworkConfig = Annotated[Mlp | Cnn | Scores, Field(discriminator="name")]


class ValueBaseline(Frozen):
    """A network that estimates returns, in place of a mean over episodes; trained by Adam."""

    hidden: Positive  # units of its hidden layer
    learning_rate: Rate  # of the optimizer
    steps: Positive  # steps of its optimizer for each step of the policy's optimizer


class Recipe(Frozen):
    """How REINFORCE learns: everything but the budget."""

    algorithm: Literal["reinforce"]
    jobsets: Literal["fixed", "fresh"]  # the same training jobsets in every update, or new ones
    # Baseline of a return: other episodes at the same decision, all others at the same time, or `value`.
    baseline: Literal["decision", "leave_one_out", "value"]
    value: Annotated[ValueBaseline | None, Field(exclude_if=lambda row: row is None)] = None  # settings of `value`
    masked: bool  # are only legal actions drawn?
    play: Literal["greedy", "sampled"]  # once trained: the most probable action, or a sample
    optimizer: Literal["rmsprop", "adam"]  # of the gradient
    learning_rate: Rate  # of the optimizer
    gamma: PositiveShare  # discount per step
    entropy: Weight  # weight of the entropy, which keeps play varied
    normalise: bool  # are advantages divided by their standard deviation?
    # Are advantages divided by the cost of their jobset, so that all loads count equally?
    equal_loads: Annotated[bool, Field(exclude_if=lambda equal: not equal)] = False
    clip: Rate | None  # maximum norm of the gradient; null: unlimited
    minibatches: Positive  # of an update
    # The mean of the weights after each update is played; this share of it is kept from one to the next.
    average: Annotated[float, Field(ge=0, lt=1, exclude_if=lambda share: not share)] = 0.0

    @model_validator(mode="after")
    def _a_value_is_learned_where_it_is_used(self) -> "Recipe":
        if (self.baseline == "value") != (self.value is not None):
            raise ValueError(f"value: expected with baseline value, and with no other; got baseline {self.baseline}")
        return self


class Clone(Frozen):
    """Behaviour cloning of a heuristic, until validation accuracy stops rising."""

    name: Literal["clone"]
    teacher: str  # a heuristic
    loads: Loads  # percent, of the scenario's
    jobsets: Positive  # training jobsets that the teacher plays, over all loads
    epochs: Positive  # at most
    patience: Positive  # epochs without a better validation accuracy
    batch: Positive  # decisions in an optimizer step
    learning_rate: Rate  # of the optimizer
    entropy: Weight  # weight of the entropy, which keeps play varied
    seed: Seed | None = None  # of the initial weights and of the order of samples; default: params.yaml's

    @property
    def budget(self) -> int:
        """Maximum number of updates: one per epoch."""
        return self.epochs


class Reinforce(Budget):
    """Policy gradient: how much of a recipe to run."""

    name: Literal["reinforce"]
    episodes: Annotated[int, Field(ge=2)]  # of each jobset


class StreamPieces(Frozen):
    """Streams that evolution plays: they begin empty and last until every measured job has started."""

    loads: Loads  # percent; loads that the cluster can sustain
    slots: Annotated[tuple[Slots, ...], Field(min_length=1)]  # in turn
    jobsets: Positive  # of each load, in an update
    steps: Positive  # in which jobs arrive; jobs not started by then count as if they started at the end
    measured: tuple[Annotated[int, Field(ge=0)], Positive]  # steps [first, after) whose arrivals are measured
    weight: Rate = 1.0  # of the streams of one load and number of slots; the short runs of a load weigh 1

    @model_validator(mode="after")
    def _measured_steps_are_there(self) -> "StreamPieces":
        first, after = self.measured
        if not first < after < self.steps:
            raise ValueError(f"measured: expected [first, after) before step {self.steps}, got [{first}, {after}]")
        return self


class PoolEvolution(Evolution):
    """An evolution strategy on networks of scores; `jobsets` are short runs of each load."""

    demands: Annotated[tuple[str, ...], Field(min_length=1)] | None = None  # all equally often; null: the scenario's
    streams: StreamPieces | None = None  # null: short runs only


PoolPretrain = NoPretrain | Clone
PoolFinetune = Reinforce | PoolEvolution


class PoolAgent(Frozen):
    """One scheduler that is learned for a pooled cluster."""

    problem: Literal["pool"]
    scenario: str  # the scenario that it learns on and is scored on
    objective: Literal["slowdown", "completion_time", "makespan", "utilisation"]  # what it is trained for
    network: PoolNetworkConfig  # its network
    pretrain: Annotated[PoolPretrain, Field(discriminator="name")]  # how it begins
    finetune: Annotated[PoolFinetune, Field(discriminator="name")]  # how it continues


class Transfer(Frozen):
    """An agent that is scored on a scenario which it was not trained on."""

    agent: str  # an agent whose network serves any size (`scores`)
    scenario: str  # one that the agent was not trained on


class PoolCard(Card):
    """A network of a pooled cluster."""

    format: Literal[2] = FORMAT
    agent: Name
    scenario: Name
    resources: dict[Name, Units]
    horizon: Positive
    slots: Positive
    backlog: Annotated[int, Field(ge=0)]
    place_ahead: bool
    stall: Annotated[int | None, Field(ge=0, exclude_if=lambda value: value is None)] = None  # see the scenario
    objective: str
    network: PoolNetworkConfig
    masked: bool
    play: Literal["greedy", "sampled"]
    weights: Weights | None = None  # known once they are stored
