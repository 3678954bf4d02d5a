"""Budgets of training, and evolution strategies, for every problem."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.core.config.records import Frozen, Loads, Positive, Rate, Seed, Share


class NoPretrain(Frozen):
    """Start from the seeded initial weights."""

    name: Literal["none"]
    seed: Seed | None = None  # of the initial weights; default: that of params.yaml

    @property
    def budget(self) -> int:
        """Most updates."""
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
        """Updates."""
        return self.updates


class EvolutionRecipe(Frozen):
    """An evolution strategy on weights: CMA-ES (Hansen and Ostermeier 2001)."""

    algorithm: Literal["evolution"]
    play: Literal["greedy"] = "greedy"  # after training, as during it
    population: Annotated[int, Field(ge=4, le=10_000)]  # candidates of a generation
    spread: Rate  # standard deviation of the first candidates' weights
    averaged: Share = 0.0  # of the generations, the last ones: the result is the mean of their centres

    @property
    def masked(self) -> bool:
        """Only legal actions are chosen."""
        return True


class Evolution(Budget):
    """An evolution strategy; an update is one generation, and all its candidates play the same fresh jobsets."""

    name: Literal["evolution"]
