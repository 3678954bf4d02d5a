"""Networks of a pooled cluster."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from pipeline.config.records import Frozen, Wide


def _whole_vectors(units: int) -> int:
    if units % 8:
        raise ValueError(f"expected a multiple of 8, got {units}")
    return units


class Mlp(Frozen):
    """DeepRM's network: one hidden layer over the image."""

    name: Literal["mlp"]
    hidden: Wide  # units of its hidden layer
    clock: bool  # is it told how long ago the last job arrived?


class Cnn(Frozen):
    """DeepRM2's network (Table 1)."""

    name: Literal["cnn"]
    channels: tuple[Wide, Wide]  # of its two convolutions
    hidden: Wide  # units of its last hidden layer
    clock: bool  # is it told how long ago the last job arrived?


class Sets(Frozen):
    """A network that scores every waiting job by shared weights, for clusters and queues of any size."""

    name: Literal["sets"]
    hidden: Annotated[int, Field(gt=0, le=512), AfterValidator(_whole_vectors)]  # units of its layers
    elapsed: bool  # is it told how long it has run? Short runs give away their end by that
    ending: bool = False  # is it told whether arrivals end, and when?


class Scores(Frozen):
    """A sum of weighted features of jobs and the moment, for clusters and queues of any size; found by evolution."""

    name: Literal["scores"]
    hidden: Annotated[int, Field(ge=0, le=64)]  # tanh units that are added to the sum; 0: none


PoolNetworkConfig = Annotated[Mlp | Cnn | Sets | Scores, Field(discriminator="name")]
