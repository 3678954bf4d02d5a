"""Where the jobs of a scenario of many machines run."""

from typing import Annotated

from pydantic import Field, model_validator

from pipeline.config.records import Frozen, Name, Rate

Whole = Annotated[int, Field(ge=0)]


class MachinePark(Frozen):
    """The machines of a scenario and its unit of time: all that later stages need of a log."""

    resources: Annotated[tuple[Name, ...], Field(min_length=1)]
    capacity: Annotated[tuple[tuple[Whole, ...], ...], Field(min_length=1)]  # [K][R]  thousandths
    kind: tuple[Whole, ...]  # [K]  place in kind_names
    kind_names: Annotated[tuple[str, ...], Field(min_length=1)]
    unit: Rate  # of time, in that of the jobs

    @model_validator(mode="after")
    def _is_whole(self) -> "MachinePark":
        if len(self.kind) != len(self.capacity):
            raise ValueError(f"expected a kind for each of {len(self.capacity)} machines, got {len(self.kind)}")
        for k, row in enumerate(self.capacity):
            if len(row) != len(self.resources):
                raise ValueError(f"machine {k}: expected {len(self.resources)} amounts, got {len(row)}")
        if max(self.kind) >= len(self.kind_names):
            raise ValueError(f"expected kinds below {len(self.kind_names)}, got {max(self.kind)}")
        return self
