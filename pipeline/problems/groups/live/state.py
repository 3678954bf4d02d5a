"""The state of a cluster that groups share, as a service is asked about it, and what it answers.

Groups are called by their numbers, from 0 on, as in params.yaml; queues by their names.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline.config.records import Frozen, Name
from pipeline.live.states import MOST_RESOURCES, MOST_RUNNING, MOST_WAITING, at_most, in_the_past

LATEST = 1e12  # in the cluster's time, either side of 0
MOST_GROUPS, MOST_QUEUES, MOST_ARRIVED = 1000, 64, 20_000
Group = Annotated[int, Field(ge=0, lt=MOST_GROUPS)]
Time = Annotated[float, Field(ge=-LATEST, le=LATEST)]
Length = Annotated[float, Field(ge=1e-6, le=LATEST)]
Units = Annotated[int, Field(ge=0, le=10**6)]
Demand = Annotated[dict[Name, Units], at_most(MOST_RESOURCES)]
Number = Annotated[float, Field(ge=0, le=1e15)]
ByQueue = Annotated[dict[Name, Number], at_most(MOST_QUEUES)]


class GroupArrived(Frozen):
    """A job that arrived."""

    group: Group
    queue: Name
    duration: Length  # that it will run, as far as one is told
    demand: Demand


class GroupWaiting(GroupArrived):
    """A job that waits in a queue."""

    arrived: Time


class GroupRunning(Frozen):
    """A job that runs."""

    group: Group
    started: Time
    duration: Length
    demand: Demand


class GroupMemory(Frozen):
    """Of one group, what the answer before said and is to be handed back."""

    units: Demand
    order: Annotated[tuple[Name, ...], at_most(MOST_QUEUES)]
    recent_jobs: ByQueue  # that arrived in an interval, smoothed
    recent_work: ByQueue


class SharesState(Frozen):
    """A cluster as it is at the beginning of an interval."""

    version: Literal[1] = 1
    now: Time
    waiting: Annotated[tuple[GroupWaiting, ...], at_most(MOST_WAITING)]
    running: Annotated[tuple[GroupRunning, ...], at_most(MOST_RUNNING)] = ()
    arrived: Annotated[tuple[GroupArrived, ...], at_most(MOST_ARRIVED)] = ()  # since the answer before
    memory: Annotated[tuple[GroupMemory, ...], at_most(MOST_GROUPS)] = ()  # of it; none: equal shares so far

    @model_validator(mode="after")
    def _nothing_is_still_to_come(self) -> "SharesState":
        in_the_past("waiting", self.waiting, "arrived", self.now)
        in_the_past("running", self.running, "started", self.now)
        return self


class GroupShare(Frozen):
    """What one group is given until the service is asked again."""

    units: dict[str, int]
    order: tuple[str, ...]  # of its queues: the one served first at the head


class SharesDecision(Frozen):
    """What a controller wants."""

    shares: tuple[GroupShare, ...]  # group by group
    until: float  # when it wants to be asked again: an interval from now
    memory: tuple[GroupMemory, ...]  # to be handed back with the next state
