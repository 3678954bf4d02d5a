"""The state of a pooled cluster as requests describe it, and decisions about it; both have a version.

Time is in whole steps.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline.core.config.records import Frozen, Name, Units
from pipeline.interactive.live import states

LATEST = 10**9  # steps, either side of 0
Step = Annotated[int, Field(ge=-LATEST, le=LATEST)]
Steps = Annotated[int, Field(ge=1, le=LATEST)]
Total = Annotated[int, Field(ge=0, le=10**15)]
Demand = states.Amounts[Annotated[int, Field(ge=0, le=10**9)]]
Has = Annotated[dict[Name, Units], states.at_most(states.MOST_RESOURCES, least=1)]


class PoolWaiting(Frozen):
    """A job that waits."""

    id: states.Text
    arrived: Step
    duration: Steps  # as requested
    demand: Demand


class PoolRunning(Frozen):
    """A job that runs or, where jobs are placed ahead, has a reserved start."""

    id: states.Text
    started: Step
    duration: Steps
    demand: Demand


class SoFar(Frozen):
    """Sums over all jobs that arrived since step 0."""

    jobs: Total
    duration: Total
    work: states.Amounts[Total]  # duration * demand


class PoolState(Frozen):
    """A cluster at present."""

    version: Literal[1] = 1
    now: Step
    last_arrival: Step | None = None  # none: that of the jobs that wait
    resources: Has | None = None  # none: the scenario's
    waiting: states.Waiting[PoolWaiting]
    running: states.Running[PoolRunning] = ()
    arrivals_end: Step | None = None  # jobs arrive before this step, and policies know it; none: they do not end
    load: Annotated[float, Field(gt=0, le=10_000)] | None = None  # percent that arrives on average; none: not known
    so_far: SoFar | None = None  # required by planners, and by networks for queues of any length

    @model_validator(mode="after")
    def _consistent(self) -> "PoolState":
        states.consistent(self)
        last = max([job.arrived for job in self.waiting] + [self.last_arrival or -LATEST])
        if self.arrivals_end is not None and last >= self.arrivals_end:
            raise ValueError(f"arrivals_end is {self.arrivals_end}, but a job arrived at {last}")
        return self


class PoolStart(Frozen):
    """A job to start."""

    job: str
    at: int  # now, or a step to come where the scenario places jobs ahead


class PoolDecision(states.Decision):
    """Decision of a policy."""

    starts: tuple[PoolStart, ...]  # one after another
