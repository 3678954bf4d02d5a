"""How agents of a pooled cluster learn: recipes, pre-training, fine-tuning; DeepRM3's short runs and stream windows."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline.config.learning import Budget, NoPretrain, Start
from pipeline.config.pool.heuristics import LinearRuleSearch
from pipeline.config.pool.networks import PoolNetworkConfig
from pipeline.config.records import Frozen, Loads, Positive, PositiveShare, Rate, Seed, Weight

Slots = Annotated[int, Field(gt=0, le=1000)]


class Recipe(Frozen):
    """How REINFORCE learns: everything but the budget."""

    algorithm: Literal["reinforce"]
    jobsets: Literal["fixed", "fresh"]
    baseline: Literal["decision", "time", "leave_one_out"]
    masked: bool
    play: Literal["greedy", "sampled"]
    optimizer: Literal["rmsprop", "adam"]
    learning_rate: Rate
    gamma: PositiveShare
    entropy: Weight
    normalise: bool
    # Are advantages shares of what their jobset costs, so that all loads count alike?
    loads_alike: Annotated[bool, Field(exclude_if=lambda alike: not alike)] = False
    clip: Rate | None
    minibatches: Positive
    falling: bool = False  # does the learning rate fall to 0, in a line, by the last update? Of `mixture` only


class StreamWindows(Frozen):
    """Pieces of streams that do not end; state and return go beyond them."""

    loads: Loads
    slots: Annotated[tuple[Slots, ...], Field(min_length=1)]  # in turn
    windows: Positive  # of an update; in cloning: streams in all
    latest: Annotated[int, Field(ge=0, le=100_000)]  # step at which a window begins at the latest
    steps: Positive  # of a window
    beyond: Annotated[int, Field(ge=0, le=100_000)]  # steps behind it that count for its decisions
    # What is left behind these costs later, in steps of what a step costs on average; see `stream_windows`.
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
    teacher: str
    loads: Loads
    jobsets: Positive
    epochs: Positive
    patience: Positive
    batch: Positive
    learning_rate: Rate
    entropy: Weight
    seed: Seed | None = None  # of the initial weights and of the order of samples; params.yaml's unless told

    @property
    def budget(self) -> int:
        """Updates at most: one an epoch."""
        return self.epochs


class Imitate(Start):
    """Cloning of the best heuristic of each jobset."""

    name: Literal["imitate"]
    teachers: Annotated[tuple[str, ...], Field(min_length=1)]
    linear: LinearRuleSearch | None = None  # of the weights of teacher `linear`, on what it teaches; null: as they are
    loads: Loads
    jobsets: Positive  # short runs that are played by the teachers
    streams: StreamWindows | None
    epochs: Positive
    patience: Positive
    batch: Positive
    learning_rate: Rate
    entropy: Weight
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


class Mixture(Budget):
    """Policy gradient on short runs and stream windows: how much of a recipe to run."""

    name: Literal["mixture"]
    jobsets: Annotated[int, Field(ge=0, le=10_000)]  # short runs of an update, at `loads`; 0: streams only
    episodes: Annotated[int, Field(ge=2)]  # of each jobset, and of each window
    streams: StreamWindows | None  # null: short runs only
    # What the jobs of each fresh jobset and window ask for: one of these, all equally often. null: the scenario's.
    demands: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    ageing: Weight = 0.0  # of a job's score once trained, per log(1 + waited / duration)


PoolPretrain = NoPretrain | Clone | Imitate
PoolFinetune = Reinforce | Mixture


class PoolAgent(Frozen):
    """One scheduler that is learned for a pooled cluster."""

    problem: Literal["pool"]
    scenario: str
    objective: Literal["slowdown", "completion_time", "makespan", "utilisation"]
    network: PoolNetworkConfig
    pretrain: Annotated[PoolPretrain, Field(discriminator="name")]
    finetune: Annotated[PoolFinetune, Field(discriminator="name")]


class Transfer(Frozen):
    """An agent that is scored on a scenario which it was not trained on."""

    agent: str
    scenario: str
