"""What a stored network of many machines says of itself."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.config.cards import FORMAT, Card, Weights
from pipeline.config.machines.learning import MachinesNetworkConfig
from pipeline.config.records import Name, Positive, Rate


class MachinesCard(Card):
    """A network of many machines."""

    format: Literal[2] = FORMAT
    problem: Literal["machines"]
    agent: Name
    scenario: Name
    resources: tuple[Name, ...]
    machines: Positive
    slots: Positive
    dispatch: str
    unit: Rate  # of time, in the log's
    stall: Annotated[float, Field(ge=0)] = 0.0  # time without an arrival after which void is refused, see the scenario
    objective: str
    network: MachinesNetworkConfig
    play: Literal["greedy", "sampled"]
    weights: Weights | None = None  # known once they are stored
