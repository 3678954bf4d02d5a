"""Heuristics of many machines: what validation jobsets choose for them."""

from typing import Annotated

from pydantic import AfterValidator, Field

from pipeline.config.records import Frozen, Share


def _at_most_all(mix: tuple[float, float]) -> tuple[float, float]:
    if sum(mix) > 1 + 1e-9:
        raise ValueError(f"expected packing + fairness at most 1, got {list(mix)}; shortness has the rest")
    return mix


Mix = Annotated[tuple[Share, Share], AfterValidator(_at_most_all)]


class MachinesKnobs(Frozen):
    """Candidates among which validation jobsets choose."""

    mixes: Annotated[tuple[Mix, ...], Field(min_length=1)]  # packing and fairness of Tetris
