"""Networks of a pooled cluster."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.core.config.records import Frozen, Wide


class Mlp(Frozen):
    """DeepRM's network: one hidden layer over the image."""

    name: Literal["mlp"]
    hidden: Wide  # units of its hidden layer
    clock: bool  # does it see the time since the last arrival?


class Cnn(Frozen):
    """DeepRM2's network (Table 1)."""

    name: Literal["cnn"]
    channels: tuple[Wide, Wide]  # of its two convolutions
    hidden: Wide  # units of its last hidden layer
    clock: bool  # does it see the time since the last arrival?


class Scores(Frozen):
    """A sum of weighted features of jobs and the moment, for clusters and queues of any size; found by evolution."""

    name: Literal["scores"]
    hidden: Annotated[int, Field(ge=0, le=64)]  # tanh units that are added to the sum; 0: none


PoolNetworkConfig = Annotated[Mlp | Cnn | Scores, Field(discriminator="name")]
