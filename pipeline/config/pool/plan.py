"""Look-ahead of a policy of a pooled cluster: its base, and the effort for one decision."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.config.records import Frozen, Many


class PoolPlan(Frozen):
    """A policy that tries each action in the simulator before it takes one, scored on a scenario's test jobsets."""

    problem: Literal["pool"]  # the scenario's
    scenario: str  # of a pooled cluster
    base: str  # what is improved, and plays on from what is tried: a heuristic, as tuned there, or an agent
    # Actions that are tried: the base's own, and those that an agent likes best; of a rule void and the first jobs.
    candidates: Annotated[int, Field(ge=2, le=1000)]
    futures: Annotated[int, Field(ge=1, le=10_000)]  # of each load, drawn beforehand; as many are met by every action
    ahead: Many  # steps that each is played at most; where policies know when arrivals end, 1000000 is to its end
    left_job: Annotated[float, Field(ge=0)]  # what is left then costs, in steps of what a step costs: a waiting job
    left_work: Annotated[float, Field(ge=0)]  # and a step of the whole cluster's work
    decisions: Annotated[int, Field(ge=1)]  # simulated for one decision, at most; of an agent, those it is asked for
    min_z: Annotated[float, Field(ge=0)]  # standard errors by which an action must be better than the base's own
