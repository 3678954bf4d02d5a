"""User groups that share a cluster: its units, the groups' queues, what a controller may set, where jobs come from."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from pipeline.core.config.records import Counts, Frozen, Loads, Many, Name, Periods, Rate, Share, none_of

JOB_COLUMNS = ("load", "jobset", "job", "arrival", "duration", "estimate", "group", "queue")
SharedUnits = Annotated[int, Field(gt=0, le=1_000_000)]
Amounts = Annotated[tuple[SharedUnits, ...], Field(min_length=1)]


def _rising_from_zero(levels: tuple[float, ...]) -> tuple[float, ...]:
    if levels[0] != 0 or any(low >= high for low, high in pairwise(levels)):
        raise ValueError(f"expected 0 and then rising numbers, got {list(levels)}")
    return levels


Levels = Annotated[
    tuple[Annotated[float, Field(ge=0, le=1000)], ...], Field(min_length=2), AfterValidator(_rising_from_zero)
]


class Sinusoidal(Frozen):
    """Jobs of groups whose loads rise and fall out of phase: while one group has its rush, another one's is over.

    Group g of G has, at time t, 1 + amplitude * sin(2 pi (t / (period * interval) + g / G)) times its mean rate of
    arrivals, and an equal part of the load. Run times are log-normal about their queue's median. Each demand is one of
    a few amounts, all equally likely.
    """

    name: Literal["sinusoidal"]
    intervals: Many  # number of intervals in which jobs arrive
    period: Rate  # of the sine, in intervals
    amplitude: Share  # how far a group's rate of arrivals moves from its mean
    run: dict[Name, Rate]  # median run time of each queue's jobs
    spread: Annotated[float, Field(gt=0, le=5)]  # standard deviation of the logarithm of run times
    demand: dict[Name, Amounts]  # possible amounts of each resource
    mixes: Annotated[tuple[dict[Name, Share], ...], Field(min_length=1)]  # queues' shares of the jobs, by group in turn


class GroupsLog(Periods):
    """A log with users assigned to groups, cut into windows of time; `loads` compress or stretch arrivals.

    Users are assigned by their work in the training period: the heaviest first, each into the group that has the
    least so far. A user without jobs there goes to group `user modulo groups`. A job's queue is that of the first
    bound that its known run time does not exceed; the last queue has the rest.
    """

    name: Literal["log"]
    format: str  # a format of docs/logs.md
    path: str  # from the repository's root, or absolute
    first_s: Annotated[float, Field(ge=0)] = 0.0  # by the log's clock; jobs before it are left out, and counted
    longest_s: Rate | None = None  # run times are cut here, and counted
    bounds: Annotated[tuple[Rate, ...], Field(min_length=1)]  # of known run times, in seconds; one fewer than queues
    window: Many  # intervals of a jobset


class GroupsScenario(Frozen):
    """One cluster that user groups share, and its loads."""

    problem: Literal["groups"]
    # Units of each resource.
    resources: Annotated[dict[Name, SharedUnits], Field(min_length=1), AfterValidator(none_of(JOB_COLUMNS))]
    groups: Annotated[int, Field(gt=1, le=1000)]  # how many
    queues: Annotated[tuple[Name, ...], Field(min_length=2, max_length=4)]  # of every group, shortest jobs first
    orders: Annotated[tuple[tuple[Name, ...], ...], Field(min_length=1)]  # orders of the queues, the first served first
    levels: Levels  # possible shares of a group, in multiples of capacity / groups
    interval: Rate  # of the controller, in the jobs' unit of time
    borrowing: bool  # may jobs use what other groups leave idle?
    policies_know: Literal["durations", "estimates", "predictions"]  # the run times that the controller knows
    time_limit: Rate  # an episode is cut here, and its unfinished jobs are counted
    workload: Annotated[Sinusoidal | GroupsLog, Field(discriminator="name")]  # where its jobs come from
    loads: Loads  # percent of the cluster
    jobsets: Counts  # how many of each load

    @model_validator(mode="after")
    def _orders_have_every_queue(self) -> "GroupsScenario":
        if len(set(self.queues)) != len(self.queues):
            raise ValueError(f"queues: expected distinct names, got {list(self.queues)}")
        for order in self.orders:
            if sorted(order) != sorted(self.queues):
                raise ValueError(f"orders: expected each of the queues {list(self.queues)} once, got {list(order)}")
        if len(set(self.orders)) != len(self.orders):
            raise ValueError("orders: expected distinct orders")
        return self

    @model_validator(mode="after")
    def _units_for_every_group(self) -> "GroupsScenario":
        for name, units in self.resources.items():
            if units < self.groups:
                raise ValueError(f"resources.{name}: expected at least a unit for each of {self.groups} groups")
        return self

    @model_validator(mode="after")
    def _jobs_are_of_the_queues(self) -> "GroupsScenario":
        work = self.workload
        if isinstance(work, GroupsLog):
            if len(work.bounds) != len(self.queues) - 1:
                raise ValueError(f"workload.bounds: expected {len(self.queues) - 1} for {len(self.queues)} queues")
            if any(low >= high for low, high in pairwise(work.bounds)):
                raise ValueError(f"workload.bounds: expected rising times, got {list(work.bounds)}")
            return self
        if self.policies_know != "durations":
            raise ValueError(f"policies_know: only a log has {self.policies_know}; expected durations")
        _same("workload.run", work.run, self.queues)
        _same("workload.demand", work.demand, self.resources)
        for mix in work.mixes:
            _same("workload.mixes", mix, self.queues)
            if abs(sum(mix.values()) - 1) > 1e-9:
                raise ValueError(f"workload.mixes: expected shares that sum to 1, got {dict(mix)}")
        for name, amounts in work.demand.items():
            if max(amounts) > self.resources[name]:
                raise ValueError(f"workload.demand.{name}: the cluster has {self.resources[name]}, got {max(amounts)}")
        return self


def _same(where: str, found: Mapping[str, object], wanted: Iterable[str]) -> None:
    names = list(wanted)
    if list(found) != names:
        raise ValueError(f"{where}: expected {names} in this order, got {list(found)}")
