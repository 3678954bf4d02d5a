"""What a stored network of a pooled cluster says of itself."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.config.cards import FORMAT, Card, Weights
from pipeline.config.pool.learning import HoldsFrom
from pipeline.config.pool.networks import PoolNetworkConfig
from pipeline.config.records import Name, Positive, Units


def _nothing(value: float) -> bool:
    return value == 0


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
    ageing: Annotated[float, Field(ge=0, exclude_if=_nothing)] = 0.0  # of `sets`
    holds_from: Annotated[HoldsFrom | None, Field(exclude_if=lambda rule: rule is None)] = None  # see the agent's row
    weights: Weights | None = None  # known once they are stored
