"""The event-driven scheduling problem: machines, dispatch, and where its jobs come from."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from pipeline.config.problem import Counts
from pipeline.config.records import Frozen, Loads, Many, Name, Positive, PositiveShare, Rate, Share

TAKEN = ("load", "jobset", "job", "arrival", "duration", "seen", "nodes", "kinds")  # columns of job tables
Amount = Annotated[float, Field(ge=0, le=1e9)]
Choice = Annotated[tuple[Rate, ...], Field(min_length=1)]


def _no_column_of_jobs(resources: dict[str, float]) -> dict[str, float]:
    for name in resources:
        if name in TAKEN:
            raise ValueError(f"'{name}' is a column of job tables; give the resource another name")
    return resources


class Group(Frozen):
    """Some machines of one make."""

    count: Annotated[int, Field(gt=0, le=100_000)]
    kind: str = ""  # a GPU model, say; jobs may ask for some kinds only
    has: Annotated[dict[Name, Amount], Field(min_length=1), AfterValidator(_no_column_of_jobs)]  # units, to thousandths


class Tasks(Frozen):
    """Jobs drawn as real logs look: many short and a few very long ones, whole demands from a short list.

    Run times are log-normal, arrivals Poisson at the rate that makes the load.
    """

    name: Literal["tasks"]
    median: Rate  # run time, in time units
    spread: Annotated[float, Field(gt=0, le=5)]  # standard deviation of its logarithm
    longest: Rate  # run times are cut here
    demand: dict[Name, Choice]  # of each resource, all equally often
    jobs: Many  # of a jobset


class EventLog(Frozen):
    """A log, cut into windows of consecutive jobs; `loads` of the scenario compress or stretch its arrivals."""

    name: Literal["log"]
    format: Literal["swf", "openb", "alibaba2018", "alibaba2017", "cloudsimpy", "google2011"]
    path: str
    nodes: str | None = None  # the file of machines that some formats have
    longest_s: Rate | None = None  # run times are cut here, and counted
    first_s: Share | Rate = 0.0  # jobs that arrive before this are left out, and counted
    window: Many = 100
    train_share: PositiveShare = 0.6
    validation_share: PositiveShare = 0.15

    @model_validator(mode="after")
    def _leaves_a_test_period(self) -> "EventLog":
        if self.train_share + self.validation_share >= 1:
            raise ValueError("expected train_share + validation_share below 1, so that a test period is left")
        return self


class Sampled(Frozen):
    """Machines drawn from the log's own file of them."""

    sample: Positive
    seed: Annotated[int, Field(ge=0)] = 0


class EventScenario(Frozen):
    """One event-driven scheduling problem, and the loads it is met at."""

    dynamics: Literal["events"]
    machines: Annotated[tuple[Group, ...], Field(min_length=1)] | Sampled
    slots: Annotated[int, Field(gt=0, le=10_000)]
    dispatch: Literal["greedy", "blocking", "easy", "easy_within"]
    told: Literal["durations", "estimates"]  # what policies are told of a job's run time
    pause: Rate  # times the unit of time: what passes at most when void is chosen
    time_limit: Rate  # times the unit of time: an episode is cut here, and its unfinished jobs are counted
    workload: Annotated[Tasks | EventLog, Field(discriminator="name")]
    loads: Loads
    jobsets: Counts

    @model_validator(mode="after")
    def _machines_are_alike(self) -> "EventScenario":
        if isinstance(self.machines, Sampled):
            if isinstance(self.workload, Tasks):
                raise ValueError("machines.sample needs a log that has a file of machines (workload.nodes)")
            return self
        names = tuple(self.machines[0].has)
        for group in self.machines:
            if tuple(group.has) != names:
                raise ValueError(f"all machines need the same resources in one order: {names}, {tuple(group.has)}")
        if isinstance(self.workload, Tasks) and tuple(self.workload.demand) != names:
            raise ValueError(f"workload.demand needs the machines' resources {names}, has {tuple(self.workload.demand)}")
        return self
