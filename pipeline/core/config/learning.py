"""Configuration of learning for all problems: budgets, evolution strategies, cards of networks, checks of agents."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import Field

from pipeline.core.config.records import Frozen, Loads, Positive, Rate, Seed, Share
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.core.config.params import Params

POOL = "pool"  # the problem of cards that name none
FORMAT: Literal[2] = 2  # of the card


class NoPretrain(Frozen):
    """Start from the seeded initial weights."""

    name: Literal["none"]
    seed: Seed | None = None  # of the initial weights; default: that of params.yaml

    @property
    def budget(self) -> int:
        """Maximum number of updates."""
        return 1


class Budget(Frozen):
    """Amount of training by a recipe."""

    recipe: str  # a name of `recipes`
    loads: Loads  # percent, of the scenario's
    updates: Positive  # how many
    jobsets: Positive  # of each update
    validate_every: Positive  # updates; the best weights on validation jobsets are kept
    seed: Seed | None = None  # of draws while playing; default: that of params.yaml. Jobsets do not depend on it

    @property
    def budget(self) -> int:
        """Number of updates."""
        return self.updates


class EvolutionRecipe(Frozen):
    """An evolution strategy on weights: CMA-ES (Hansen and Ostermeier 2001)."""

    algorithm: Literal["evolution"]
    play: Literal["greedy"] = "greedy"  # after training, as during it
    population: Annotated[int, Field(ge=4, le=10_000)]  # candidates of a generation
    spread: Rate  # standard deviation of the first candidates' weights
    averaged: Share = 0.0  # share of the generations, the last ones: the result is the mean of their centres

    @property
    def masked(self) -> bool:
        """Only legal actions are chosen."""
        return True


class Evolution(Budget):
    """An evolution strategy; an update is one generation, and all its candidates play the same fresh jobsets."""

    name: Literal["evolution"]


class Tensor(Frozen):
    """One tensor of the weights."""

    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        """Return shape and type, such as 20 x 11 float32."""
        return f"{' x '.join(str(size) for size in self.shape) or 'one'} {self.dtype}"


class Weights(Frozen):
    """Content of the weights file."""

    sha256: str
    tensors: dict[str, Tensor]
    packages: dict[str, str]  # that made it, with their versions; not checked


class Card(Frozen):
    """All that is needed to rebuild a stored network, and the problem that it was trained on."""

    if TYPE_CHECKING:  # the order of fields differs by problem
        agent: str
        scenario: str
        objective: str
        weights: Weights | None

    @classmethod
    def word(cls) -> str:
        """Return the name of the problem in params.yaml."""
        named = cls.model_fields.get("problem")
        return POOL if named is None else str(get_args(named.annotation)[0])


def described(weights: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return shapes and types of arrays, in the order of their names."""
    return {name: Tensor(shape=value.shape, dtype=str(value.dtype)) for name, value in sorted(weights.items())}


def difference(expected: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> str:
    """Return the first difference, as text; "" if there is none.

    >>> difference({"bias": Tensor(shape=(3,), dtype="float32")}, {"bias": Tensor(shape=(2, 3), dtype="float32")})
    'tensor bias: expected 3 float32, found 2 x 3 float32'
    """
    for name in [*expected, *found]:
        wanted, got = expected.get(name), found.get(name)
        if wanted != got:
            return f"tensor {name}: expected {wanted or 'none'}, found {got or 'none'}"
    return ""


def check_algorithm(params: "Params", where: str, name: str, algorithm: str) -> None:
    """Refuse an agent whose recipe is of another algorithm."""
    chosen = params.agents[name].finetune.recipe
    found = params.recipes[chosen].algorithm
    if found != algorithm:
        raise UserError(f"{where}: agents.{name}.finetune.recipe: '{chosen}' is one of {found}, not of {algorithm}")


def check_jobsets_drawn(params: "Params", where: str, name: str, only_generated: bool = False) -> None:
    """Refuse an agent that trains on loads or jobsets which `generate` does not draw.

    With `only_generated`, fine-tuning, like pretraining, uses only generated jobsets.
    """
    agent = params.agents[name]
    scenario = params.scenarios[agent.scenario]
    for part, chosen in (("pretrain", agent.pretrain), ("finetune", agent.finetune)):
        if isinstance(chosen, NoPretrain):
            continue
        place = f"{where}: agents.{name}.{part}"
        for load in chosen.loads:
            if load not in scenario.loads:
                raise UserError(f"{place}.loads: {load} is not a load of scenario '{agent.scenario}'")
        each = -(-chosen.jobsets // len(chosen.loads))
        if (part == "pretrain" or only_generated) and each > scenario.jobsets.train:
            raise UserError(
                f"{place}.jobsets: {chosen.jobsets} need {each} training jobsets of each load; scenario "
                f"'{agent.scenario}' has {scenario.jobsets.train}"
            )
