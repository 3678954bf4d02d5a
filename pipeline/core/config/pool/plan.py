"""Look-ahead of a policy of a pooled cluster: its base, and the effort for one decision."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.core.config.records import Frozen, Many


class PoolPlan(Frozen):
    """A policy that tries each action in the simulator before it takes one, scored on a scenario's test jobsets."""

    problem: Literal["pool"]  # the scenario's
    scenario: str  # of a pooled cluster
    base: str  # the policy to improve, which also plays the futures: a heuristic, as tuned there, or an agent
    # Candidate actions: the base's own, and those that an agent prefers; of a rule, void and the first jobs.
    candidates: Annotated[int, Field(ge=2, le=1000)]
    futures: Annotated[int, Field(ge=1, le=10_000)]  # of each load, drawn beforehand and shared by all actions
    ahead: Many  # maximum steps of each future; 1000000 plays to the end where policies know when arrivals end
    left_job: Annotated[float, Field(ge=0)]  # cost of a job that still waits then, in mean costs of a step
    left_work: Annotated[float, Field(ge=0)]  # the same of a step of the whole cluster's work
    decisions: Annotated[int, Field(ge=1)]  # maximum simulated for one decision; of an agent, those that it makes
    min_z: Annotated[float, Field(ge=0)]  # standard errors by which an action must be better than the base's own
