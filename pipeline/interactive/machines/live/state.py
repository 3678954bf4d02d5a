"""The state of live machines as requests describe it, and decisions about it; both have a version."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline.core.config.records import Frozen, Name
from pipeline.interactive.live import states

MOST_MACHINES = 20_000
LATEST = 1e15  # in the cluster's time, either side of 0
Time = Annotated[float, Field(ge=-LATEST, le=LATEST)]
Length = Annotated[float, Field(ge=1e-9, le=LATEST)]
Units = Annotated[float, Field(ge=0, le=1e6)]
# A user may write any demand: a job that is too large for any machine counts as one that never runs.
Wanted = Annotated[float, Field(ge=0, le=1e12)]
MOST_WANTED = 10**15  # machines of a job
Has = Annotated[dict[Name, Units], states.at_most(states.MOST_RESOURCES, least=1)]


class LiveMachine(Frozen):
    """A machine; a drained one is described as held completely by a long job."""

    name: states.Text
    has: Has
    kind: Annotated[str, Field(max_length=200)] = ""


class WaitingJob(Frozen):
    """A job that waits."""

    id: states.Text
    arrived: Time
    duration: Length  # estimated run time
    demand: states.Amounts[Wanted]  # on each of its nodes
    nodes: Annotated[int, Field(ge=1, le=MOST_WANTED)] = 1
    kinds: Annotated[tuple[str, ...], states.at_most(63)] | None = None  # of machines; none: it runs on all


class RunningJob(Frozen):
    """A job that runs."""

    id: states.Text
    started: Time
    duration: Length
    demand: states.Amounts[Units]  # on each of its machines
    machines: Annotated[tuple[states.Text, ...], states.at_most(MOST_MACHINES, least=1)]


class MachinesState(Frozen):
    """The present state of a cluster."""

    version: Literal[1] = 1
    now: Time
    last_arrival: Time | None = None  # none: the latest of the waiting jobs
    machines: Annotated[tuple[LiveMachine, ...], states.at_most(MOST_MACHINES)] = ()  # none: the scenario's
    waiting: states.Waiting[WaitingJob]
    running: states.Running[RunningJob] = ()

    @model_validator(mode="after")
    def _consistent(self) -> "MachinesState":
        states.once("machine", (machine.name for machine in self.machines))
        states.consistent(self)
        for job in self.running:
            states.once(f"running job '{job.id}': machine", job.machines)
        states.in_the_past("running", self.running, "started", self.now)
        return self


class Start(Frozen):
    """A job to start now."""

    job: str
    machines: tuple[str, ...]


class Reserved(Frozen):
    """The job that must not be delayed, and when it fits by the estimates."""

    job: str
    at: float


class MachinesDecision(states.Decision):
    """The decision of a policy."""

    starts: tuple[Start, ...]  # one after another, as many as fit and the policy wants
    reserved: Reserved | None = None  # where the scenario's dispatch holds the others for one
