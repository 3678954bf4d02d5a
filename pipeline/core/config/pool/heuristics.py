"""Tuning of the heuristics of a pooled cluster on validation jobsets."""

from typing import Annotated

from pydantic import Field, model_validator

from pipeline.core.config.records import Frozen, Share


class LinearRuleSearch(Frozen):
    """Search for the weights of the heuristic `linear`: the cross-entropy method."""

    population: Annotated[int, Field(ge=2, le=10_000)]  # candidates of a round
    rounds: Annotated[int, Field(gt=0, le=10_000)]  # of candidates
    elite: Annotated[int, Field(gt=0)]  # the best of a round, around which the next ones are drawn

    @model_validator(mode="after")
    def _some_are_best(self) -> "LinearRuleSearch":
        if self.elite > self.population:
            raise ValueError(f"expected elite at most population ({self.population}), got {self.elite}")
        return self


class PoolKnobs(Frozen):
    """Candidates of each tuned number."""

    linear: LinearRuleSearch | None = None  # None: its weights are not searched
    # Of alignment in `tetris`; the rest is 1 / duration.
    tetris_weights: Annotated[tuple[Share, ...], Field(min_length=1)]
    # Of the training jobs' durations: longer jobs may be held back in `hold`.
    hold_quantiles: Annotated[tuple[Share, ...], Field(min_length=1)]
    # Steps until which `hold_until` may hold long jobs back; none: not tuned.
    hold_until: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(exclude_if=lambda steps: not steps)] = ()
