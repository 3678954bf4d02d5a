"""The state of a pooled cluster as requests describe it, and decisions about it; both have a version.

Time is in whole steps.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline.core.config.records import Frozen, Name, Units
from pipeline.interactive.live.states import (
    MOST_RESOURCES,
    MOST_RUNNING,
    MOST_WAITING,
    Decision,
    Text,
    at_most,
    in_the_past,
    last_in_the_past,
    once,
)

LATEST = 10**9  # steps, either side of 0
Step = Annotated[int, Field(ge=-LATEST, le=LATEST)]
Steps = Annotated[int, Field(ge=1, le=LATEST)]
Total = Annotated[int, Field(ge=0, le=10**15)]
Demand = Annotated[dict[Name, Annotated[int, Field(ge=0, le=10**9)]], at_most(MOST_RESOURCES)]


class PoolWaiting(Frozen):
    """A job that waits."""

    id: Text
    arrived: Step
    duration: Steps  # as requested
    demand: Demand


class PoolRunning(Frozen):
    """A job that runs or, where jobs are placed ahead, has a reserved start."""

    id: Text
    started: Step
    duration: Steps
    demand: Demand


class SoFar(Frozen):
    """Sums over all jobs that arrived since step 0."""

    jobs: Total
    duration: Total
    work: Annotated[dict[Name, Total], at_most(MOST_RESOURCES)]  # duration * demand


class PoolState(Frozen):
    """A cluster at present."""

    version: Literal[1] = 1
    now: Step
    last_arrival: Step | None = None  # none: that of the jobs that wait
    resources: Annotated[dict[Name, Units], at_most(MOST_RESOURCES, least=1)] | None = None  # none: the scenario's
    waiting: Annotated[tuple[PoolWaiting, ...], at_most(MOST_WAITING)]
    running: Annotated[tuple[PoolRunning, ...], at_most(MOST_RUNNING)] = ()
    arrivals_end: Step | None = None  # jobs arrive before this step, and policies know it; none: they do not end
    load: Annotated[float, Field(gt=0, le=10_000)] | None = None  # percent that arrives on average; none: not known
    so_far: SoFar | None = None  # required by planners, and by networks for queues of any length

    @model_validator(mode="after")
    def _consistent(self) -> "PoolState":
        once("job", [job.id for job in self.waiting] + [job.id for job in self.running])
        in_the_past("waiting", self.waiting, "arrived", self.now)
        last_in_the_past(self.last_arrival, self.now)
        last = max([job.arrived for job in self.waiting] + [self.last_arrival or -LATEST])
        if self.arrivals_end is not None and last >= self.arrivals_end:
            raise ValueError(f"arrivals_end is {self.arrivals_end}, but a job arrived at {last}")
        return self


class PoolStart(Frozen):
    """A job to start."""

    job: str
    at: int  # now, or a step to come where the scenario places jobs ahead


class PoolDecision(Decision):
    """Decision of a policy."""

    starts: tuple[PoolStart, ...]  # one after another
