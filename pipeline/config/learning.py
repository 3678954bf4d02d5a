"""How schedulers learn and are judged: networks, recipes, agents, heuristics' knobs, the bootstrap."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from pipeline.config.acting import (
    A3c,
    A3cRecipe,
    Cem,
    CemRecipe,
    Dagger,
    DaggerRecipe,
    DeepSets,
    Linear,
    Ppo,
    PpoRecipe,
    Vector,
)
from pipeline.config.families import LinearRuleSearch
from pipeline.config.groups import Dqn, DqnRecipe, GroupQ, Replay
from pipeline.config.mixture import Imitate, Mixture, Sets
from pipeline.config.records import Frozen, Loads, Positive, PositiveShare, Rate, Seed, Share

Wide = Annotated[int, Field(gt=0, le=10_000)]  # of a network's layer


def _at_most_all(mix: tuple[float, float]) -> tuple[float, float]:
    if sum(mix) > 1 + 1e-9:
        raise ValueError(f"expected packing + fairness at most 1, got {list(mix)}; shortness has the rest")
    return mix


Mix = Annotated[tuple[Share, Share], AfterValidator(_at_most_all)]


class HeuristicKnobs(Frozen):
    """Candidates among which validation jobsets choose."""

    tetris_weights: Annotated[tuple[Share, ...], Field(min_length=1)]
    hold_quantiles: Annotated[tuple[Share, ...], Field(min_length=1)]
    mixes: Annotated[tuple[Mix, ...], Field(min_length=1)]  # packing and fairness of Tetris on many machines
    linear: LinearRuleSearch | None = None  # None: its weights are not searched


class Evaluation(Frozen):
    """The paired bootstrap of the comparison."""

    resamples: Annotated[int, Field(ge=100, le=1_000_000)]
    confidence: Annotated[float, Field(gt=0.5, lt=1)]


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
    entropy: Annotated[float, Field(ge=0)]
    normalise: bool
    clip: Rate | None
    minibatches: Positive
    falling: bool = False  # does the learning rate fall to 0, in a line, by the last update? Of `mixture` only


class Mlp(Frozen):
    """DeepRM's network: one hidden layer over the image."""

    name: Literal["mlp"]
    hidden: Wide
    clock: bool


class Cnn(Frozen):
    """DeepRM2's network (Table 1)."""

    name: Literal["cnn"]
    channels: tuple[Wide, Wide]
    hidden: Wide
    clock: bool


NetworkConfig = Annotated[Mlp | Cnn | Sets | Vector | DeepSets | Linear | GroupQ, Field(discriminator="name")]


class NoPretrain(Frozen):
    """Start from the seeded initial weights."""

    name: Literal["none"]
    seed: Seed | None = None  # of the initial weights; params.yaml's unless told

    @property
    def budget(self) -> int:
        """Updates at most."""
        return 1

    @property
    def first(self) -> str:
        """What happens before the first update."""
        return ""


class Clone(Frozen):
    """Behaviour cloning of a heuristic, until validation accuracy stops rising."""

    name: Literal["clone"]
    teacher: str
    loads: Loads
    jobsets: Positive
    epochs: Positive
    patience: Positive
    batch: Positive
    learning_rate: Rate
    entropy: Annotated[float, Field(ge=0)]
    seed: Seed | None = None  # of the initial weights and of the order of samples; params.yaml's unless told

    @property
    def budget(self) -> int:
        """Updates at most: one an epoch."""
        return self.epochs

    @property
    def first(self) -> str:
        """What happens before the first update."""
        return ""


class Reinforce(Frozen):
    """Policy gradient: how much of a recipe to run."""

    name: Literal["reinforce"]
    recipe: str
    loads: Loads
    updates: Positive
    jobsets: Positive
    episodes: Annotated[int, Field(ge=2)]
    validate_every: Positive
    seed: Seed | None = None  # of what is drawn while playing; params.yaml's unless told. Jobsets do not depend on it

    @property
    def budget(self) -> int:
        """Updates."""
        return self.updates


PretrainConfig = Annotated[NoPretrain | Clone | Imitate | Replay, Field(discriminator="name")]
FinetuneConfig = Annotated[Reinforce | Mixture | Ppo | A3c | Dagger | Cem | Dqn, Field(discriminator="name")]
MachinesRecipe = PpoRecipe | A3cRecipe | DaggerRecipe | CemRecipe
AnyRecipe = Annotated[
    Recipe | PpoRecipe | A3cRecipe | DaggerRecipe | CemRecipe | DqnRecipe, Field(discriminator="algorithm")
]


class Agent(Frozen):
    """One learned scheduler."""

    scenario: str
    objective: Literal["slowdown", "bounded_slowdown", "completion_time", "makespan", "utilisation", "delay"]
    network: NetworkConfig
    pretrain: PretrainConfig
    finetune: FinetuneConfig
