"""How agents of a pooled cluster learn: recipes, pre-training, fine-tuning; DeepRM3's short runs and stream windows."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline.config.cards import FORMAT, Card, Weights
from pipeline.config.learning import Budget, Evolution, NoPretrain, Start
from pipeline.config.pool.heuristics import LinearRuleSearch
from pipeline.config.pool.networks import PoolNetworkConfig
from pipeline.config.records import Frozen, Loads, Name, Positive, PositiveShare, Rate, Seed, Units, Weight

Slots = Annotated[int, Field(gt=0, le=1000)]


class ValueBaseline(Frozen):
    """A network that estimates returns, in place of a mean over episodes; it learns by Adam."""

    hidden: Positive  # units, as of `mlp`
    learning_rate: Rate  # of the optimizer
    steps: Positive  # of its optimizer for each of the policy's


class Recipe(Frozen):
    """How REINFORCE learns: everything but the budget."""

    algorithm: Literal["reinforce"]
    jobsets: Literal["fixed", "fresh"]  # the same training jobsets in every update, or new ones
    # What a return is compared with: other episodes at the same decision, at the same time, all others, or `value`.
    baseline: Literal["decision", "time", "leave_one_out", "value"]
    value: Annotated[ValueBaseline | None, Field(exclude_if=lambda row: row is None)] = None  # of that baseline
    masked: bool  # may only legal actions be drawn?
    play: Literal["greedy", "sampled"]  # once trained: the best action, or one by chance
    optimizer: Literal["rmsprop", "adam"]  # of the gradient
    learning_rate: Rate  # of the optimizer
    gamma: PositiveShare  # discount of what comes a step later
    entropy: Weight  # weight of the entropy, which keeps play varied
    annealed: Annotated[bool, Field(exclude_if=lambda so: not so)] = False  # does that weight fall to 0, as `falling`?
    # Weight of the divergence from the first policy, which keeps play near it. Of networks `sets` only, as `annealed`.
    near: Annotated[Weight, Field(exclude_if=lambda weight: not weight)] = 0.0
    normalise: bool  # are advantages divided by their standard deviation?
    # Are advantages shares of what their jobset costs, so that all loads count alike?
    loads_alike: Annotated[bool, Field(exclude_if=lambda alike: not alike)] = False
    clip: Rate | None  # norm of the gradient at most; null: not cut
    minibatches: Positive  # of an update
    falling: bool = False  # does the learning rate fall to 0, in a line, by the last update? Of networks `sets` only
    # What is played is the mean of the weights behind each update; this share of it is kept from one to the next.
    average: Annotated[float, Field(ge=0, lt=1, exclude_if=lambda share: not share)] = 0.0

    @model_validator(mode="after")
    def _a_value_is_learned_where_it_is_used(self) -> "Recipe":
        if (self.baseline == "value") != (self.value is not None):
            raise ValueError(f"value: expected with baseline value, and with no other; got baseline {self.baseline}")
        return self


class StreamWindows(Frozen):
    """Pieces of streams that do not end; state and return go beyond them."""

    loads: Loads  # percent
    slots: Annotated[tuple[Slots, ...], Field(min_length=1)]  # in turn
    windows: Positive  # of an update; in cloning: streams in all
    latest: Annotated[int, Field(ge=0, le=100_000)]  # step at which a window begins at the latest
    steps: Positive  # of a window
    beyond: Annotated[int, Field(ge=0, le=100_000)]  # steps behind it that count for its decisions
    # What is left behind these costs later, in steps of what a step costs on average; see `mixture`.
    left_job: Weight = 0.0  # a waiting job
    left_work: Weight = 0.0  # a step of the whole cluster's work
    left_by_load: tuple[Weight, ...] | None = None  # times this, in the order of `loads`
    examined: Annotated[int | None, Field(gt=0, le=1_000_000)] = None  # steps of validation streams; None: a window's

    @model_validator(mode="after")
    def _every_load_has_its_own(self) -> "StreamWindows":
        if self.left_by_load is not None and len(self.left_by_load) != len(self.loads):
            raise ValueError(
                f"left_by_load: expected {len(self.loads)} numbers, as `loads` has, got {len(self.left_by_load)}"
            )
        return self


class Clone(Start):
    """Behaviour cloning of a heuristic, until validation accuracy stops rising."""

    name: Literal["clone"]
    teacher: str  # a heuristic
    loads: Loads  # percent, of the scenario's
    jobsets: Positive  # training jobsets that the teacher plays, over all loads
    epochs: Positive  # at most
    patience: Positive  # epochs without a better validation accuracy
    batch: Positive  # decisions of a step of the optimizer
    learning_rate: Rate  # of the optimizer
    entropy: Weight  # weight of the entropy, which keeps play varied
    seed: Seed | None = None  # of the initial weights and of the order of samples; params.yaml's unless told

    @property
    def budget(self) -> int:
        """Updates at most: one an epoch."""
        return self.epochs


class Imitate(Start):
    """Cloning of the best heuristic of each jobset."""

    name: Literal["imitate"]
    teachers: Annotated[tuple[str, ...], Field(min_length=1)]  # heuristics; the best of them on each jobset is cloned
    linear: LinearRuleSearch | None = None  # of the weights of teacher `linear`, on what it teaches; null: as they are
    loads: Loads  # percent, of the scenario's
    jobsets: Positive  # short runs that are played by the teachers
    streams: StreamWindows | None  # pieces of streams that teachers play; null: none
    epochs: Positive  # at most
    patience: Positive  # epochs without a better validation accuracy
    batch: Positive  # decisions of a step of the optimizer
    learning_rate: Rate  # of the optimizer
    entropy: Weight  # weight of the entropy, which keeps play varied
    seed: Seed | None = None  # of the initial weights and of the order of samples; params.yaml's unless told

    @property
    def budget(self) -> int:
        """Updates at most: one an epoch."""
        return self.epochs

    @property
    def first(self) -> str:
        """What happens before the first update."""
        searched = "" if self.linear is None else ", and weights of linear are searched for"
        return f"its teachers play{searched}"


class Reinforce(Budget):
    """Policy gradient: how much of a recipe to run."""

    name: Literal["reinforce"]
    episodes: Annotated[int, Field(ge=2)]  # of each jobset


class ShortRunsAndStreams(Budget):
    """What networks of any size learn from, and how they play it by chance."""

    jobsets: Annotated[int, Field(ge=0, le=10_000)]  # short runs of an update, at `loads`; 0: streams only
    episodes: Annotated[int, Field(ge=2)]  # of each jobset, and of each window
    streams: StreamWindows | None  # null: short runs only
    # What the jobs of each fresh jobset and window ask for: one of these, all equally often. null: the scenario's.
    demands: Annotated[tuple[str, ...], Field(min_length=1)] | None = None


class Mixture(ShortRunsAndStreams):
    """Policy gradient on short runs and stream windows: how much of a recipe to run."""

    name: Literal["mixture"]


class StreamPieces(Frozen):
    """Streams that evolution plays: they begin empty, and go on until every measured job has started."""

    loads: Loads  # percent, that the cluster can sustain
    slots: Annotated[tuple[Slots, ...], Field(min_length=1)]  # in turn
    jobsets: Positive  # of each load, in an update
    steps: Positive  # in which jobs arrive; jobs that have not started then count as if they would
    measured: tuple[Annotated[int, Field(ge=0)], Positive]  # steps [first, after) whose arrivals are measured
    weight: Rate = 1.0  # of the streams of a load and a number of slots, beside 1 for the short runs of a load

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


PoolPretrain = NoPretrain | Clone | Imitate
PoolFinetune = Reinforce | Mixture | PoolEvolution


class PoolAgent(Frozen):
    """One scheduler that is learned for a pooled cluster."""

    problem: Literal["pool"]
    scenario: str  # the scenario that it learns on and is scored on
    objective: Literal["slowdown", "completion_time", "makespan", "utilisation"]  # what it is trained for
    network: PoolNetworkConfig  # its network
    pretrain: Annotated[PoolPretrain, Field(discriminator="name")]  # how it begins
    finetune: Annotated[PoolFinetune, Field(discriminator="name")]  # how it goes on learning


class Transfer(Frozen):
    """An agent that is scored on a scenario which it was not trained on."""

    agent: str  # whose network serves any size (`sets`)
    scenario: str  # that it was not trained on


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
