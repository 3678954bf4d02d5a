"""User groups that share a cluster: its units, the groups' queues, what a controller may set, where jobs come from."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from pipeline.config.problem import Counts
from pipeline.config.records import Frozen, Loads, Many, Name, Positive, PositiveShare, Rate, Share

GROUP_JOB_COLUMNS = ("load", "jobset", "job", "arrival", "duration", "estimate", "group", "queue")
SharedUnits = Annotated[int, Field(gt=0, le=1_000_000)]
Amounts = Annotated[tuple[SharedUnits, ...], Field(min_length=1)]


def _no_column_of_jobs(resources: dict[str, int]) -> dict[str, int]:
    for name in resources:
        if name in GROUP_JOB_COLUMNS:
            raise ValueError(f"'{name}' is a column of job tables; give the resource another name")
    return resources


def _from_nothing_up(levels: tuple[float, ...]) -> tuple[float, ...]:
    if levels[0] != 0 or any(low >= high for low, high in pairwise(levels)):
        raise ValueError(f"expected 0 and then rising numbers, got {list(levels)}")
    return levels


Levels = Annotated[
    tuple[Annotated[float, Field(ge=0, le=1000)], ...], Field(min_length=2), AfterValidator(_from_nothing_up)
]


class Sinusoidal(Frozen):
    """Jobs of groups whose loads swing out of phase: while one group has its rush, another one's is over.

    Group g of G has, at time t, 1 + swing * sin(2 pi (t / (period * interval) + g / G)) times its mean rate of
    arrivals, and an equal part of the load. Run times are log-normal about their queue's median; demands are one of a
    few amounts, all equally often.
    """

    name: Literal["sinusoidal"]
    intervals: Many  # in which jobs arrive
    period: Rate  # of the swing, in intervals
    swing: Share
    run: dict[Name, Rate]  # median run time of each queue's jobs
    spread: Annotated[float, Field(gt=0, le=5)]  # standard deviation of its logarithm
    demand: dict[Name, Amounts]  # of each resource
    mixes: Annotated[tuple[dict[Name, Share], ...], Field(min_length=1)]  # groups in turn: queues' shares of the jobs


class GroupsLog(Frozen):
    """A log whose users are gathered into groups, cut into windows of time; `loads` compress or stretch arrivals.

    Users are dealt out by what they used in the training period: the heaviest first, each into the group that has the
    least so far. A user who is not seen there goes to group `user modulo groups`. A job's queue is that of the first
    bound that the time told of it does not exceed; the last queue has the rest.
    """

    name: Literal["log"]
    format: Literal["swf"]
    path: str
    first_s: Annotated[float, Field(ge=0)] = 0.0  # by the log's clock; jobs before it are left out, and counted
    longest_s: Rate | None = None  # run times are cut here, and counted
    bounds: Annotated[tuple[Rate, ...], Field(min_length=1)]  # of the time told, in seconds: one less than queues
    window: Many  # intervals of a jobset
    train_share: PositiveShare = 0.6  # of the log's time
    validation_share: PositiveShare = 0.15

    @model_validator(mode="after")
    def _leaves_a_test_period(self) -> "GroupsLog":
        if self.train_share + self.validation_share >= 1:
            raise ValueError("expected train_share + validation_share below 1, so that a test period is left")
        return self


class GroupsScenario(Frozen):
    """One cluster that user groups share, and the loads it is met at."""

    problem: Literal["groups"]
    resources: Annotated[dict[Name, SharedUnits], Field(min_length=1), AfterValidator(_no_column_of_jobs)]
    groups: Annotated[int, Field(gt=1, le=1000)]
    queues: Annotated[tuple[Name, ...], Field(min_length=2, max_length=4)]
    orders: Annotated[tuple[tuple[Name, ...], ...], Field(min_length=1)]  # of the queues, the one served first ahead
    levels: Levels  # what a group may be given, in equal shares (1 = capacity / groups)
    interval: Rate  # of the controller, in the jobs' unit of time
    borrowing: bool
    told: Literal["durations", "estimates"]  # what the controller is told of a job's run time
    time_limit: Rate  # an episode is cut here, and its unfinished jobs are counted
    workload: Annotated[Sinusoidal | GroupsLog, Field(discriminator="name")]
    loads: Loads
    jobsets: Counts

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
        if self.told == "estimates":
            raise ValueError("told: only a log has estimates; expected durations")
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


class GroupQ(Frozen):
    """The controller's value function: of a group's state when it is given some units, for each order of its queues."""

    name: Literal["group_q"]
    hidden: tuple[Annotated[int, Field(gt=0, le=10_000)], Annotated[int, Field(gt=0, le=10_000)]]
    weights: Literal["shared", "per_group"]  # one network for all groups, or (the source) one for each


class DqnRecipe(Frozen):
    """How the controller's value function learns: all but how much."""

    algorithm: Literal["dqn"]
    learning_rate: Rate
    falling: bool  # in a line to 0 by the last update of online learning?
    clip: Rate | None  # norm of the gradient
    gamma: Annotated[float, Field(ge=0, lt=1)]
    against: Literal["present", "nothing", "zero"]  # what a reward is measured against: docs/systems/controller.md
    batch: Positive  # decisions of the whole cluster that a step of the optimizer learns from
    memory: Many  # decisions of the whole cluster that are kept
    target: Annotated[int, Field(ge=0)]  # steps between two copies to the target network; 0 = there is none
    double: bool  # the next configuration is chosen by the network itself, and valued by its target
    huber: bool  # or squares
    bootstrap: Literal["joint", "own"]  # next configurations: the knapsack's, or each group's own best
    conservative: Annotated[float, Field(ge=0)]  # weight of the conservative term (CQL) in pre-training


class Replay(Frozen):
    """Pre-training on a log that is replayed under random and heuristic configurations."""

    name: Literal["replay"]
    loads: Loads
    jobsets: Positive  # training jobsets that are replayed, over all loads
    updates: Positive
    steps: Positive  # of the optimizer in an update
    random: Share  # share of the replays whose controller sets at random
    noise: Share  # chance that a heuristic controller's setting of a group is a random one instead
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None  # params.yaml's unless told

    @property
    def budget(self) -> int:
        """Updates."""
        return self.updates

    @property
    def first(self) -> str:
        """What happens before the first update."""
        return ""


class Dqn(Frozen):
    """Online learning: the controller's own decisions, a step of the optimizer every few of them (Algorithm 1)."""

    name: Literal["dqn"]
    recipe: str
    loads: Loads
    updates: Positive  # in each, some jobsets are controlled from their first interval to their last
    jobsets: Positive  # of an update, side by side
    every: Positive  # F: decisions of each jobset between two steps of the optimizer
    epsilon: Share  # chance that a group's configuration is a random one; the source: 0
    validate_every: Positive
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None  # params.yaml's unless told

    @property
    def budget(self) -> int:
        """Updates."""
        return self.updates
