"""How good weights of the heuristic `linear` are searched for."""

from typing import Annotated

from pydantic import Field, model_validator

from pipeline.config.records import Frozen


class LinearRuleSearch(Frozen):
    """How many weights of the heuristic `linear` are tried: the cross-entropy method."""

    population: Annotated[int, Field(ge=2, le=10_000)]  # candidates of a round
    rounds: Annotated[int, Field(gt=0, le=10_000)]
    elite: Annotated[int, Field(gt=0)]  # the best of a round; the next ones are drawn around these

    @model_validator(mode="after")
    def _some_are_best(self) -> "LinearRuleSearch":
        if self.elite > self.population:
            raise ValueError(f"expected elite at most population ({self.population}), got {self.elite}")
        return self
