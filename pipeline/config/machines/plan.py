"""How a policy of many machines looks ahead: what is improved, and how much is tried for one decision."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.config.records import Frozen, Positive


class MachinesPlan(Frozen):
    """A policy that tries each job in the simulator before it starts one, scored on a scenario's test jobsets."""

    problem: Literal["machines"]  # the scenario's
    scenario: str  # of many machines
    base: str  # what is improved, and plays on from what is tried: a heuristic, as tuned there, or an agent
    # Jobs that are tried: the base's own, and those that an agent likes best; of a rule its next ones.
    candidates: Annotated[int, Field(ge=2, le=1000)]
    futures: Annotated[int, Field(ge=1, le=10_000)]  # jobs of the past, as they came; every candidate meets the same
    jobs: Positive  # that come in each future
    decisions: Annotated[int, Field(ge=1)]  # simulated for one decision, at most
    min_z: Annotated[float, Field(ge=0)]  # standard errors by which a candidate must be better than the base's own
