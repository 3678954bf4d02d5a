"""One pooled cluster in steps: its units, queue, source of jobs, and loads."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from pipeline.core.config.records import (
    Counts,
    Frozen,
    Instances,
    Loads,
    Many,
    Name,
    Periods,
    Positive,
    Share,
    ShareRange,
    StepRange,
    Units,
    first_error,
    none_of,
)
from pipeline.errors import UserError

JOB_COLUMNS = ("load", "jobset", "job", "arrival", "duration", "estimate")


def _is_empty(value: object) -> bool:
    return value is None or value == 0.0


def _valid_place_ahead(value: object) -> object:
    if value not in (True, False, "agents"):
        raise ValueError(f"expected true, false or agents, got {value!r}")
    return value


class Synthetic(Frozen):
    """DeepRM's workload (section 4.1): short and long jobs, one dominant resource each."""

    name: Literal["synthetic"]
    short: StepRange  # steps of a short job, [least, most]
    long: StepRange  # steps of a long job, [least, most]
    short_share: Share  # of the jobs
    # Standard deviation of the logarithm of users' estimates.
    estimate_noise: Annotated[float, Field(ge=0, le=5, exclude_if=_is_empty)] = 0.0

    @property
    def mean_duration(self) -> float:
        """Expected duration of a job, in steps."""
        return self.short_share * sum(self.short) / 2 + (1 - self.short_share) * sum(self.long) / 2

    @property
    def longest(self) -> int:
        """Longest duration a job can have, in steps."""
        return max(self.short[1], self.long[1])


class PoolLog(Periods):
    """A log, cut into windows of consecutive jobs; `name: swf` is short for `name: log, format: swf`."""

    name: Literal["swf", "log"]
    format: Annotated[str, Field(exclude_if=lambda word: word == "swf")] = "swf"  # a format of docs/logs.md
    path: str  # from the repository's root, or absolute
    nodes: Annotated[str | None, Field(exclude_if=_is_empty)] = None  # the file of machines that some formats have
    # A job for each task, or for each of its instances.
    instances: Annotated[Instances, Field(exclude_if=lambda word: word == "one")] = "one"
    step_s: Positive = 3600  # seconds of one step; durations are rounded up to steps
    capacity: Units | None = 20  # units of each resource; null: the scenario's
    memory_kb: Positive | None = None  # memory of the machine in KB; null: estimated from the log
    max_steps: Positive = 20  # longer jobs are cut to this, and counted
    window: Positive = 100  # consecutive jobs of a jobset

    @model_validator(mode="after")
    def _has_one_format(self) -> "PoolLog":
        if self.name == "swf" and self.format != "swf":
            raise ValueError(f"name: expected log with a format, got swf with '{self.format}'")
        return self


class Demand(Frozen):
    """Shares of resources that a job requests: of its dominant one, and of each other one."""

    dominant: ShareRange  # share of the resource that it requests most, [least, most]
    other: ShareRange  # share of each other resource, [least, most]


class Streaming(Frozen):
    """Jobs arrive over `steps` steps: several per step (poisson), at most one (bernoulli), or many at a time (bursts).

    Of a stream, only jobs that arrive in the steps `measured` = [first, after) count; the others are played as well,
    and an episode ends once all measured jobs have started. Where arrivals end with the measured steps, the
    episode does too: an overload, judged by what is finished in the measured steps and by how the backlog grows.
    """

    name: Literal["poisson", "bernoulli", "bursts"]
    steps: Many  # number of steps in which jobs arrive
    size: Annotated[float | None, Field(ge=1, le=1000, exclude_if=_is_empty)] = None  # jobs of a burst, on average
    # For a stream: steps [first, after) whose arrivals count. Dumps leave out null, which keeps old digests.
    measured: Annotated[tuple[int, int] | None, Field(exclude_if=_is_empty)] = None

    @model_validator(mode="after")
    def _has_a_size_if_it_comes_in_bursts(self) -> "Streaming":
        if self.name == "bursts" and self.size is None:
            raise ValueError("size: expected the mean number of jobs of a burst, got none")
        if self.name != "bursts" and self.size is not None:
            raise ValueError(f"size: expected none, because only bursts have one; got {self.size:g}")
        return self

    @model_validator(mode="after")
    def _measures_steps_that_there_are(self) -> "Streaming":
        if self.measured is not None and not 0 <= self.measured[0] < self.measured[1] <= self.steps:
            raise ValueError(
                f"measured: expected [first, after] with 0 <= first < after <= steps {self.steps}, "
                f"got {list(self.measured)}"
            )
        return self


class AtOnce(Frozen):
    """All `jobs` jobs wait at step 0 (DeepRM_Off)."""

    name: Literal["at_once"]
    jobs: Many  # of a jobset


class PoolScenario(Frozen):
    """One pooled cluster, and its loads."""

    problem: Literal["pool"]
    # Units of each resource.
    resources: Annotated[dict[Name, Units], Field(min_length=1), AfterValidator(none_of(JOB_COLUMNS))]
    horizon: Annotated[int, Field(gt=1, le=10_000)]  # steps that a policy looks ahead
    slots: Annotated[int, Field(gt=0, le=1000)]  # waiting jobs that a policy sees
    # Jobs beyond the slots that a policy can count; none is ever dropped.
    backlog: Annotated[int, Field(ge=0, le=100_000)]
    # May a job be given a start later than now? `agents`: by trained policies only, as in DeepRM's paper.
    place_ahead: Annotated[bool | Literal["agents"], BeforeValidator(_valid_place_ahead)]
    # An episode is cut here, and its unfinished jobs are counted.
    step_limit: Annotated[int, Field(gt=0, le=100_000_000)]
    demand: str  # a name of `demands`
    arrivals: Annotated[Streaming | AtOnce, Field(discriminator="name")]  # when jobs arrive
    loads: Loads  # percent of the cluster
    jobsets: Counts  # how many of each load
    # Steps without an arrival after which an idle cluster must start a waiting job that fits; left out: the horizon.
    stall: Annotated[int | None, Field(ge=0, le=100_000_000, exclude_if=lambda steps: steps is None)] = None
    tell_end: Annotated[bool, Field(exclude_if=bool)] = True  # do policies know when arrivals end, where they do?
    tell_load: Annotated[bool, Field(exclude_if=bool)] = True  # do policies know the load of a jobset?
    # What policies know of a job's duration.
    policies_know: Annotated[
        Literal["durations", "estimates", "predictions"], Field(exclude_if=lambda words: words == "durations")
    ] = "durations"
    workload: Annotated[Synthetic | None, Field(exclude_if=_is_empty)] = None  # its own, instead of the shared one

    @property
    def arrivals_end(self) -> int | None:
        """The step at which arrivals end; None where they do not end or policies do not know it."""
        if not self.tell_end or self.measured is not None:
            return None
        return 1 if isinstance(self.arrivals, AtOnce) else self.arrivals.steps

    def known_load(self, load: int) -> float | None:
        """Return the load of a jobset in percent, as policies know it; None: unknown, or only a label."""
        return float(load) if self.tell_load and isinstance(self.arrivals, Streaming) else None

    @property
    def measured(self) -> tuple[int, int] | None:
        """The steps [first, after) whose arrivals are measured; None where all jobs are."""
        return None if isinstance(self.arrivals, AtOnce) else self.arrivals.measured

    @property
    def overload(self) -> bool:
        """Return whether this is a stream that ends with its measured steps."""
        return self.measured is not None and isinstance(of := self.arrivals, Streaming) and of.steps == self.measured[1]

    def with_log_capacity(self, workload: Synthetic | PoolLog) -> "PoolScenario":
        """Return the scenario with its log's capacity, if any; policies know neither load nor end of a log."""
        if not isinstance(workload, PoolLog):
            return self
        own = {} if workload.capacity is None else {"resources": dict.fromkeys(self.resources, workload.capacity)}
        return self.model_copy(update={"tell_end": False, "tell_load": False, **own})

    def changed(self, capacity: int | None, slots: int | None, horizon: int | None) -> "PoolScenario":
        """Return the scenario with another cluster; None keeps a number. UserError if one is out of range."""
        asked = {"slots": slots, "horizon": horizon}
        update: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
        if capacity is not None:
            update["resources"] = dict.fromkeys(self.resources, capacity)
        raw = self.model_dump() | update
        if "jobs" in raw["arrivals"]:  # these jobs are the user's own, however many slots there are
            raw["arrivals"]["jobs"] = min(raw["arrivals"]["jobs"], max(raw["slots"] + raw["backlog"], 1))
        try:
            return PoolScenario.model_validate(raw)
        except ValidationError as error:
            raise UserError(first_error(error, raw, "scenario")) from error

    @model_validator(mode="after")
    def _all_jobs_are_seen(self) -> "PoolScenario":
        if isinstance(self.arrivals, AtOnce) and self.arrivals.jobs > self.slots + self.backlog:
            raise ValueError(f"arrivals.jobs {self.arrivals.jobs} exceed slots {self.slots} + backlog {self.backlog}")
        return self

    @model_validator(mode="after")
    def _no_stream_is_played_after_its_arrivals(self) -> "PoolScenario":
        if isinstance(self.arrivals, Streaming) and self.measured is not None and self.step_limit > self.arrivals.steps:
            raise ValueError(
                f"step_limit: expected at most arrivals.steps {self.arrivals.steps}, because jobs arrive as long "
                f"as a stream is played; got {self.step_limit}"
            )
        return self

    @model_validator(mode="after")
    def _durations_are_known_ahead(self) -> "PoolScenario":
        if self.policies_know != "durations" and self.place_ahead:
            raise ValueError(
                f"policies_know: where jobs are placed ahead, expected durations, got {self.policies_know}"
            )
        return self
