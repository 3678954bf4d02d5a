"""What a stored network of a controller says of itself."""

from typing import Literal

from pipeline.config.cards import FORMAT, Card, Weights
from pipeline.config.groups.learning import QNetworkConfig
from pipeline.config.records import Name, Positive, Rate

# Of the cluster that a controller was trained on, what it cannot do without.
MUST_MATCH = ("resources", "groups", "queues", "orders", "levels", "interval")


class GroupsCard(Card):
    """A controller's network."""

    format: Literal[2] = FORMAT
    problem: Literal["groups"]
    agent: Name
    scenario: Name
    resources: dict[Name, Positive]
    groups: Positive
    queues: tuple[Name, ...]
    orders: tuple[tuple[Name, ...], ...]
    levels: tuple[float, ...]
    interval: Rate
    objective: str
    against: str
    gamma: float
    network: QNetworkConfig
    weights: Weights | None = None  # known once they are stored
